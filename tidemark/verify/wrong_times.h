#pragma once

#include <string>
#include <vector>

#include "tidemark/cost/step_cost.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/planner/space.h"
#include "tidemark/step/step.h"

namespace tidemark::verify {

// Which of a plan file's figures about time are not those of a device, each as a sentence without its period: what the
// plan takes, and which ops count as nothing because they have no price. `times` are those of `cost`. Requires: a legal
// plan.
std::vector<std::string> wrong_times(const step::Step& step, const plan::PlanFile& file, const cost::StepCost& cost,
                                     const planner::Times& times);

}  // namespace tidemark::verify
