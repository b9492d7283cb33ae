#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "console.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/device.h"
#include "tidemark/memory/timeline.h"
#include "tidemark/planner/planner.h"
#include "tidemark/step/step.h"

namespace tidemark::cli {

// All that `tidemark plan` has to say, before it is words.
struct PlanReport {
  std::string file;
  step::Step step;
  device::Device device;
  cost::StepCost cost;
  std::int64_t budget_bytes = 0;
  std::int64_t reserve_bytes = 0;
  planner::Against against = planner::Against::kExact;
  planner::Method method = planner::Method::kExact;
  planner::PlanResult result;
  memory::Timeline timeline;   // under the plan
  bool is_short = false;       // leaves out the policies, since more follows
  std::string output;          // the plan file, if one was written
  std::string certificate;     // its certificate's file, if one was written
  std::string no_certificate;  // why there is none, if one was asked for
};

std::string plan_text(const PlanReport& report, const Console& console);
Json plan_json(const PlanReport& report);

}  // namespace tidemark::cli
