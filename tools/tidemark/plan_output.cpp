#include "plan_output.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "tidemark/base/atomic_file.h"
#include "tidemark/base/rounding.h"
#include "tidemark/certify/make_certificate.h"
#include "tidemark/memory/replay.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/planner/facts.h"
#include "tidemark/verify/certificate_file.h"
#include "tidemark/verify/verify_plan.h"

namespace tidemark::cli {

namespace {

using planner::Termination;

bool has_plan(Termination termination) {
  return termination == Termination::kFits || termination == Termination::kOptimal ||
         termination == Termination::kFeasible;
}

void check(const PlanReport& report, const std::string& text, const memory::WorkspaceTable* workspace) {
  const verify::Verdict verdict =
      verify::verify_plan(report.step, plan::read_plan_text(text, "the plan", report.step), workspace);
  if (verdict.holds && verdict.wrong_figures.empty()) return;
  std::string problem = "the plan does not hold";
  if (!verdict.violations.empty()) problem += ": " + verdict.violations.front();
  if (!verdict.first_over.empty()) problem += ": " + verdict.first_over;
  if (!verdict.wrong_figures.empty()) problem += ": " + verdict.wrong_figures.front();
  throw Error({.kind = ErrorKind::kInternal,
               .place = "verify",
               .problem = std::move(problem),
               .expected = "a plan that does",
               .got = {},
               .remedy = "please report this with the step"});
}

// Beside the plan, instead of one that may be there for an earlier plan.
void write_certificate(PlanReport& report, const planner::PlannerOptions& options, const PlanOutput& output,
                       const Hash128& plan_hash) {
  const std::string path = verify::certificate_path(output.path);
  certify::Certified made;
  if (output.has_certificate)
    made = certify::make_certificate(report.step, report.cost, options, report.result, report.device.name, plan_hash);
  report.no_certificate = made.reason;
  if (made.certificate) {
    write_file_atomically(path, verify::write_certificate(*made.certificate));
    report.certificate = path;
  } else if (std::error_code error; std::filesystem::is_regular_file(path, error)) {
    std::filesystem::remove(path, error);
  }
}

}  // namespace

PlanReport make_report(std::string file, step::Step step, device::Device device, cost::StepCost cost,
                       const planner::PlannerOptions& options, planner::PlanResult result) {
  PlanReport report{.file = std::move(file),
                    .step = std::move(step),
                    .device = std::move(device),
                    .cost = std::move(cost),
                    .budget_bytes = options.budget_bytes,
                    .reserve_bytes = options.reserve_bytes,
                    .against = options.against,
                    .method = options.method.method,
                    .result = std::move(result),
                    .timeline = {},
                    .is_short = false,
                    .output = {},
                    .certificate = {},
                    .no_certificate = {}};
  report.timeline =
      memory::replay(report.step, report.result.plan,
                     {.workspace = options.workspace,
                      .round_to_bytes = options.against == planner::Against::kExact ? 1 : kCudaRoundingBytes,
                      .keep_alive_at_peak = false});
  return report;
}

void finish_plan(PlanReport& report, const planner::PlannerOptions& options, const PlanOutput& output) {
  const planner::PlanResult& result = report.result;
  const bool is_there = has_plan(result.termination);
  if (!is_there && (output.path.empty() || result.termination != Termination::kInfeasible)) return;
  Hash128 hash;
  if (is_there) {
    const plan::PortablePlan portable =
        plan::describe(report.step, result.plan, planner::facts_of(report.step, result, report.device.name, options));
    const std::string text = plan::write_plan(portable);
    check(report, text, options.workspace);
    if (output.path.empty()) return;
    hash = plan::hash_of(portable);
    write_file_atomically(output.path, text);
    report.output = output.path;
  }
  write_certificate(report, options, output, hash);
}

ExitCode exit_code_of(Termination termination) {
  if (termination == Termination::kInfeasible) return ExitCode::kInfeasible;
  return has_plan(termination) ? ExitCode::kOk : ExitCode::kLimit;
}

}  // namespace tidemark::cli
