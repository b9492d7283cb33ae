#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/sac/greedy_order.h"

namespace tidemark::sac {

// No choice of groups gives up as many bytes in less time.
struct FrontierPoint {
  std::int64_t given_up_bytes = 0;
  std::int64_t recompute_ps = 0;
  friend bool operator==(const FrontierPoint&, const FrontierPoint&) = default;
};

struct FrontierOptions {
  std::size_t max_points = std::size_t{1} << 20;
};

struct Frontier {
  std::vector<FrontierPoint> points;  // ascending in both; the first is what is always recomputed
  bool is_complete = true;            // false: more than max_points would have been needed on the way, none are given
};

// Every trade between bytes and time that is worth taking in this module, not only those the greedy order comes by.
Frontier exact_frontier(const ModuleOperators& operators, const GreedyOrder& order,
                        const FrontierOptions& options = {});

}  // namespace tidemark::sac
