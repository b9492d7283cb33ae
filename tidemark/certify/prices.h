#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/planner/problem.h"
#include "tidemark/verify/side_hints.h"
#include "tidemark/verify/sides.h"
#include "tidemark/verify/unit_ring.h"

namespace tidemark::certify {

// Prices of a kept byte that give sharp bounds for an episode under a budget, in the units of verify/time_lines.h,
// above 0 and ascending: what the last bytes are worth on the ways to its states if parts of groups could be saved,
// around what the cheapest of these ways pays. `floors` has the smallest peak from each state.
std::vector<std::int64_t> choose_prices(const planner::Episode& episode, const std::vector<std::int64_t>& floors,
                                        std::int64_t room_bytes);

// What a kept byte is worth on the other side of either one (verify/priced_side.h), at the mixture of that share.
struct OtherPrices {
  std::vector<verify::PriceFrom> of_here;     // on the forward's bytes
  std::vector<verify::PriceFrom> of_forward;  // on those of the graph as it is
};
OtherPrices choose_other_prices(const verify::Sides& sides, std::int64_t room_bytes, std::int64_t forward_share);

// A size that most of the episode's sizes are close above a multiple of, for bounds by whole units.
std::int64_t choose_unit(const planner::Episode& episode, std::int64_t room_bytes);

// What the search would take residues by (planner/residues.h) for paths up to a target; without a unit where it would
// take none.
verify::RingHint choose_ring(planner::Episode episode, std::int64_t room_bytes, std::int64_t target_ps,
                             std::int64_t max_cells = verify::kMostRingCells / 2);

}  // namespace tidemark::certify
