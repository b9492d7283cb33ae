#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/planner/exact.h"
#include "tidemark/planner/highs.h"
#include "tidemark/planner/linear_model.h"
#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// The problem of the exact search once more, as a mixed-integer program: a second engine that shares nothing with the
// first but the problem, to check it and for steps on which it is quicker.
//
//   x = 1 for the arcs of the path, one unit of flow from the first state to the last; v <= x for every group that is
//   saved on an arc
//   k(state + 1) = k(state) + what the arcs from `state` keep: when a path visits a state, k is what it kept so far
//   for an arc, k + its peak <= budget, where a row is off unless the arc is taken, and for the moment in which a group
//   runs again unless the group is saved; by constants no larger than what k can be there
//
// Doubles are exact here as long as bytes and times stay below about a million; larger ones are divided by a power of
// two, and the path that comes out has to be measured.
struct ExactMilp {
  struct ArcColumns {
    std::uint32_t taken = 0;
    std::uint32_t first_group = 0;  // one column per group from here
  };

  LinearModel linear;
  std::vector<std::vector<ArcColumns>> arcs;  // by episode and arc
  double bytes_scale = 1;                     // what the bytes were multiplied with
  double time_scale = 1;
};
ExactMilp exact_milp(const Problem& problem, std::int64_t budget_bytes);

// The paths that a solution means, one per episode.
std::vector<Path> paths_of(const Problem& problem, const ExactMilp& model, std::span<const double> values);

// What HiGHS says. Times and peaks are measured on the paths, not taken from it; a path may be above the budget by what
// a solver tolerates. `bound_ps` leaves out one part in 10^9 where numbers had to be scaled.
Solution solve_exact_milp(const Problem& problem, std::int64_t budget_bytes, const Highs& highs,
                          const HighsOptions& options = {});

}  // namespace tidemark::planner
