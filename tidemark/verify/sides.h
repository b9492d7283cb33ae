#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/planner/problem.h"

namespace tidemark::verify {

// A part of a step whose paths have to fit twice: as they are, and as the forward sees them while parked tensors are
// there (Problem::forward_episodes). What fits on both sides fits on every mixture of them, so that a bound for a
// mixture alone is one for both.
struct Sides {
  planner::Episode here;
  planner::Episode forward;  // the same states, arcs and groups
};

// Without the arcs of which no path fits on one of the sides.
Sides fitting_sides(const planner::Episode& here, const planner::Episode& forward, std::int64_t room_bytes);

// Mixtures have so many parts, of which a share is the forward's.
inline constexpr std::int64_t kShares = 4096;

// Rounded down.
std::int64_t mixed(std::int64_t here, std::int64_t forward, std::int64_t forward_share);

// The mixture of both sides: what a path comes to in it is at most the mixture of its peaks on the two. What a
// recompute comes to before its end depends on what is saved in another way than what is kept does, and is left out.
planner::Episode mixed(const Sides& sides, std::int64_t forward_share);

// By state: by how much the forward's kept bytes are more than the others, at least and at most, on all ways there.
struct Difference {
  std::vector<std::int64_t> least;
  std::vector<std::int64_t> most;
};
Difference find_difference(const Sides& sides);

}  // namespace tidemark::verify
