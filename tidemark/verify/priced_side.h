#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tidemark/planner/problem.h"
#include "tidemark/verify/side_hints.h"
#include "tidemark/verify/sides.h"

namespace tidemark::verify {

// One of two sides with a price on every byte that the other one keeps. Let S be what a path keeps on the other side
// before an arc, and let prices be 0 at the end. Summed by what is kept before arcs instead of by what they add,
//
//   sum over arcs of  price(to) * bytes it keeps  =  sum over arcs of  (price(from) - price(to)) * S
//
// and what S is at least and at most on paths that fit is known for every arc. So for every such path
//
//   time  >=  sum over arcs of  its time + price(to) * bytes it keeps - (price(from) - price(to)) * S, at its most
//
// which is a sum of times of arcs and groups like any other: a bound for this side with those times is a bound for
// paths that fit both. Any prices give true bounds.
class PricedSide {
 public:
  // Prices so high that sums of them might overflow count as nothing.
  PricedSide(const Sides& sides, bool is_forward, const std::vector<PriceFrom>& prices, std::int64_t room_bytes);

  bool is_forward() const { return is_forward_; }
  const planner::Episode& episode() const { return episode_; }  // with those times, which may be below 0

  // What a way from a state to the end takes here, as the end of a path: its time less the price of what may be kept
  // before on the other side, where its peak is `other_peak`.
  std::int64_t ps_from(std::uint32_t state, std::int64_t ps, std::int64_t other_peak) const;

  // The same from the middle of an arc, before group `group`, where the arc's own peak is known to be `own_peak` at
  // least, relative to what is kept before the arc.
  struct Within {
    std::uint32_t arc = 0;
    std::size_t group = 0;
    std::int64_t ps = 0;
    std::int64_t other_peak = planner::kNoPeak;
    std::int64_t own_peak = planner::kNoPeak;
  };
  std::int64_t ps_within(const Within& within) const;

 private:
  // What an arc is on the other side.
  struct OtherArc {
    std::int64_t price = 0;  // of what it keeps
    std::int64_t fall = 0;   // of the price; below 0 where it rises
    std::int64_t least_before = 0;
    std::int64_t most_before = 0;
    std::vector<std::int64_t> kept_bytes;  // by group and at the end: the bytes of those before it
    std::vector<std::int64_t> saved_ps;    // and what they cost
  };

  void find_kept(const planner::Episode& other, std::int64_t room_bytes);
  void take_prices(const std::vector<PriceFrom>& prices, const planner::Episode& other);
  void price_arc(planner::Arc& arc, const planner::Arc& same, OtherArc& other) const;

  bool is_forward_;
  std::int64_t room_bytes_;
  planner::Episode episode_;
  std::vector<OtherArc> other_;          // by arc
  std::vector<std::int64_t> prices_;     // by state
  std::vector<std::int64_t> most_kept_;  // by state, on the other side
};

// The graph that hints for one side are about: a mixture, or a side with prices on the other one.
planner::Episode episode_of(const Sides& sides, const SideHints& hints, std::int64_t room_bytes);

}  // namespace tidemark::verify
