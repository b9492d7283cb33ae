#include "random_workspace.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tidemark::test {

namespace {

using memory::WorkspaceStepKind;

std::vector<memory::WorkspaceStep> random_steps(Random& random) {
  static const std::vector<std::int64_t> kBytes = {0, 1, 100, 511, 512, 4096, 300000};
  std::vector<memory::WorkspaceStep> steps;
  std::vector<std::int64_t> taken;  // and not given back
  std::int64_t takes = 0;
  for (std::int64_t i = random.between(0, 6); i > 0; --i) {
    switch (random.below(3)) {
      case 0:
        steps.push_back({WorkspaceStepKind::kMake, random.between(0, 2)});
        break;
      case 1:
        steps.push_back({WorkspaceStepKind::kTake, random.pick(kBytes)});
        taken.push_back(takes++);
        break;
      default:
        if (taken.empty()) break;
        random.shuffle(taken);
        steps.push_back({WorkspaceStepKind::kGive, taken.back()});
        taken.pop_back();
        break;
    }
  }
  return steps;
}

}  // namespace

memory::WorkspaceTable random_workspace(const step::Step& step, Random& random) {
  memory::WorkspaceTable table;
  std::set<std::string> keys;
  for (std::uint32_t op = 0; op < step.tables().ops.size(); ++op)
    keys.insert(memory::workspace_key(step, step::OpId(op)));
  const int chance = static_cast<int>(random.between(0, 80));
  for (const std::string& key : keys) {
    if (random.chance(chance)) table.rows.push_back({key, random_steps(random)});
    if (random.chance(chance / 2)) table.rows.push_back({key + " watched", random_steps(random)});
  }
  return table;
}

memory::WorkspaceTable likely_workspace(const step::Step& step, Random& random) {
  const memory::WorkspaceTable any = random_workspace(step, random);
  memory::WorkspaceTable table;
  for (const memory::WorkspaceRow& row : any.rows) {
    if (row.key.ends_with(memory::kWatchedSuffix)) continue;
    table.rows.push_back(row);
    if (!random.chance(30)) continue;
    memory::WorkspaceRow watched = row;
    watched.key += memory::kWatchedSuffix;
    watched.steps.push_back({WorkspaceStepKind::kTake, random.between(0, 8)});
    table.rows.push_back(std::move(watched));
  }
  return table;
}

}  // namespace tidemark::test
