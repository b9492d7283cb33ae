// tidemark plan STEP --device DEVICE --budget BUDGET: the cheapest plan that fits.

#include <memory>
#include <utility>

#include "commands.h"
#include "highs_argument.h"
#include "plan_output.h"
#include "planning_arguments.h"
#include "tidemark/base/atomic_file.h"
#include "tidemark/base/bytes.h"
#include "tidemark/cost/reference_roofline.h"
#include "tidemark/device/catalog.h"
#include "tidemark/report/explain_report.h"
#include "workspace_argument.h"

namespace tidemark::cli {

namespace {

struct PlanOptions {
  PlanningArguments planning;
  std::string budget;
  std::string output;
  bool no_certificate = false;
  bool is_explained = false;
  std::vector<std::string> why;
  std::size_t max_work = planner::PlannerOptions{}.max_work;
  std::string method = "exact";
  std::string highs;
  std::string cost = "tidemark";
  std::size_t world_size = 1;
  bool counts_stale = false;
  std::string mps;
  std::string lp;
};

planner::Method method_of(const std::string& word) {
  for (std::size_t i = 0; i < planner::kMethodNames.size(); ++i)
    if (planner::kMethodNames[i] == word) return static_cast<planner::Method>(i);
  return planner::Method::kExact;
}

constexpr const char* kReferenceCost = "reference-m";

void check_cost(const PlanOptions& options) {
  if (options.cost != kReferenceCost || options.method == planner::name_of(planner::Method::kMilp)) return;
  throw UsageError({.kind = ErrorKind::kInput,
                    .place = "--cost",
                    .problem = "only PyTorch's program over modules takes PyTorch's times and rules",
                    .expected = "--method milp",
                    .got = "--method " + options.method,
                    .remedy = "leave out --cost"});
}

// Before anything is solved, so that a model can be had without a solver.
void write_model(const step::Step& step, const cost::StepCost& cost, const PlanOptions& options,
                 const planner::PlannerOptions& wishes) {
  if (options.mps.empty() && options.lp.empty()) return;
  const std::optional<planner::LinearModel> model = planner::method_model(step, cost, wishes);
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

ExitCode run_plan(PlanOptions options, const Console& console) {
  PlanningArguments& planning = options.planning;
  check_output(options.output, planning);
  check_cost(options);
  const device::Device device = device::find_device(planning.device);
  follow_device(planning.native, device.kind);
  const std::int64_t budget_bytes = parse_budget(options.budget, "--budget").bytes_on(device.memory_bytes.value);
  const auto step = std::make_shared<const step::Step>(read_step_argument(planning.step, planning.native));
  cost::StepCost cost = cost::price_step(*step, device, planning.ranks.price_options());
  const std::optional<memory::WorkspaceTable> table =
      read_workspace_argument(planning.workspace, planning.step, console);
  planner::PlannerOptions wishes = planner_options(planning, device, budget_bytes, table ? &*table : nullptr);
  wishes.max_work = static_cast<std::int64_t>(options.max_work);
  wishes.method = {.method = method_of(options.method),
                   .world_size = static_cast<std::int64_t>(options.world_size),
                   .counts_stale = options.counts_stale};
  if (options.cost == kReferenceCost) {
    wishes.method.rules = sac::Rules::kReferenceM;
    wishes.method.op_ms = cost::reference_times_ms(*step, cost::ReferenceLine::kM, planning.device);
  }
  write_model(*step, cost, options, wishes);
  std::optional<planner::Highs> highs;
  if (planner::needs_highs(wishes.method.method)) highs.emplace(find_highs(options.highs));
  wishes.method.highs = highs ? &*highs : nullptr;
  planner::PlanResult result = planner::plan_step(*step, cost, wishes);
  report::PlanReport report =
      report::make_report(planning.step, step, device, std::move(cost), wishes, std::move(result));
  const bool is_explained = options.is_explained || !options.why.empty();
  report.is_short = options.is_explained;
  finish_plan(report, wishes, {.path = options.output, .has_certificate = !options.no_certificate});
  report::ExplainReport explained;
  if (is_explained) explained = report::explain_plan(report, wishes, options.why);
  if (console.json()) {
    Json json = report::plan_json(report);
    if (is_explained) json["explanation"] = report::explain_json(report, explained);
    console.print_json(json);
  } else {
    std::string text = report::plan_text(report, console.style());
    if (options.is_explained) text += report::explain_text(report, explained.explanation, console.style());
    text += report::why_text(report, explained.answers, console.style());
    console.print(text);
  }
  return exit_code_of(report.result.termination);
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
  PlanningArguments& planning = options->planning;
  app->add_option(std::string(kStepName), planning.step, kStepHelp)->required();
  add_device_option(*app, planning)->required();
  app->add_option("--budget", options->budget, "the memory there is: 70GiB, 80GB, or 90% of the device's")
      ->type_name("BUDGET")
      ->required();
  add_memory_options(*app, planning);
  add_output_option(*app, options->output, "write the plan to FILE, with its certificate beside it");
  app->add_flag("--no-certificate", options->no_certificate, "leave out the certificate");
  app->add_flag("--explain", options->is_explained, "why so: what binds, and what memory is worth");
  app->add_option("--why", options->why, "why a module is (no) unit, or an op (not) kept: '*.mlp::mm'")
      ->type_name("PATTERN");
  add_space_options(*app, planning);
  add_count(*app, "--max-work", options->max_work, "stop the search after N entries");
  std::vector<std::string> methods(planner::kMethodNames.begin(), planner::kMethodNames.end());
  app->add_option("--method", options->method, "exact (default), or another one to compare it with")
      ->type_name("METHOD")
      ->check(CLI::IsMember(methods));
  app->add_option("--highs", options->highs, "the library of the solver HiGHS, for milp and exact-milp")
      ->type_name("PATH");
  app->add_option("--cost", options->cost, "milp: whose times and rules it goes by, tidemark (default) or reference-m")
      ->type_name("COST")
      ->check(CLI::IsMember({"tidemark", kReferenceCost}));
  add_count(*app, "--world-size", options->world_size, "milp: divide parameters and gradients by N");
  app->add_flag("--count-stale", options->counts_stale, "milp: count what is held from the step before");
  app->add_option("--write-mps", options->mps, "write the program that milp or exact-milp solves to FILE")
      ->type_name("FILE");
  app->add_option("--write-lp", options->lp, "the same in LP format")->type_name("FILE");
  add_step_options(*app, planning);
  return {app, [options](Console& console) { return run_plan(*options, console); }};
}

}  // namespace tidemark::cli
