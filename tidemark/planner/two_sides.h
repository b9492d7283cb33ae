#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tidemark/planner/convex.h"
#include "tidemark/planner/path.h"
#include "tidemark/planner/sides.h"

namespace tidemark::planner {

// The cheapest path that fits on two sides: in an episode, and in the same episode as the forward sees it while parked
// tensors are there (Problem::forward_episodes). The search is that of exact.h with two peaks instead of one: a path
// from a state to the end is told by its peak on either side and its time, and bounds come from each side and from
// mixtures of both, which a path that fits both sides fits, too.

struct TwoSidesOptions {
  std::int64_t budget_bytes = 0;
  std::int64_t max_work = 0;            // entries
  std::int64_t bound_ps = 0;            // that is known
  SidePrices prices = {};               // for bounds
  std::int64_t pass_work = 40'000'000;  // of a pass; with more, one closer to the bound is tried, and sharper bounds
};

struct TwoSidesResult {
  std::optional<Path> path;
  std::int64_t ps = Convex::kNotEnough;
  std::int64_t bound_ps = 0;  // no path that fits is faster; kNotEnough: none fits
  bool is_limit = false;
  std::int64_t work = 0;
  std::int64_t passes = 0;
  std::int64_t longest_list = 0;
};

// `sides` are fitting_sides() for the same budget.
TwoSidesResult find_cheapest(const Sides& sides, const TwoSidesOptions& options);

}  // namespace tidemark::planner
