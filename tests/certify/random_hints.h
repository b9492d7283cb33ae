#pragma once

#include <cstdint>
#include <vector>

#include "../support/random.h"
#include "tidemark/verify/side_hints.h"

namespace tidemark::test {

// Prices on the other side as nobody would choose them: they rise and fall, and some are as high as a file may say.
inline std::vector<verify::PriceFrom> random_other_prices(Random& random, std::int64_t most_price, int price_bits) {
  std::vector<verify::PriceFrom> prices;
  std::int64_t state = random.between(0, 1);
  for (std::int64_t i = random.between(1, 4); i > 0; --i) {
    const std::int64_t price =
        random.chance(5) ? std::int64_t{1} << 58 : random.between(0, most_price) << random.between(0, price_bits);
    prices.push_back({state, price});
    state += random.between(1, 3);
  }
  return prices;
}

}  // namespace tidemark::test
