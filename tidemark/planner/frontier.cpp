#include "tidemark/planner/frontier.h"

#include <algorithm>
#include <map>
#include <queue>
#include <string>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/planner/convex.h"

namespace tidemark::planner {

namespace {

class Exploration {
 public:
  Exploration(const PreparedStep& prepared, const FrontierOptions& options)
      : p_(prepared),
        options_(options),
        first_(prepared.smallest().peak_bytes),
        last_(prepared.none().peak_bytes),
        replay_work_(static_cast<std::int64_t>(prepared.step().tables().events.size())) {}

  Frontier run() {
    const std::vector<std::int64_t> budgets = even_budgets();
    explore_evenly(budgets);
    if (options_.is_full) explore_gaps();
    settle();
    Frontier frontier;
    frontier.is_full = options_.is_full;
    if (options_.is_full)
      add_breakpoints(frontier);
    else
      for (const std::int64_t budget : budgets) add_point(frontier, budget);
    frontier.smallest_peak_bytes = first_;
    frontier.is_smallest_proved = p_.is_smallest_proved();
    frontier.unplanned_peak_bytes = last_;
    frontier.policies = p_.policies();
    for (PolicyFigures& figures : frontier.policies) figures.fits = figures.peak_bytes <= last_;
    frontier.solved = solved_;
    frontier.work = work_;
    return frontier;
  }

 private:
  // What is known of the budgets from `low` to the one that was solved for, which is the key of the map.
  struct Known {
    std::int64_t low = 0;
    std::int64_t ps = 0;
    std::int64_t bound_ps = 0;
    std::int64_t units = 0;
    cost::Interval interval = {};

    bool is_proved() const { return ps == bound_ps; }
  };
  using KnownMap = std::map<std::int64_t, Known>;

  std::vector<std::int64_t> even_budgets() const {
    std::vector<std::int64_t> budgets;
    for (std::int64_t i = 0; i < options_.budget_count; ++i) {
      const Int128 way = static_cast<Int128>(last_ - first_) * i / (options_.budget_count - 1);
      const std::int64_t budget = first_ + static_cast<std::int64_t>(way);
      if (budgets.empty() || budgets.back() != budget) budgets.push_back(budget);
    }
    return budgets;
  }

  std::int64_t left() const { return std::max<std::int64_t>(0, options_.max_work - work_); }

  KnownMap::iterator solve(std::int64_t budget, std::int64_t max_work) {
    const PlanResult result = p_.plan(budget, max_work);
    ++solved_;
    work_ += result.statistics.work + replay_work_;
    Known known{result.peak_bytes,
                result.recompute_ps,
                result.bound_ps,
                static_cast<std::int64_t>(result.plan.units.size()),
                {result.recompute.low_ps, result.recompute.high_ps}};
    const auto [at, is_new] = known_.emplace(budget, known);
    if (!is_new && known.ps <= at->second.ps) {
      known.bound_ps = std::max(known.bound_ps, at->second.bound_ps);
      at->second = known;
    }
    return at;
  }

  // Whether a proved answer for a larger budget holds here.
  bool is_covered(std::int64_t budget) const {
    const auto above = known_.lower_bound(budget);
    return above != known_.end() && above->second.low <= budget && above->second.is_proved();
  }

  // From the largest budget down, each with an equal share of the work that is left, and what is not proved once more
  // with what the others did not need.
  void explore_evenly(const std::vector<std::int64_t>& budgets) {
    for (int round = 0; round < 2; ++round) {
      std::vector<std::int64_t> open;
      for (const std::int64_t budget : budgets)
        if (!known_.contains(budget) || !known_.at(budget).is_proved()) open.push_back(budget);
      for (std::size_t i = open.size(); i-- > 0;) {
        if (is_covered(open[i])) continue;
        const std::int64_t share = std::min(left() / static_cast<std::int64_t>(i + 1), options_.max_work_each);
        if (round > 0 && share < 2 * shares_[open[i]]) continue;
        shares_[open[i]] = share;
        solve(open[i], share);
        if (!options_.is_full) report(static_cast<std::int64_t>(open.size() - i), open.size());
      }
      settle();
      if (options_.is_full) return;  // what is left is for the gaps
    }
  }

  struct Gap {
    std::int64_t below = 0;  // a budget that was solved for
    std::int64_t above = 0;  // the smallest one that the next answer covers

    std::int64_t width() const { return above - below - 1; }
    // Wide ones first; of equal ones, that with the smaller budgets.
    bool operator<(const Gap& other) const {
      return width() != other.width() ? width() < other.width() : below > other.below;
    }
  };

  void explore_gaps() {
    std::priority_queue<Gap> gaps;
    open_bytes_ = 0;
    const auto push = [&](std::int64_t below, std::int64_t below_ps, std::int64_t above, std::int64_t above_ps) {
      if (above - below <= 1 || below_ps <= above_ps) return;
      gaps.push({below, above});
      open_bytes_ += above - below - 1;
    };
    for (auto at = known_.begin(); at != known_.end(); ++at)
      if (const auto next = std::next(at); next != known_.end())
        push(at->first, at->second.ps, next->second.low, next->second.ps);
    report(last_ - first_ - open_bytes_, static_cast<std::size_t>(last_ - first_));
    while (!gaps.empty() && left() > 0) {
      const Gap gap = gaps.top();
      gaps.pop();
      const std::int64_t below_ps = known_.at(gap.below).ps;
      const std::int64_t above_ps = known_.upper_bound(gap.below)->second.ps;
      const std::int64_t middle = gap.below + 1 + (gap.width() - 1) / 2;
      const auto at = solve(middle, std::min(left(), options_.max_work_each));
      Known& known = at->second;
      if (below_ps <= known.ps) {  // nothing cheaper up to here
        const Known& below = known_.at(gap.below);
        known = {below.low, below.ps, known.bound_ps, below.units};
      }
      open_bytes_ -= gap.width();
      push(gap.below, below_ps, known.low, known.ps);
      push(middle, known.ps, gap.above, above_ps);
      report(last_ - first_ - open_bytes_, static_cast<std::size_t>(last_ - first_));
    }
    for (; !gaps.empty(); gaps.pop()) missing_.push_back({gaps.top().below + 1, gaps.top().above - 1});
    std::sort(missing_.begin(), missing_.end(),
              [](const BudgetRange& a, const BudgetRange& b) { return a.first_bytes < b.first_bytes; });
  }

  // A plan fits every budget from its peak on, and a bound holds for every smaller one.
  void settle() {
    const Known* above = nullptr;
    for (auto at = known_.rbegin(); at != known_.rend(); ++at) {
      Known& known = at->second;
      if (above != nullptr && above->low <= at->first && above->ps < known.ps)
        known = {above->low, above->ps, known.bound_ps, above->units};
      above = &known;
    }
    const Known* cheapest = nullptr;
    for (auto& [budget, known] : known_) {
      if (cheapest != nullptr && cheapest->ps <= known.ps)
        known = {cheapest->low, cheapest->ps, known.bound_ps, cheapest->units, cheapest->interval};
      cheapest = &known;
    }
    std::int64_t bound_ps = 0;
    for (auto at = known_.rbegin(); at != known_.rend(); ++at)
      bound_ps = at->second.bound_ps = std::min(std::max(bound_ps, at->second.bound_ps), at->second.ps);
  }

  void add_point(Frontier& frontier, std::int64_t budget) const {
    const Known& known = known_.lower_bound(budget)->second;
    frontier.points.push_back({budget, known.low, known.ps, known.bound_ps, known.units, known.interval});
  }

  void add_breakpoints(Frontier& frontier) const {
    for (const auto& [budget, known] : known_)
      if (frontier.points.empty() || known.ps < frontier.points.back().recompute_ps)
        frontier.points.push_back({known.low, known.low, known.ps, known.bound_ps, known.units, known.interval});
    frontier.missing = missing_;
  }

  void report(std::int64_t known, std::size_t all) const {
    if (options_.progress) options_.progress({known, static_cast<std::int64_t>(all), solved_, work_});
  }

  const PreparedStep& p_;
  const FrontierOptions& options_;
  std::int64_t first_;
  std::int64_t last_;
  std::int64_t replay_work_;
  KnownMap known_;
  std::map<std::int64_t, std::int64_t> shares_;  // what a budget was given
  std::vector<BudgetRange> missing_;
  std::int64_t open_bytes_ = 0;
  std::int64_t solved_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace

FrontierOptions default_frontier_options(bool is_full) {
  FrontierOptions options;
  options.is_full = is_full;
  if (!is_full) return options;
  options.max_work = 500'000'000;
  options.max_work_each = 2'000'000;
  return options;
}

Frontier find_frontier(const PreparedStep& prepared, const FrontierOptions& options) {
  if (options.budget_count < 2)
    throw Error({.kind = ErrorKind::kInput,
                 .place = "budgets",
                 .problem = "a frontier needs its two ends",
                 .expected = "at least 2 budgets",
                 .got = std::to_string(options.budget_count),
                 .remedy = {}});
  return Exploration(prepared, options).run();
}

}  // namespace tidemark::planner
