#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// A path through an episode: what it takes, and what it comes to.

// One step of a path.
struct ArcUse {
  std::uint32_t arc = 0;
  std::vector<std::uint32_t> saved;  // of the arc's groups, ascending

  friend bool operator==(const ArcUse&, const ArcUse&) = default;
};
using Path = std::vector<ArcUse>;

// What a path means.
struct PathFigures {
  std::int64_t peak_bytes = 0;
  std::int64_t time_ps = 0;
  std::int64_t kept_bytes = 0;
};
PathFigures measure(const Episode& episode, const Path& path);

}  // namespace tidemark::planner
