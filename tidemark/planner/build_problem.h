#pragma once

#include <cstdint>

#include "tidemark/memory/workspace.h"
#include "tidemark/planner/problem.h"
#include "tidemark/planner/space.h"
#include "tidemark/step/step.h"

namespace tidemark::planner {

struct ProblemOptions {
  const memory::WorkspaceTable* workspace = nullptr;
  std::int64_t round_to_bytes = 1;
  std::size_t max_patterns = 64;   // of shared tensors held or not, at one place
  std::size_t max_shared = 5;      // of these tensors, where there are more patterns
  std::size_t max_conditions = 6;  // groups of one unit whose effect is not a plain sum, tried both ways each
  bool cut_parked = false;         // see MomentsOptions: fewer of them, and peaks too low in the forward
  std::size_t least_parked = 1;
};

// What replays of all plans of the space say, as a graph. The rules are those of docs/how_memory_is_counted.md; how
// they become sums is in docs/how_plans_are_found.md.
Problem build_problem(const step::Step& step, const Space& space, const ProblemOptions& options = {});

// The same with the fewest groups saved for nothing: with what is parked cut, unless that is little, and in a small
// step with more tried both ways.
Problem build_sharpest_problem(const step::Step& step, const Space& space, const ProblemOptions& options = {});

// Where everything may take many times as long.
bool is_small_step(const step::Step& step, const Space& space);

}  // namespace tidemark::planner
