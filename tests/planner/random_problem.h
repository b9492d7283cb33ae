#pragma once

#include <cstdint>

#include "../support/random.h"
#include "tidemark/planner/problem.h"

namespace tidemark::test {

// How large the numbers of a random problem are.
struct ProblemScale {
  std::int64_t most = 20;
  int max_states = 5;
  int max_groups = 5;
};

// A graph made at random in which everything that may bind does: arcs that overlap, groups with peaks of every kind,
// arcs on which something has to be saved.
planner::Episode random_episode(Random& random, const ProblemScale& scale);

// The other side of one: the same arcs with other bytes, and with the peaks of a forward only. Groups that are parked
// keep nothing when they are saved, since the arc keeps them anyway.
planner::Episode random_forward(const planner::Episode& episode, Random& random, std::int64_t most);

}  // namespace tidemark::test
