#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tidemark/planner/prepared.h"

namespace tidemark::planner {

// What recomputing costs at least, budget by budget: a staircase that falls from the smallest peak that any plan
// reaches to the peak without a plan, where it is zero. Its corners are the *breakpoints*: at p bytes the least time is
// t, and one byte below it is more.
//
// A proved answer says more than its budget: a plan of peak p that is the cheapest one for the budget B is the cheapest
// one for all budgets from p to B. So the whole staircase is found by solving for budgets that are not covered yet, and
// what two equal times enclose needs no search at all.

struct FrontierPoint {
  std::int64_t budget_bytes = 0;  // without any reserve; of a breakpoint, its peak
  std::int64_t peak_bytes = 0;    // of the plan, by replay
  std::int64_t recompute_ps = 0;
  std::int64_t bound_ps = 0;  // no plan within the budget takes less
  std::int64_t unit_count = 0;
  cost::Interval interval = {};  // of recompute_ps

  bool is_proved() const { return recompute_ps == bound_ps; }
  // What a search for that budget alone ends with.
  Termination termination() const {
    if (unit_count == 0) return Termination::kFits;
    return is_proved() ? Termination::kOptimal : Termination::kFeasible;
  }
  friend bool operator==(const FrontierPoint&, const FrontierPoint&) = default;
};

// Budgets from the first to the last, both included.
struct BudgetRange {
  std::int64_t first_bytes = 0;
  std::int64_t last_bytes = 0;

  friend bool operator==(const BudgetRange&, const BudgetRange&) = default;
};

struct FrontierProgress {
  std::int64_t known_bytes = 0;  // how many budgets are covered, of all_bytes
  std::int64_t all_bytes = 0;
  std::int64_t solved = 0;  // searches so far
  std::int64_t work = 0;
};

struct FrontierOptions {
  std::int64_t budget_count = 64;  // evenly from the smallest peak to that without a plan
  bool is_full = false;            // all breakpoints, rather than those budgets
  // Work is counted in entries of the search's lists, and in events for each replay; ten million take about a second.
  std::int64_t max_work = 100'000'000;
  std::int64_t max_work_each = 20'000'000;                     // for one budget
  std::function<void(const FrontierProgress&)> progress = {};  // called after each search
};

// The work that people wait for: 100 million for the even budgets; for all breakpoints 500 million in small portions.
FrontierOptions default_frontier_options(bool is_full);

struct Frontier {
  std::vector<FrontierPoint> points;  // budgets ascend, times fall
  bool is_full = false;
  std::vector<BudgetRange> missing;  // full: budgets that the limit left without an answer; there may be breakpoints
  std::int64_t smallest_peak_bytes = 0;
  bool is_smallest_proved = true;
  std::int64_t unplanned_peak_bytes = 0;
  std::vector<PolicyFigures> policies;  // `fits`: within the peak without a plan
  std::int64_t solved = 0;
  std::int64_t work = 0;
};

// Pure, but for the calls of `progress`. Throws: Error for fewer than two budgets.
Frontier find_frontier(const PreparedStep& prepared, const FrontierOptions& options = {});

}  // namespace tidemark::planner
