#include "brute_force.h"

#include <algorithm>

#include "tidemark/memory/replay.h"
#include "tidemark/plan/groups.h"
#include "tidemark/plan/legality.h"

namespace tidemark::test {

namespace {

using namespace step;

// The legal units of one call.
std::vector<plan::Unit> units_of(const Step& step, const plan::EventIndex& index, CallId call, std::size_t most) {
  std::vector<plan::Unit> units;
  if (const PassKind kind = step[step[call].pass].kind; kind != PassKind::kForward && kind != PassKind::kLoss)
    return {};
  plan::Unit unit{.call = call, .saved_ops = {}, .preserve_rng = false, .early_stop = true};
  const auto groups = plan::find_groups(step, index, call);
  for (const plan::Group& group : groups) unit.preserve_rng = unit.preserve_rng || group.is_random;
  std::vector<const plan::Group*> free;
  for (const plan::Group& group : groups)
    if (group.can_save()) free.push_back(&group);
  if (free.size() > 16) return {};
  for (std::uint32_t bits = 0; bits < (1u << free.size()) && units.size() <= most; ++bits) {
    unit.saved_ops.clear();
    for (std::size_t i = 0; i < free.size(); ++i)
      if ((bits >> i & 1) != 0)
        unit.saved_ops.insert(unit.saved_ops.end(), free[i]->savers.begin(), free[i]->savers.end());
    std::sort(unit.saved_ops.begin(), unit.saved_ops.end());
    if (plan::check(step, index, {{unit}}).empty()) units.push_back(unit);
  }
  return units;
}

class Enumeration {
 public:
  Enumeration(const Step& step, std::int64_t most, const std::function<void(const plan::Plan&)>& visit)
      : most_(most), visit_(visit) {
    const plan::EventIndex index = plan::index_events(step);
    for (std::uint32_t i = 0; i < step.tables().calls.size(); ++i) {
      auto units = units_of(step, index, CallId(i), static_cast<std::size_t>(most));
      if (!units.empty()) calls_.push_back({index.regions[i], std::move(units)});
    }
    std::sort(calls_.begin(), calls_.end(),
              [](const auto& a, const auto& b) { return a.region.begin < b.region.begin; });
  }

  std::int64_t run() {
    choose(0, 0);
    return count_;
  }

 private:
  struct Call {
    plan::EventRange region;
    std::vector<plan::Unit> units;
  };

  // From the i-th call on, where those that begin before `free_from` lie inside a unit.
  void choose(std::size_t i, std::uint32_t free_from) {
    while (i < calls_.size() && calls_[i].region.begin < free_from) ++i;
    if (count_ > most_) return;
    if (i == calls_.size()) {
      if (++count_ <= most_) visit_(plan_);
      return;
    }
    choose(i + 1, free_from);
    for (const plan::Unit& unit : calls_[i].units) {
      plan_.units.push_back(unit);
      choose(i + 1, calls_[i].region.end + 1);
      plan_.units.pop_back();
    }
  }

  std::int64_t most_;
  const std::function<void(const plan::Plan&)>& visit_;
  std::vector<Call> calls_;
  plan::Plan plan_;
  std::int64_t count_ = 0;
};

}  // namespace

std::int64_t for_each_plan(const Step& step, std::int64_t most, const std::function<void(const plan::Plan&)>& visit) {
  return Enumeration(step, most, visit).run();
}

std::vector<Tried> try_all(const Step& step, const planner::Times& times, std::int64_t most,
                           const memory::WorkspaceTable* workspace, std::int64_t round_to_bytes) {
  const plan::EventIndex index = plan::index_events(step);
  std::vector<Tried> tried;
  const std::int64_t count = for_each_plan(step, most, [&](const plan::Plan& plan) {
    const memory::Timeline timeline = memory::replay(
        step, plan,
        {.workspace = workspace, .round_to_bytes = round_to_bytes, .keep_alive_at_peak = false, .runner_up_count = 0});
    tried.push_back({plan, timeline.peak.total_bytes, planner::recompute_ps(step, index, times, plan)});
  });
  if (count > most) tried.clear();
  return tried;
}

}  // namespace tidemark::test
