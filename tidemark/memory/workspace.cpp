#include "tidemark/memory/workspace.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include "tidemark/base/error.h"
#include "tidemark/base/utf8.h"
#include "tidemark/step/limits.h"
#include "tidemark/step/op_key.h"

namespace tidemark::memory {

namespace {

using namespace step;

std::unordered_map<std::string_view, std::uint32_t> rows_by_key(const WorkspaceTable& table) {
  std::unordered_map<std::string_view, std::uint32_t> rows;
  for (std::uint32_t i = 0; i < table.rows.size(); ++i) {
    const WorkspaceRow& row = table.rows[i];
    std::string problem = problem_of(row);
    if (problem.empty() && !rows.emplace(row.key, i).second) problem = "another row has the same key";
    if (problem.empty()) continue;
    throw Error({.kind = ErrorKind::kInput,
                 .place = fmt::format("workspace.rows[{}]", i),
                 .problem = std::move(problem),
                 .expected = {},
                 .got = quote(row.key, 80),
                 .remedy = {}});
  }
  return rows;
}

}  // namespace

WorkspaceStep workspace_step(std::int64_t kind, std::int64_t value) {
  if (kind >= 0 && kind <= 2) return {static_cast<WorkspaceStepKind>(kind), value};
  throw Error({.kind = ErrorKind::kInput,
               .place = "workspace.steps",
               .problem = "there is no such kind of step",
               .expected = "0 (an allocation of the op), 1 (hidden bytes come) or 2 (hidden bytes go)",
               .got = fmt::format("{}", kind),
               .remedy = {}});
}

std::string workspace_key(const Step& step, OpId id) { return op_key(step, id); }

std::vector<std::uint32_t> join_workspace(const Step& step, const WorkspaceTable& table, bool are_watched) {
  const auto rows = rows_by_key(table);
  const OpKinds kinds = op_kinds(step);
  std::vector<std::uint32_t> row_of_kind;
  for (const OpId first : kinds.first) {
    const std::string key = op_key(step, first);
    auto row = are_watched ? rows.find(key + std::string(kWatchedSuffix)) : rows.end();
    if (row == rows.end()) row = rows.find(key);
    row_of_kind.push_back(row == rows.end() ? kNoRow : row->second);
  }
  std::vector<std::uint32_t> row_of_op;
  row_of_op.reserve(kinds.of_op.size());
  for (const std::uint32_t kind : kinds.of_op) row_of_op.push_back(row_of_kind[kind]);
  return row_of_op;
}

std::string problem_of(const WorkspaceRow& row) {
  std::vector<bool> given_back;  // by kTake
  for (const WorkspaceStep& s : row.steps) {
    switch (s.kind) {
      case WorkspaceStepKind::kMake:
        if (s.value < 0 || s.value > kMaxOpTensors) return "the number of an allocation is out of range";
        break;
      case WorkspaceStepKind::kTake:
        if (s.value < 0 || s.value > kMaxTotalBytes) return "a number of bytes is out of range";
        given_back.push_back(false);
        break;
      case WorkspaceStepKind::kGive:
        if (s.value < 0 || static_cast<std::size_t>(s.value) >= given_back.size())
          return "hidden memory is freed before it is allocated";
        if (given_back[static_cast<std::size_t>(s.value)]) return "hidden memory is freed twice";
        given_back[static_cast<std::size_t>(s.value)] = true;
        break;
    }
  }
  return {};
}

}  // namespace tidemark::memory
