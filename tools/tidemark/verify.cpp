// tidemark verify STEP PLAN: whether a plan keeps its promise, without trusting who made it.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "commands.h"
#include "ranks_argument.h"
#include "step_argument.h"
#include "tidemark/base/bytes.h"
#include "tidemark/base/duration.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/catalog.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/planner/planner.h"
#include "tidemark/step/dump.h"
#include "tidemark/verify/certificate_file.h"
#include "tidemark/verify/check_certificate.h"
#include "tidemark/verify/verify_plan.h"
#include "workspace_argument.h"

namespace tidemark::cli {

namespace {

struct VerifyOptions {
  std::string step;
  std::string plan;
  std::string certificate;
  std::string device;
  std::string workspace;
  RanksArgument ranks;
  NativeOptions native;
};

// The certificate that was named, or the one that lies beside the plan, if any.
std::string find_certificate(const VerifyOptions& options) {
  if (!options.certificate.empty()) return options.certificate;
  const std::string beside = verify::certificate_path(options.plan);
  std::error_code error;
  return std::filesystem::exists(beside, error) ? beside : std::string();
}

// The device that was said, or the built-in one of that name.
std::optional<device::Device> find_named(const VerifyOptions& options, const std::string& named) {
  if (!options.device.empty()) return device::find_device(options.device);
  for (const device::Device& device : device::built_in_devices())
    if (device.name == named) return device;
  return std::nullopt;
}

planner::Times times_on(const VerifyOptions& options, const step::Step& step, const std::string& named) {
  if (const auto device = find_named(options, named))
    return planner::times_of(cost::price_step(step, *device, options.ranks.price_options()));
  throw Error({.kind = ErrorKind::kInput,
               .place = "certificate",
               .problem = "it is about times on a device that is not known here",
               .expected = "a device of `tidemark devices`",
               .got = step::printable(named),
               .remedy = "--device FILE with the device's file"});
}

// A plan keeps its promise only if sizes are rounded up to what the device rounds them to, where that is known.
void check_rounding(const VerifyOptions& options, const plan::PlanFacts& facts, verify::Verdict& verdict) {
  if (facts.against != "rounded" || !facts.rounding_bytes) return;
  const auto device = find_named(options, facts.device);
  if (!device || device->allocator_rounding_bytes.value == *facts.rounding_bytes) return;
  verdict.holds = false;
  verdict.wrong_figures.push_back(fmt::format("the file rounds sizes up to {} B, and {} does to {} B",
                                              *facts.rounding_bytes, device->name,
                                              device->allocator_rounding_bytes.value));
}

struct Checked {
  verify::Certificate certificate;
  verify::CertificateVerdict verdict;
};

std::string sentence(const Checked& checked) {
  using verify::Claim;
  const verify::Certificate& c = checked.certificate;
  if (!checked.verdict.holds)
    return fmt::format("the certificate does not hold: {}", step::printable(checked.verdict.problem));
  if (c.claim == Claim::kInfeasible)
    return fmt::format("infeasible, confirmed: the peak of every plan is at least {}, and {} are allowed",
                       format_bytes_exact(c.least_peak_bytes), format_bytes_exact(c.room_bytes));
  if (c.claim == Claim::kBound)
    return fmt::format("the bound is confirmed: no plan that fits takes less than {}", format_duration(c.bound_ps));
  return fmt::format("optimal, confirmed: no plan that fits takes less than {}", format_duration(c.bound_ps));
}

struct Plan {
  plan::PlanFile file;
  Hash128 hash;
};

std::optional<Plan> read_plan_argument(const VerifyOptions& options, const step::Step& step) {
  if (options.plan.empty()) return std::nullopt;
  const plan::PortablePlan portable = plan::read_portable_plan(options.plan);
  return Plan{{plan::find_in(step, portable, options.plan), portable.facts, portable.fingerprint},
              plan::hash_of(portable)};
}

Json verdict_json(const std::optional<verify::Verdict>& verdict, const std::optional<Checked>& checked) {
  Json json = Json::object();
  if (verdict)
    json = {{"holds", verdict->holds},
            {"peak_bytes", verdict->peak_bytes},
            {"budget_bytes", verdict->budget_bytes},
            {"violations", verdict->violations},
            {"first_over", verdict->first_over},
            {"wrong_figures", verdict->wrong_figures}};
  if (checked)
    json["certificate"] = {{"claim", verify::name_of(checked->certificate.claim)},
                           {"holds", checked->verdict.holds},
                           {"problem", checked->verdict.problem},
                           {"bound_ps", checked->certificate.bound_ps},
                           {"least_peak_bytes", checked->certificate.least_peak_bytes},
                           {"entries", checked->verdict.entries}};
  return json;
}

std::string verdict_text(const std::string& name, const std::optional<verify::Verdict>& verdict,
                         const std::optional<Checked>& checked) {
  const bool holds = verdict ? verdict->holds : checked->verdict.holds;
  std::string text = fmt::format("{}: {}\n", step::printable(name), holds ? "holds" : "does not hold");
  if (verdict) {
    for (const std::string& violation : verdict->violations) text += fmt::format("  {}\n", step::printable(violation));
    if (verdict->violations.empty())
      text += fmt::format("  the peak is {} of {}\n", format_bytes_exact(verdict->peak_bytes),
                          format_bytes_exact(verdict->budget_bytes));
    if (!verdict->first_over.empty()) text += fmt::format("  first over the budget: {}\n", verdict->first_over);
    for (const std::string& wrong : verdict->wrong_figures) text += fmt::format("  {}\n", wrong);
  }
  if (checked) text += fmt::format("  {}\n", sentence(*checked));
  return text;
}

ExitCode run_verify(const VerifyOptions& options, const Console& console) {
  if (options.plan.empty() && options.certificate.empty())
    throw UsageError({.kind = ErrorKind::kInput,
                      .place = "tidemark verify",
                      .problem = "there is nothing to check",
                      .expected = "a plan file, or --certificate FILE where nothing fits",
                      .got = {},
                      .remedy = "tidemark verify STEP FILE"});
  const step::Step step = read_step_argument(options.step, options.native);
  const std::optional<Plan> plan = read_plan_argument(options, step);
  const std::optional<memory::WorkspaceTable> table = read_workspace_argument(options.workspace, options.step, console);
  const memory::WorkspaceTable* workspace = table ? &*table : nullptr;
  std::optional<verify::Verdict> verdict;
  if (plan) {
    verdict = verify::verify_plan(step, plan->file, workspace);
    check_rounding(options, plan->file.facts, *verdict);
  }
  std::optional<Checked> checked;
  if (const std::string path = find_certificate(options); !path.empty()) {
    verify::Certificate certificate = verify::read_certificate(path);
    const planner::Times times = times_on(options, step, certificate.device);
    const verify::CertificateVerdict found =
        verify::check_certificate(certificate, {.step = step,
                                                .times = times,
                                                .workspace = workspace,
                                                .plan = plan ? &plan->file : nullptr,
                                                .plan_hash = plan ? plan->hash : Hash128()});
    checked = Checked{std::move(certificate), found};
  }
  if (console.json())
    console.print_json(verdict_json(verdict, checked));
  else
    console.print(verdict_text(options.plan.empty() ? options.certificate : options.plan, verdict, checked));
  const bool holds = (!verdict || verdict->holds) && (!checked || checked->verdict.holds);
  return holds ? ExitCode::kOk : ExitCode::kError;
}

}  // namespace

Command add_verify(CLI::App& root) {
  CLI::App* app = new_command(
      root,
      {.name = "verify",
       .summary = "Check that a plan keeps its promise, without trusting who made it",
       .examples = {
           {{"build/tidemark verify examples/steps/two_layer_mlp.step.jsonl examples/plans/mlp.json",
             "a recorded step"},
            {"build/tidemark verify gpt2 examples/plans/gpt2.json --batch 8 --target cuda", "a built-in model"},
            {"build/tidemark verify gpt2 examples/plans/gpt2.json --batch 8 --target cuda --json", "for scripts"}}}});
  const auto options = std::make_shared<VerifyOptions>();
  app->add_option(std::string(kStepName), options->step, kStepHelp)->required();
  app->add_option("FILE", options->plan, "a plan file");
  app->add_option("--certificate", options->certificate,
                  "also check this proof; by default the one beside the plan, if it is there")
      ->type_name("FILE");
  app->add_option("--device", options->device, "whose times the certificate is about, if its name is not enough")
      ->type_name("DEVICE");
  add_ranks_options(*app, options->ranks);
  app->add_option("--workspace", options->workspace,
                  "kernels' scratch memory; by default STEP.workspace.jsonl, if it is there")
      ->type_name("FILE");
  add_native_options(*app, options->native);
  return {app, [options](Console& console) { return run_verify(*options, console); }};
}

}  // namespace tidemark::cli
