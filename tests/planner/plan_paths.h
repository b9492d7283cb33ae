#pragma once

#include <optional>
#include <vector>

#include "tidemark/plan/plan.h"
#include "tidemark/planner/path.h"
#include "tidemark/planner/problem.h"
#include "tidemark/planner/space.h"

namespace tidemark::test {

// What the planner's model of a step says of a plan that somebody else made, to be compared with a replay.

// The paths that mean a plan, if the problem has them: plans that save what is never worth saving are left out.
std::optional<std::vector<planner::Path>> paths_of(const planner::Space& space, const planner::Problem& problem,
                                                   const plan::Plan& plan);

std::optional<planner::PathFigures> model_of_plan(const planner::Space& space, const planner::Problem& problem,
                                                  const plan::Plan& plan);

}  // namespace tidemark::test
