// tidemark plan STEP --device DEVICE --budget BUDGET: the cheapest plan that fits.

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "commands.h"
#include "highs_argument.h"
#include "plan_report.h"
#include "step_argument.h"
#include "tidemark/base/atomic_file.h"
#include "tidemark/base/bytes.h"
#include "tidemark/base/rounding.h"
#include "tidemark/device/catalog.h"
#include "tidemark/memory/replay.h"
#include "tidemark/memory/workspace_file.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/planner/facts.h"
#include "tidemark/verify/verify_plan.h"
#include "workspace_argument.h"

namespace tidemark::cli {

namespace {

struct PlanOptions {
  std::string step;
  std::string device;
  std::string budget;
  std::string reserve;
  std::string against;
  std::string workspace;
  std::string output;
  std::vector<std::string> units;
  std::vector<std::string> not_units;
  std::vector<std::string> always_save;
  std::vector<std::string> never_save;
  std::string rng = "when-needed";
  bool no_early_stop = false;
  bool is_explained = false;
  std::size_t max_work = 20'000'000;
  std::string method = "exact";
  std::string highs;
  std::size_t world_size = 1;
  bool counts_stale = false;
  std::string mps;
  std::string lp;
  NativeOptions native;
};

planner::Against against_of(const PlanOptions& options, const device::Device& device) {
  for (std::size_t i = 0; i < planner::kAgainstNames.size(); ++i)
    if (planner::kAgainstNames[i] == options.against) return static_cast<planner::Against>(i);
  return device.kind == device::DeviceKind::kCpu ? planner::Against::kExact : planner::Against::kRounded;
}

planner::RngRule rng_of(const std::string& word) {
  if (word == "always") return planner::RngRule::kAlways;
  return word == "never" ? planner::RngRule::kNever : planner::RngRule::kWhenNeeded;
}

planner::Method method_of(const std::string& word) {
  for (std::size_t i = 0; i < planner::kMethodNames.size(); ++i)
    if (planner::kMethodNames[i] == word) return static_cast<planner::Method>(i);
  return planner::Method::kExact;
}

// Before anything is solved, so that a model can be had without a solver.
void write_model(const PlanReport& report, const PlanOptions& options, const planner::PlannerOptions& wishes) {
  if (options.mps.empty() && options.lp.empty()) return;
  const std::optional<planner::LinearModel> model = planner::method_model(report.step, report.cost, wishes);
  if (!model)
    throw Error({.kind = ErrorKind::kInput,
                 .place = "--budget",
                 .problem = "there is no model to write: the budget is below what no plan can change",
                 .expected = {},
                 .got = options.budget,
                 .remedy = "a larger budget"});
  if (!options.mps.empty()) write_file_atomically(options.mps, planner::mps_text(*model));
  if (!options.lp.empty()) write_file_atomically(options.lp, planner::lp_text(*model));
}

// The plan is checked by code that does not trust the planner before anyone gets it.
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

ExitCode run_plan(PlanOptions options, const Console& console) {
  const device::Device device = device::find_device(options.device);
  follow_device(options.native, device.kind);
  const std::int64_t budget_bytes = parse_budget(options.budget, "--budget").bytes_on(device.memory_bytes.value);
  const std::int64_t reserve_bytes =
      options.reserve.empty() ? device.overhead_bytes.value : parse_bytes(options.reserve, "--reserve");
  PlanReport report{.file = options.step,
                    .step = read_step_argument(options.step, options.native),
                    .device = device,
                    .cost = {},
                    .budget_bytes = budget_bytes,
                    .reserve_bytes = reserve_bytes,
                    .against = against_of(options, device),
                    .method = method_of(options.method),
                    .result = {},
                    .timeline = {},
                    .is_explained = options.is_explained,
                    .output = options.output};
  report.cost = cost::price_step(report.step, device);
  const std::optional<memory::WorkspaceTable> table = read_workspace_argument(options.workspace, options.step, console);
  const memory::WorkspaceTable* workspace = table ? &*table : nullptr;
  planner::PlannerOptions wishes{.budget_bytes = budget_bytes,
                                 .reserve_bytes = reserve_bytes,
                                 .against = report.against,
                                 .workspace = workspace,
                                 .space = {.early_stop = !options.no_early_stop,
                                           .rng = rng_of(options.rng),
                                           .units = options.units,
                                           .not_units = options.not_units,
                                           .always_save = options.always_save,
                                           .never_save = options.never_save},
                                 .max_work = static_cast<std::int64_t>(options.max_work),
                                 .method = {.method = report.method,
                                            .world_size = static_cast<std::int64_t>(options.world_size),
                                            .counts_stale = options.counts_stale}};
  write_model(report, options, wishes);
  std::optional<planner::Highs> highs;
  if (planner::needs_highs(report.method)) highs.emplace(find_highs(options.highs));
  wishes.method.highs = highs ? &*highs : nullptr;
  report.result = planner::plan_step(report.step, report.cost, wishes);
  const planner::PlanResult& result = report.result;
  report.timeline =
      memory::replay(report.step, result.plan,
                     {.workspace = workspace,
                      .round_to_bytes = report.against == planner::Against::kExact ? 1 : kCudaRoundingBytes,
                      .keep_alive_at_peak = false});
  const bool has_plan = result.termination == planner::Termination::kFits ||
                        result.termination == planner::Termination::kOptimal ||
                        result.termination == planner::Termination::kFeasible;
  if (has_plan) {
    const std::string text =
        plan::write_plan(report.step, result.plan, planner::facts_of(report.step, result, device.name, wishes));
    check(report, text, workspace);
    if (!options.output.empty()) write_file_atomically(options.output, text);
  } else {
    report.output.clear();
  }
  if (console.json()) {
    console.print_json(plan_json(report));
  } else {
    console.print(plan_text(report, console));
  }
  if (result.termination == planner::Termination::kInfeasible) return ExitCode::kInfeasible;
  return has_plan ? ExitCode::kOk : ExitCode::kLimit;
}

}  // namespace

Command add_plan(CLI::App& root) {
  CLI::App* app = new_command(
      root, {.name = "plan",
             .summary = "Find the cheapest recompute that fits a budget",
             .examples = {{{"build/tidemark plan gpt2 --batch 8 --device t4 --budget 90%", "a built-in model"},
                           {"build/tidemark plan vit-b-16 --batch 64 --device t4 --budget 8GB --explain", "why so"},
                           {"build/tidemark plan examples/steps/two_layer_mlp.step.jsonl --device cpu --budget 2KiB",
                            "a recorded step"}}}});
  const auto options = std::make_shared<PlanOptions>();
  app->add_option(std::string(kStepName), options->step, kStepHelp)->required();
  app->add_option("--device", options->device, "the device: a name (tidemark devices), or the path of a device file")
      ->type_name("DEVICE")
      ->required();
  app->add_option("--budget", options->budget, "the memory there is: 70GiB, 80GB, or 90% of the device's")
      ->type_name("BUDGET")
      ->required();
  app->add_option("--reserve", options->reserve, "of the budget, not for tensors; by default the device's overhead")
      ->type_name("BYTES");
  app->add_option("--against", options->against, "which bytes: exact (default on a CPU), rounded (default) or reserved")
      ->type_name("BYTES")
      ->check(CLI::IsMember({"exact", "rounded", "reserved"}));
  app->add_option("--output,-o", options->output, "write the plan to FILE")->type_name("FILE");
  app->add_flag("--explain", options->is_explained, "also tell about the search");
  app->add_option("--units", options->units, "only modules that match PATTERN may be checkpointed")
      ->type_name("PATTERN");
  app->add_option("--not-units", options->not_units, "modules that match PATTERN may not")->type_name("PATTERN");
  app->add_option("--always-save", options->always_save, "never recompute ops that match FQN::OP")
      ->type_name("PATTERN");
  app->add_option("--never-save", options->never_save, "never save ops that match FQN::OP")->type_name("PATTERN");
  app->add_option("--rng", options->rng, "keep the random state when-needed (default), always or never")
      ->type_name("RULE")
      ->check(CLI::IsMember({"when-needed", "always", "never"}));
  app->add_flag("--no-early-stop", options->no_early_stop, "run units again to their end");
  add_count(*app, "--max-work", options->max_work, "stop the search after N entries");
  std::vector<std::string> methods(planner::kMethodNames.begin(), planner::kMethodNames.end());
  app->add_option("--method", options->method, "exact (default), or another one to compare it with")
      ->type_name("METHOD")
      ->check(CLI::IsMember(methods));
  app->add_option("--highs", options->highs, "the library of the solver HiGHS, for milp and exact-milp")
      ->type_name("PATH");
  add_count(*app, "--world-size", options->world_size, "milp: divide parameters and gradients by N");
  app->add_flag("--count-stale", options->counts_stale, "milp: count what is held from the step before");
  app->add_option("--write-mps", options->mps, "write the program that milp or exact-milp solves to FILE")
      ->type_name("FILE");
  app->add_option("--write-lp", options->lp, "the same in LP format")->type_name("FILE");
  app->add_option("--workspace", options->workspace,
                  "kernels' scratch memory; by default STEP.workspace.jsonl, if it is there")
      ->type_name("FILE");
  add_native_options(*app, options->native);
  return {app, [options](Console& console) { return run_plan(*options, console); }};
}

}  // namespace tidemark::cli
