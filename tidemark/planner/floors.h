#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tidemark/planner/path.h"
#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// The smallest peaks that paths can have: told from the last state to the first, with no budget and no times.

// The smallest peak of an arc when the smallest one after it is `after`. With `saved`, also the groups it takes.
std::int64_t floor_of(const Arc& arc, std::int64_t after, std::vector<std::uint32_t>* saved = nullptr);

// By state: the smallest peak of any path from there, relative to what is kept before; kNoPath where there is none.
inline constexpr std::int64_t kNoPath = std::numeric_limits<std::int64_t>::max();
std::vector<std::int64_t> find_floors(const Episode& episode);

// A path with the smallest peak: the fastest of those that have the smallest one from each of their states on. There
// must be one.
Path floor_path(const Episode& episode, const std::vector<std::int64_t>& floors);

}  // namespace tidemark::planner
