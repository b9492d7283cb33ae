#pragma once

#include "exit_code.h"
#include "tidemark/planner/planner.h"
#include "tidemark/report/plan_files.h"
#include "tidemark/report/plan_report.h"

namespace tidemark::cli {

// How every command that ends with a plan ends.

// Checks the plan and writes it, if a file is named; the report then says so.
void finish_plan(report::PlanReport& report, const planner::PlannerOptions& options, const report::PlanOutput& output);

ExitCode exit_code_of(planner::Termination termination);

}  // namespace tidemark::cli
