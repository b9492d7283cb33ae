#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/planner/convex.h"
#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// What the arc's peak is at least, whatever is saved.
std::int64_t least_peak(const Arc& arc);

// The bytes that may be kept before an arc.
std::int64_t most_before(const Arc& arc, const std::vector<std::int64_t>& floors, std::int64_t budget_bytes);

// The least time of the way to each state, by the bytes it keeps, if parts of groups could be saved: a lower bound for
// what groups as a whole take. Empty where no way there fits the budget.
std::vector<Convex> find_ways(const Episode& episode, const std::vector<std::int64_t>& floors,
                              std::int64_t budget_bytes);

// Prices of a kept byte, by state: what a byte that an arc into it keeps costs, in units of 2^-kPriceBits ps. Never
// rising along the forward. Any such prices give bounds; these are those of the cheapest way in parts.
inline constexpr int kPriceBits = 20;
std::vector<std::int64_t> find_prices(const Episode& episode, const std::vector<std::int64_t>& floors,
                                      std::int64_t budget_bytes, const std::vector<Convex>& ways);

}  // namespace tidemark::planner
