#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/plan/plan.h"
#include "tidemark/planner/space.h"
#include "tidemark/step/step.h"

namespace tidemark::verify {

// What a plan costs beyond plain training, added up from the step's events once more: every unit costs what a
// checkpoint costs, what each tensor saved in it costs, and the ops that a recompute runs again. A unit of which
// backward unpacks nothing is not recomputed. Requires: a legal plan.
std::int64_t plan_time_ps(const step::Step& step, const plan::Plan& plan, const planner::Times& times);

// Those ops, in the order of the units. Requires: a legal plan.
std::vector<step::OpId> ops_run_again(const step::Step& step, const plan::Plan& plan);

}  // namespace tidemark::verify
