#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tidemark/planner/convex.h"
#include "tidemark/planner/narrow.h"
#include "tidemark/planner/path.h"
#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// The cheapest path that fits on two sides: in an episode, and in the same episode as the forward sees it while parked
// tensors are there (Problem::forward_episodes). The search is that of exact.h with two peaks instead of one: a path
// from a state to the end is told by its peak on either side and its time, and bounds come from each side and from
// mixtures of both, which a path that fits both sides fits, too.

// Both sides, with the same arcs and groups left open.
struct Sides {
  Episode here;
  Episode forward;
  std::vector<NarrowedArc> origin;  // by arc: in the whole episode

  Path widened(const Path& path) const;  // through that
};

// Without the arcs that do not fit on one of the sides: they would make bounds of the other lower. Without a second
// side `forward` is null, and empty in the result.
Sides fitting_sides(const Episode& episode, const Episode* forward, std::int64_t budget_bytes);

// Prices of a kept byte on either side, by state, in the units of ways.h: never rising along the forward, and 0 at the
// end.
struct SidePrices {
  std::vector<std::int64_t> here;
  std::vector<std::int64_t> forward;
};

// What bytes cost on both sides on the cheapest way in parts that fits both, where a mixture of that share has the
// highest bound.
SidePrices find_prices(const Sides& sides, std::int64_t budget_bytes, std::int64_t forward_share);

struct TwoSidesOptions {
  std::int64_t budget_bytes = 0;
  std::int64_t max_work = 0;            // entries
  std::int64_t bound_ps = 0;            // that is known
  SidePrices prices = {};               // for bounds
  std::int64_t pass_work = 40'000'000;  // of a pass; with more, one closer to the bound is tried, and sharper bounds
};

// One side with a price on the bytes of the other: a path that fits both takes at least as long as it does here, so
// that bounds here, where groups are whole on this side, are bounds for both.
Episode priced_here(const Sides& sides, const TwoSidesOptions& options);
Episode priced_forward(const Sides& sides, const TwoSidesOptions& options);

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

// The episode whose bytes lie between those of the two sides, so many of kShares of the way to the forward's: what a
// path comes to in it is at most the same mixture of its two peaks.
inline constexpr std::int64_t kShares = 4096;
inline constexpr std::int64_t kLittleShare = kShares / 16;
Episode mixture(const Episode& episode, const Episode& forward, std::int64_t forward_share);

// The share for which the mixture has about the highest bound by prices: there, bytes cost on both sides what they cost
// on the cheapest way in parts that fits both.
std::int64_t choose_share(const Sides& sides, std::int64_t budget_bytes);

}  // namespace tidemark::planner
