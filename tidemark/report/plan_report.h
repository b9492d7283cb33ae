#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tidemark/cost/step_cost.h"
#include "tidemark/device/device.h"
#include "tidemark/memory/timeline.h"
#include "tidemark/planner/planner.h"
#include "tidemark/report/json.h"
#include "tidemark/report/text_layout.h"
#include "tidemark/step/step.h"

namespace tidemark::report {

// What a search for a plan found, for people and for programs: what `tidemark plan` prints, and what Python says of a
// PlanResult.

// All that there is to say, before it is words.
struct PlanReport {
  std::string file;
  std::shared_ptr<const step::Step> step;
  device::Device device;
  cost::StepCost cost;
  std::int64_t budget_bytes = 0;
  std::int64_t reserve_bytes = 0;
  planner::Against against = planner::Against::kExact;
  std::int64_t rounding_bytes = 1;  // what sizes are rounded up to
  planner::Method method = planner::Method::kExact;
  std::string wishes;  // options that leave plans out, as they are typed; empty: none
  planner::PlanResult result;
  memory::Timeline timeline;   // under the plan
  bool is_short = false;       // leaves out the policies, since more follows
  std::string output;          // the plan file, if one was written
  std::string certificate;     // its certificate's file, if one was written
  std::string no_certificate;  // why there is none, if one was asked for
  std::string removed;         // a plan file of before that is no answer to this
};

// The result is replayed once more, for what holds its peak.
PlanReport make_report(std::string file, std::shared_ptr<const step::Step> step, device::Device device,
                       cost::StepCost cost, const planner::PlannerOptions& options, planner::PlanResult result);

// The ops without a price, after an empty line; nothing where there are none.
std::string unpriced_section(const PlanReport& report, const Style& style);

std::string plan_text(const PlanReport& report, const Style& style);
Json plan_json(const PlanReport& report);

}  // namespace tidemark::report
