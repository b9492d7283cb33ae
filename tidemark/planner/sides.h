#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/planner/convex.h"
#include "tidemark/planner/narrow.h"
#include "tidemark/planner/path.h"
#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// An episode whose paths have to fit twice: as it is, and as the forward sees it while parked tensors are there
// (Problem::forward_episodes). Here is what one graph can say of both: a mixture of the two, which a path that fits
// both sides fits, too, and one side with a price on the bytes of the other. Their bounds are bounds for both.

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

// The episode whose bytes lie between those of the two sides, so many of kShares of the way to the forward's: what a
// path comes to in it is at most the same mixture of its two peaks.
inline constexpr std::int64_t kShares = 4096;
inline constexpr std::int64_t kLittleShare = kShares / 16;
std::int64_t mixed(std::int64_t here, std::int64_t forward, std::int64_t forward_share);  // rounded down
Episode mixture(const Episode& episode, const Episode& forward, std::int64_t forward_share);

// The share for which the mixture has about the highest bound by prices: there, bytes cost on both sides what they cost
// on the cheapest way in parts that fits both.
std::int64_t choose_share(const Sides& sides, std::int64_t budget_bytes);

// Prices of a kept byte on either side, by state, in the units of ways.h: never rising along the forward, and 0 at the
// end.
struct SidePrices {
  std::vector<std::int64_t> here;
  std::vector<std::int64_t> forward;
};

// What bytes cost on both sides on the cheapest way in parts that fits both, where a mixture of that share has the
// highest bound.
SidePrices find_prices(const Sides& sides, std::int64_t budget_bytes, std::int64_t forward_share);

// What saving a group costs on the other side, at most what running it again does: then it is not saved for its price.
std::int64_t price_of_group(const ArcGroup& other, std::int64_t price, std::int64_t time_ps);

// What bounds the time of the way to a state: one side, or a mixture, perhaps with a price on the bytes of the other
// side.
struct View {
  std::int64_t share = 0;
  Episode episode;
  std::vector<std::int64_t> floors;
  std::vector<Convex> ways;  // by state; none: nothing fits
  // Of a side with a price on the other one's bytes.
  const Episode* other = nullptr;
  const std::vector<std::int64_t>* prices = nullptr;  // by state
  std::vector<std::int64_t> other_caps = {};          // by arc
};

// A mixture, or one of the sides.
View view_of(const Sides& sides, std::int64_t forward_share, std::int64_t budget_bytes);
// One side, which the share tells, with prices on the bytes of the other: a path that fits both takes at least as long
// as it does there, where groups are whole on this side. `sides` and `prices` have to stay.
View priced_view(const Sides& sides, std::int64_t forward_share, const std::vector<std::int64_t>& prices,
                 std::int64_t budget_bytes);

}  // namespace tidemark::planner
