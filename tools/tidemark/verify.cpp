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
#include "tidemark/report/space_text.h"
#include "tidemark/step/dump.h"
#include "tidemark/verify/certificate_file.h"
#include "tidemark/verify/check_certificate.h"
#include "tidemark/verify/verify_plan.h"
#include "tidemark/verify/wrong_times.h"
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

// A device with what the step's ops take on it.
struct Priced {
  device::Device device;
  cost::StepCost cost;
  planner::Times times;
};

std::optional<Priced> price_on(const VerifyOptions& options, const step::Step& step, const std::string& named) {
  std::optional<device::Device> device = find_named(options, named);
  if (!device) return std::nullopt;
  cost::StepCost cost = cost::price_step(step, *device, options.ranks.price_options());
  planner::Times times = planner::times_of(cost);
  return Priced{std::move(*device), std::move(cost), std::move(times)};
}

const Priced& require_known(const std::optional<Priced>& priced, const std::string& named) {
  if (priced) return *priced;
  throw Error({.kind = ErrorKind::kInput,
               .place = "certificate",
               .problem = "it is about times on a device that is not known here",
               .expected = "a device of `tidemark devices`",
               .got = step::printable(named),
               .remedy = "--device FILE with the device's file"});
}

// What is found out about a plan.
struct Found {
  verify::Verdict verdict;
  std::optional<std::int64_t> reserved_bytes;  // of a plan that promises those
  std::string not_checked;                     // a sentence without its period
};

// A plan keeps its promise only if sizes are rounded up to what the device rounds them to, where that is known.
void check_rounding(const device::Device& device, const plan::PlanFacts& facts, verify::Verdict& verdict) {
  if (facts.against != "rounded" || !facts.rounding_bytes) return;
  if (device.allocator_rounding_bytes.value == *facts.rounding_bytes) return;
  verdict.holds = false;
  verdict.wrong_figures.push_back(fmt::format("the file rounds sizes up to {} B, and {} does to {} B",
                                              *facts.rounding_bytes, device.name,
                                              device.allocator_rounding_bytes.value));
}

// Of reserved bytes there is one model, which is the planner's, too.
void check_reserved(const step::Step& step, const plan::PlanFile& file, const memory::WorkspaceTable* workspace,
                    Found& found) {
  const std::int64_t bytes =
      planner::peak_of(step, file.plan, {.against = planner::Against::kReserved, .workspace = workspace});
  found.reserved_bytes = bytes;
  if (bytes > found.verdict.budget_bytes) found.verdict.holds = false;
  if (bytes != file.facts.peak_bytes)
    found.verdict.wrong_figures.push_back(fmt::format("the file says that {} are reserved, and it is {}",
                                                      format_bytes_exact(file.facts.peak_bytes),
                                                      format_bytes_exact(bytes)));
}

Found check_plan(const step::Step& step, const plan::PlanFile& file, const memory::WorkspaceTable* workspace,
                 const std::optional<Priced>& priced) {
  Found found{.verdict = verify::verify_plan(step, file, workspace), .reserved_bytes = {}, .not_checked = {}};
  if (!found.verdict.violations.empty()) return found;
  if (file.facts.against == "reserved") check_reserved(step, file, workspace, found);
  if (!priced) {
    found.not_checked = fmt::format("its times were not checked: the device {} is not known here (--device FILE)",
                                    step::printable(file.facts.device));
    return found;
  }
  check_rounding(priced->device, file.facts, found.verdict);
  for (std::string& wrong : verify::wrong_times(step, file, priced->cost, priced->times))
    found.verdict.wrong_figures.push_back(fmt::format("{} (on {})", wrong, priced->device.name));
  return found;
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
  const std::string wishes = report::space_text(c.space);
  const std::string of = wishes.empty() ? wishes : ", of plans with " + wishes;
  if (c.claim == Claim::kInfeasible)
    return fmt::format("infeasible, confirmed: the peak of every plan is at least {}, and {} are allowed{}",
                       format_bytes_exact(c.least_peak_bytes), format_bytes_exact(c.room_bytes), of);
  const std::string_view what = c.claim == Claim::kBound ? "the bound is confirmed" : "optimal, confirmed";
  return fmt::format("{}: no plan that fits takes less than {}{}", what, format_duration(c.bound_ps), of);
}

// What there is to check, read before the step is.
struct Given {
  std::optional<plan::PortablePlan> plan;
  std::optional<verify::Certificate> certificate;
};

Given read_given(const VerifyOptions& options) {
  Given given;
  if (!options.plan.empty()) given.plan = plan::read_portable_plan(options.plan);
  if (const std::string path = find_certificate(options); !path.empty())
    given.certificate = verify::read_certificate(path);
  return given;
}

// A model by name runs the kernels of the device that it was planned for, as with `tidemark plan`.
void follow_named(VerifyOptions& options, const Given& given) {
  const std::string& named = given.plan ? given.plan->facts.device : given.certificate->device;
  if (const auto device = find_named(options, named)) follow_device(options.native, device->kind);
}

struct Plan {
  plan::PlanFile file;
  Hash128 hash;
};

std::optional<Plan> find_plan(const VerifyOptions& options, const step::Step& step, const Given& given) {
  if (!given.plan) return std::nullopt;
  return Plan{{plan::find_in(step, *given.plan, options.plan), given.plan->facts, given.plan->fingerprint},
              plan::hash_of(*given.plan)};
}

Json space_json(const planner::SpaceOptions& space) {
  return {{"early_stop", space.early_stop},
          {"rng", planner::kRngNames[static_cast<std::size_t>(space.rng)]},
          {"units", space.units},
          {"not_units", space.not_units},
          {"always_save", space.always_save},
          {"never_save", space.never_save}};
}

Json verdict_json(const std::optional<Found>& found, const std::optional<Checked>& checked) {
  Json json = Json::object();
  if (found) {
    const verify::Verdict& verdict = found->verdict;
    json = {{"holds", verdict.holds},
            {"peak_bytes", verdict.peak_bytes},
            {"budget_bytes", verdict.budget_bytes},
            {"violations", verdict.violations},
            {"first_over", verdict.first_over},
            {"wrong_figures", verdict.wrong_figures},
            {"not_checked", found->not_checked}};
    if (found->reserved_bytes) json["reserved_bytes"] = *found->reserved_bytes;
  }
  if (checked)
    json["certificate"] = {{"claim", verify::name_of(checked->certificate.claim)},
                           {"holds", checked->verdict.holds},
                           {"problem", checked->verdict.problem},
                           {"bound_ps", checked->certificate.bound_ps},
                           {"least_peak_bytes", checked->certificate.least_peak_bytes},
                           {"space", space_json(checked->certificate.space)},
                           {"entries", checked->verdict.entries}};
  return json;
}

std::string peak_text(const Found& found) {
  const std::string peak = format_bytes_exact(found.verdict.peak_bytes);
  const std::string room = format_bytes_exact(found.verdict.budget_bytes);
  if (!found.reserved_bytes) return fmt::format("the peak is {} of {}", peak, room);
  return fmt::format("the peak is {}, for which {} of {} are reserved", peak, format_bytes_exact(*found.reserved_bytes),
                     room);
}

std::string verdict_text(const std::string& name, const std::optional<Found>& found,
                         const std::optional<Checked>& checked) {
  const bool holds = found ? found->verdict.holds : checked->verdict.holds;
  std::string text = fmt::format("{}: {}\n", step::printable(name), holds ? "holds" : "does not hold");
  if (found) {
    const verify::Verdict& verdict = found->verdict;
    for (const std::string& violation : verdict.violations) text += fmt::format("  {}\n", step::printable(violation));
    if (verdict.violations.empty()) text += fmt::format("  {}\n", peak_text(*found));
    if (!verdict.first_over.empty()) text += fmt::format("  first over the budget: {}\n", verdict.first_over);
    for (const std::string& wrong : verdict.wrong_figures) text += fmt::format("  {}\n", step::printable(wrong));
    if (!found->not_checked.empty()) text += fmt::format("  {}\n", found->not_checked);
  }
  if (checked) text += fmt::format("  {}\n", sentence(*checked));
  return text;
}

ExitCode run_verify(VerifyOptions options, const Console& console) {
  if (options.plan.empty() && options.certificate.empty())
    throw UsageError({.kind = ErrorKind::kInput,
                      .place = "tidemark verify",
                      .problem = "there is nothing to check",
                      .expected = "a plan file, or --certificate FILE where nothing fits",
                      .got = {},
                      .remedy = "tidemark verify STEP FILE"});
  const Given given = read_given(options);
  follow_named(options, given);
  const step::Step step = read_step_argument(options.step, options.native);
  const std::optional<Plan> plan = find_plan(options, step, given);
  const std::optional<memory::WorkspaceTable> table = read_workspace_argument(options.workspace, options.step, console);
  const memory::WorkspaceTable* workspace = table ? &*table : nullptr;
  std::optional<Priced> priced;
  std::optional<Found> found;
  if (plan) {
    priced = price_on(options, step, plan->file.facts.device);
    found = check_plan(step, plan->file, workspace, priced);
  }
  std::optional<Checked> checked;
  if (given.certificate) {
    const verify::Certificate& certificate = *given.certificate;
    if (!priced || priced->device.name != certificate.device) priced = price_on(options, step, certificate.device);
    // A plan is checked without the device's times; a proof that was asked for, or stands alone, is not.
    if (!priced && found && options.certificate.empty()) {
      found->not_checked += "; nor was the certificate beside it";
    } else {
      const Priced& known = require_known(priced, certificate.device);
      const verify::CertificateVerdict verdict = verify::check_certificate(
          certificate, {.step = step,
                        .times = known.times,
                        .workspace = workspace,
                        .plan = plan ? &plan->file : nullptr,
                        .plan_hash = plan ? plan->hash : Hash128(),
                        .device_rounding_bytes = known.device.allocator_rounding_bytes.value});
      checked = Checked{certificate, verdict};
    }
  }
  if (console.json())
    console.print_json(verdict_json(found, checked));
  else
    console.print(verdict_text(options.plan.empty() ? options.certificate : options.plan, found, checked));
  const bool holds = (!found || found->verdict.holds) && (!checked || checked->verdict.holds);
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
