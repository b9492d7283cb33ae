#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/verify/unit_ring.h"

namespace tidemark::verify {

// A price of a kept byte, in 2^-24 ps, from a state on, up to the next that is named.
struct PriceFrom {
  std::int64_t state = 0;
  std::int64_t price = 0;

  friend bool operator==(const PriceFrom&, const PriceFrom&) = default;
};

// What a certificate says so that bounds of one mixture of the two sides (sides.h), or of one of them, are sharp.
// Whatever it is, bounds are true.
struct SideHints {
  std::int64_t forward_share = 0;         // of kShares: 0 is the graph as it is, kShares as the forward sees it
  std::vector<std::int64_t> prices = {};  // of a kept byte, in 2^-24 ps, above 0 and ascending
  std::int64_t unit_bytes = 0;            // for bounds by whole units; 0: there are none
  RingHint ring = {};                     // for bounds by residues
  // Of one side: prices on the bytes of the other one (priced_side.h), by ascending states; none: there are none.
  std::vector<PriceFrom> other_prices = {};

  friend bool operator==(const SideHints&, const SideHints&) = default;
};
inline constexpr std::size_t kMostPrices = 64;
inline constexpr std::size_t kMostSides = 8;
inline constexpr std::size_t kMostOtherPrices = 4096;
inline constexpr std::int64_t kMostStates = std::int64_t{1} << 32;

}  // namespace tidemark::verify
