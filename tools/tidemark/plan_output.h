#pragma once

#include <string>

#include "exit_code.h"
#include "plan_report.h"

namespace tidemark::cli {

// How every command that ends with a plan ends: the result is replayed once more for its report, the plan is checked by
// code that does not trust the planner, and only then is it written.

PlanReport make_report(std::string file, step::Step step, device::Device device, cost::StepCost cost,
                       const planner::PlannerOptions& options, planner::PlanResult result);

// Where a plan goes, and whether the proof that it is the cheapest goes beside it.
struct PlanOutput {
  std::string path;  // empty: nowhere
  bool has_certificate = true;
};

// Checks the plan, if there is one, and writes it, if a file is named; the report then says so. Where nothing fits, the
// certificate of that is written alone.
// Throws: Error when the plan does not hold, or cannot be written.
void finish_plan(PlanReport& report, const planner::PlannerOptions& options, const PlanOutput& output);

ExitCode exit_code_of(planner::Termination termination);

}  // namespace tidemark::cli
