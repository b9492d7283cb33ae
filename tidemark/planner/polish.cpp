#include "tidemark/planner/polish.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace tidemark::planner {

namespace {

// One change of a plan, and what it spares.
struct Change {
  std::int64_t spared_ps = 0;
  std::size_t unit = 0;
  std::size_t choice = 0;  // to be saved
  bool is_removal = false;
};

const Candidate* candidate_of(const Space& space, const plan::Unit& unit) {
  const auto found = std::find_if(space.candidates.begin(), space.candidates.end(),
                                  [&](const Candidate& c) { return c.call == unit.call; });
  return found == space.candidates.end() ? nullptr : &*found;
}

bool is_saved(const plan::Unit& unit, const Choice& choice) {
  return unit.decision(choice.savers.front()) == plan::Decision::kSave;
}

// Dearest first.
std::vector<Change> find_changes(const Space& space, const plan::Plan& plan) {
  std::vector<Change> changes;
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    const Candidate* c = candidate_of(space, plan.units[u]);
    if (c == nullptr) continue;
    std::int64_t all_ps = c->base_ps;
    for (std::size_t i = 0; i < c->choices.size(); ++i) {
      const Choice& choice = c->choices[i];
      if (choice.freedom != Freedom::kFree || is_saved(plan.units[u], choice)) continue;
      all_ps += choice.time_ps;
      if (choice.time_ps > 0) changes.push_back({choice.time_ps, u, i, false});
    }
    changes.push_back({all_ps, u, 0, true});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.spared_ps > b.spared_ps; });
  return changes;
}

plan::Plan changed(const Space& space, plan::Plan plan, const Change& change) {
  plan::Unit& unit = plan.units[change.unit];
  if (change.is_removal) {
    plan.units.erase(plan.units.begin() + static_cast<std::ptrdiff_t>(change.unit));
    return plan;
  }
  const Candidate& c = *candidate_of(space, unit);
  std::vector<std::uint8_t> saved;
  for (std::size_t i = 0; i < c.choices.size(); ++i)
    saved.push_back(i == change.choice || is_saved(unit, c.choices[i]) ? 1 : 0);
  unit = make_unit(c, saved);
  return plan;
}

}  // namespace

Polished polish(const PreparedStep& prepared, Judged start, std::int64_t room_bytes, std::int64_t max_work) {
  Polished best{std::move(start), 0};
  for (bool is_better = true; is_better;) {
    is_better = false;
    for (const Change& change : find_changes(prepared.space(), best.judged.plan)) {
      if (best.work + prepared.replay_work() > max_work) return best;
      best.work += prepared.replay_work();
      Judged judged = prepared.judge(changed(prepared.space(), best.judged.plan, change));
      if (judged.peak_bytes > room_bytes || judged.recompute_ps >= best.judged.recompute_ps) continue;
      best.judged = std::move(judged);
      is_better = true;
      break;
    }
  }
  return best;
}

}  // namespace tidemark::planner
