#include "plan_output.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "console.h"
#include "tidemark/step/dump.h"
#include "tidemark/verify/certificate_file.h"

namespace tidemark::cli {

namespace {

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

}  // namespace

void add_output_option(CLI::App& app, std::string& output, const std::string& help) {
  app.add_option("--output,-o", output, help)->type_name("FILE")->check([](const std::string& name) {
    return name.empty() ? std::string("a file has a name") : std::string();
  });
}

void check_output(const std::string& output, const PlanningArguments& planning) {
  if (output.empty()) return;
  for (const std::string& written : {output, verify::certificate_path(output)})
    for (const std::string& read : {planning.step, planning.device, planning.workspace})
      if (is_same_file(written, read))
        throw UsageError({.kind = ErrorKind::kInput,
                          .place = "--output",
                          .problem = "this would overwrite a file that the command reads",
                          .expected = "another file",
                          .got = step::printable(written),
                          .remedy = "-o plan.json"});
}

void finish_plan(report::PlanReport& report, const planner::PlannerOptions& options, const report::PlanOutput& output) {
  report::PlanFiles files =
      report::write_plan_files({*report.step, report.cost, options, report.result, report.device.name}, output);
  report.output = std::move(files.plan);
  report.certificate = std::move(files.certificate);
  report.no_certificate = std::move(files.no_certificate);
  report.removed = std::move(files.removed);
}

ExitCode exit_code_of(planner::Termination termination) {
  if (termination == planner::Termination::kInfeasible) return ExitCode::kInfeasible;
  return planner::has_plan(termination) ? ExitCode::kOk : ExitCode::kLimit;
}

}  // namespace tidemark::cli
