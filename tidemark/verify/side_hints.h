#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/verify/unit_ring.h"

namespace tidemark::verify {

// What a certificate says so that bounds of one mixture of the two sides (sides.h) are sharp. Whatever it is, bounds
// are true.
struct SideHints {
  std::int64_t forward_share = 0;         // of kShares: 0 is the graph as it is, kShares as the forward sees it
  std::vector<std::int64_t> prices = {};  // of a kept byte, in 2^-24 ps, above 0 and ascending
  std::int64_t unit_bytes = 0;            // for bounds by whole units; 0: there are none
  RingHint ring = {};                     // for bounds by residues

  friend bool operator==(const SideHints&, const SideHints&) = default;
};
inline constexpr std::size_t kMostPrices = 64;
inline constexpr std::size_t kMostSides = 8;

}  // namespace tidemark::verify
