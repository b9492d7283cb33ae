#pragma once

#include <string>

#include "tidemark/cost/step_cost.h"
#include "tidemark/plan/portable_plan.h"
#include "tidemark/planner/planner.h"

namespace tidemark::planner {

// What a plan file says about how a search ended.
plan::PlanFacts facts_of(const step::Step& step, const PlanResult& result, const std::string& device,
                         const PlannerOptions& options);

// The same for a plan that somebody else made: its peak is its budget, its termination "given", and nothing is claimed
// about other plans. Requires: a plan that can be replayed on the step.
plan::PlanFacts facts_of_given(const step::Step& step, const cost::StepCost& cost, const plan::Plan& plan,
                               const std::string& device, const PlannerOptions& options);

}  // namespace tidemark::planner
