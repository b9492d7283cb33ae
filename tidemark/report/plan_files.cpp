#include "tidemark/report/plan_files.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "tidemark/base/atomic_file.h"
#include "tidemark/base/error.h"
#include "tidemark/certify/make_certificate.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/planner/facts.h"
#include "tidemark/verify/certificate_file.h"
#include "tidemark/verify/verify_plan.h"

namespace tidemark::report {

namespace {

void check(const step::Step& step, const std::string& text, const memory::WorkspaceTable* workspace) {
  const verify::Verdict verdict = verify::verify_plan(step, plan::read_plan_text(text, "the plan", step), workspace);
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

bool is_certificate(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  try {
    verify::read_certificate(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// What is no certificate is left alone.
void remove_certificate(const std::string& plan_path) {
  const std::string path = verify::certificate_path(plan_path);
  std::error_code error;
  if (is_certificate(path)) std::filesystem::remove(path, error);
}

// Beside the plan, instead of one that may be there for an earlier plan.
void write_certificate(const Searched& searched, const PlanOutput& output, const Hash128& plan_hash, PlanFiles& files) {
  std::error_code unknown;
  if (std::filesystem::exists(output.path, unknown) && !std::filesystem::is_regular_file(output.path, unknown)) {
    if (output.has_certificate) files.no_certificate = "the plan goes to no regular file, so nothing can lie beside it";
    return;
  }
  const std::string path = verify::certificate_path(output.path);
  certify::Certified made;
  if (output.has_certificate)
    made = certify::make_certificate(searched.step, searched.cost, searched.options, searched.result, searched.device,
                                     plan_hash);
  files.no_certificate = made.reason;
  if (made.certificate) {
    write_file_atomically(path, verify::write_certificate(*made.certificate));
    files.certificate = path;
  } else {
    remove_certificate(output.path);
  }
}

bool is_plan(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  try {
    plan::read_portable_plan(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A plan of before would be taken for the answer to this question. What is no plan is left alone.
void remove_earlier(const std::string& path, PlanFiles& files) {
  std::error_code error;
  if (is_plan(path) && std::filesystem::remove(path, error)) files.removed = path;
}

}  // namespace

plan::PortablePlan checked_plan(const step::Step& step, const planner::PlanResult& result, const std::string& device,
                                const planner::PlannerOptions& options) {
  plan::PortablePlan words = plan::describe(step, result.plan, planner::facts_of(step, result, device, options));
  check(step, plan::write_plan(words), options.workspace);
  return words;
}

PlanFiles write_plan_files(const Searched& searched, const PlanOutput& output) {
  const planner::Termination end = searched.result.termination;
  const bool is_there = planner::has_plan(end);
  PlanFiles files;
  if (!is_there && output.path.empty()) return files;
  if (!is_there) remove_earlier(output.path, files);
  if (!is_there && end != planner::Termination::kInfeasible) {
    if (!files.removed.empty()) remove_certificate(output.path);
    return files;
  }
  Hash128 hash;
  if (is_there) {
    const plan::PortablePlan words = checked_plan(searched.step, searched.result, searched.device, searched.options);
    if (output.path.empty()) return files;
    hash = plan::hash_of(words);
    write_file_atomically(output.path, plan::write_plan(words));
    files.plan = output.path;
  }
  write_certificate(searched, output, hash, files);
  return files;
}

}  // namespace tidemark::report
