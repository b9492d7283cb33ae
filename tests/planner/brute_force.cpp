#include "brute_force.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tidemark/memory/replay.h"
#include "tidemark/plan/groups.h"
#include "tidemark/plan/legality.h"

namespace tidemark::test {

namespace {

using namespace step;

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The legal units of one call. Whether what is common to them is legal is asked of plan/ twice, with the least saved
// and with the most; what lies between differs by whole groups that may be saved or not.
std::vector<plan::Unit> units_of(const Step& step, const plan::EventIndex& index, CallId call, std::size_t most,
                                 const PlanRules& rules) {
  std::vector<plan::Unit> units;
  if (!rules.units.empty() && !has(rules.units, step.fqn(step[call].module))) return {};
  if (const PassKind kind = step[step[call].pass].kind; kind != PassKind::kForward && kind != PassKind::kLoss)
    return {};
  plan::Unit unit{.call = call, .saved_ops = {}, .preserve_rng = false, .early_stop = true};
  const auto groups = plan::find_groups(step, index, call);
  for (const plan::Group& group : groups) unit.preserve_rng = unit.preserve_rng || group.is_random;
  std::vector<const plan::Group*> free;
  std::vector<OpId> certain;
  for (const plan::Group& group : groups) {
    if (!group.can_save()) continue;
    if (group.must_save)
      certain.insert(certain.end(), group.savers.begin(), group.savers.end());
    else if (std::none_of(group.ops.begin(), group.ops.end(),
                          [&](OpId op) { return has(rules.never_save, step.text(step[op].name)); }))
      free.push_back(&group);
  }
  const std::uint64_t count = std::uint64_t{1} << std::min<std::size_t>(free.size(), 40);
  for (std::uint64_t bits = 0; bits < count && units.size() <= most; ++bits) {
    unit.saved_ops = certain;
    for (std::size_t i = 0; i < free.size(); ++i)
      if ((bits >> i & 1) != 0)
        unit.saved_ops.insert(unit.saved_ops.end(), free[i]->savers.begin(), free[i]->savers.end());
    std::sort(unit.saved_ops.begin(), unit.saved_ops.end());
    const bool is_end = bits == 0 || bits + 1 == count;
    if (is_end && !plan::check(step, index, {{unit}}).empty()) return {};
    units.push_back(unit);
  }
  return units;
}

class Enumeration {
 public:
  Enumeration(const Step& step, std::int64_t most, const PlanRules& rules,
              const std::function<void(const plan::Plan&)>& visit)
      : most_(most), visit_(visit) {
    const plan::EventIndex index = plan::index_events(step);
    for (std::uint32_t i = 0; i < step.tables().calls.size(); ++i) {
      auto units = units_of(step, index, CallId(i), static_cast<std::size_t>(most), rules);
      if (!units.empty()) calls_.push_back({index.regions[i], std::move(units)});
    }
    std::sort(calls_.begin(), calls_.end(),
              [](const auto& a, const auto& b) { return a.region.begin < b.region.begin; });
  }

  // All of them, if there are at most `most`; else none.
  std::int64_t run() {
    const std::int64_t count = count_all();
    if (count <= most_) choose(0, 0);
    return count;
  }

  // How many plans there are, or most + 1.
  std::int64_t count_all() const {
    std::vector<std::int64_t> from(calls_.size() + 1, 1);  // by call: of those from it on
    for (std::size_t i = calls_.size(); i-- > 0;) {
      std::size_t next = i + 1;
      while (next < calls_.size() && calls_[next].region.begin < calls_[i].region.end) ++next;
      from[i] = std::min(most_ + 1, from[i + 1] + static_cast<std::int64_t>(calls_[i].units.size()) * from[next]);
    }
    return from[0];
  }

 private:
  struct Call {
    plan::EventRange region;
    std::vector<plan::Unit> units;
  };

  // From the i-th call on, where those that begin before `free_from` lie inside a unit.
  void choose(std::size_t i, std::uint32_t free_from) {
    while (i < calls_.size() && calls_[i].region.begin < free_from) ++i;
    if (i == calls_.size()) return visit_(plan_);
    choose(i + 1, free_from);
    for (const plan::Unit& unit : calls_[i].units) {
      plan_.units.push_back(unit);
      choose(i + 1, calls_[i].region.end + 1);
      plan_.units.pop_back();
    }
  }

  std::int64_t most_;
  std::function<void(const plan::Plan&)> visit_;
  std::vector<Call> calls_;
  plan::Plan plan_;
};

}  // namespace

std::int64_t for_each_plan(const Step& step, std::int64_t most, const std::function<void(const plan::Plan&)>& visit,
                           const PlanRules& rules) {
  return Enumeration(step, most, rules, visit).run();
}

std::int64_t count_plans(const Step& step, std::int64_t most, const PlanRules& rules) {
  return Enumeration(step, most, rules, {}).count_all();
}

std::vector<Tried> try_all(const Step& step, const planner::Times& times, std::int64_t most,
                           const memory::WorkspaceTable* workspace, std::int64_t round_to_bytes,
                           const PlanRules& rules) {
  const plan::EventIndex index = plan::index_events(step);
  const memory::Replayer replayer(
      step,
      {.workspace = workspace, .round_to_bytes = round_to_bytes, .keep_alive_at_peak = false, .runner_up_count = 0});
  std::vector<Tried> tried;
  std::map<std::pair<CallId, std::vector<OpId>>, std::int64_t> price;
  for_each_plan(
      step, most,
      [&](const plan::Plan& plan) {
        // Every unit has its price, whatever the others are.
        std::int64_t ps = 0;
        for (const plan::Unit& unit : plan.units) {
          const auto [found, is_new] = price.try_emplace({unit.call, unit.saved_ops}, 0);
          if (is_new) found->second = planner::recompute_ps(step, index, times, {{unit}});
          ps += found->second;
        }
        tried.push_back({plan, replayer.run(plan).peak.total_bytes, ps});
      },
      rules);
  return tried;
}

}  // namespace tidemark::test
