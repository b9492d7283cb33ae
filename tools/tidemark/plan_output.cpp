#include "plan_output.h"

#include <utility>

namespace tidemark::cli {

void finish_plan(report::PlanReport& report, const planner::PlannerOptions& options, const report::PlanOutput& output) {
  report::PlanFiles files =
      report::write_plan_files({*report.step, report.cost, options, report.result, report.device.name}, output);
  report.output = std::move(files.plan);
  report.certificate = std::move(files.certificate);
  report.no_certificate = std::move(files.no_certificate);
}

ExitCode exit_code_of(planner::Termination termination) {
  if (termination == planner::Termination::kInfeasible) return ExitCode::kInfeasible;
  return planner::has_plan(termination) ? ExitCode::kOk : ExitCode::kLimit;
}

}  // namespace tidemark::cli
