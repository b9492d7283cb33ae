// tidemark frontier STEP --device DEVICE: what recomputing costs at least, budget by budget.

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "commands.h"
#include "frontier_report.h"
#include "planning_arguments.h"
#include "progress_bar.h"
#include "tidemark/device/catalog.h"
#include "workspace_argument.h"

namespace tidemark::cli {

namespace {

constexpr std::size_t kMostBudgets = 65'536;

struct FrontierArguments {
  PlanningArguments planning;
  std::size_t budgets = 64;
  bool is_full = false;
  bool is_csv = false;
  std::size_t max_work = 0;  // 0: by is_full
};

planner::FrontierOptions frontier_options(const FrontierArguments& arguments) {
  if (arguments.budgets < 2 || arguments.budgets > kMostBudgets)
    throw Error({.kind = ErrorKind::kInput,
                 .place = "--budgets",
                 .problem = "there cannot be so many",
                 .expected = fmt::format("2 to {}", kMostBudgets),
                 .got = fmt::format("{}", arguments.budgets),
                 .remedy = {}});
  planner::FrontierOptions options = planner::default_frontier_options(arguments.is_full);
  options.budget_count = static_cast<std::int64_t>(arguments.budgets);
  if (arguments.max_work != 0) options.max_work = static_cast<std::int64_t>(arguments.max_work);
  return options;
}

ExitCode run_frontier(FrontierArguments arguments, const Console& console) {
  if (arguments.is_csv && console.json())
    throw UsageError({.kind = ErrorKind::kInput,
                      .place = "tidemark frontier",
                      .problem = "--csv and --json are two ways to say the same",
                      .expected = {},
                      .got = {},
                      .remedy = "one of them"});
  PlanningArguments& planning = arguments.planning;
  planner::FrontierOptions options = frontier_options(arguments);
  const device::Device device = device::find_device(planning.device);
  follow_device(planning.native, device.kind);
  const auto step = std::make_shared<const step::Step>(read_step_argument(planning.step, planning.native));
  const cost::StepCost cost = cost::price_step(*step, device, planning.ranks.price_options());
  const std::optional<memory::WorkspaceTable> table =
      read_workspace_argument(planning.workspace, planning.step, console);
  const planner::PlannerOptions wishes = planner_options(planning, device, 0, table ? &*table : nullptr);
  const planner::PreparedStep prepared(*step, cost, wishes);
  FrontierReport report{.file = planning.step,
                        .device = device,
                        .step = step,
                        .ops = cost.all,
                        .unpriced = cost.unpriced,
                        .notes = cost.notes,
                        .reserve_bytes = wishes.reserve_bytes,
                        .against = wishes.against,
                        .frontier = {}};
  {
    ProgressBar bar(console);
    options.progress = [&bar](const planner::FrontierProgress& progress) {
      bar.show(progress.known_bytes, progress.all_bytes, fmt::format("{} budgets solved", progress.solved));
    };
    report.frontier = planner::find_frontier(prepared, options);
  }
  if (console.json())
    console.print_json(frontier_json(report));
  else
    console.print(arguments.is_csv ? frontier_csv(report) : frontier_text(report, console));
  return ExitCode::kOk;
}

}  // namespace

Command add_frontier(CLI::App& root) {
  CLI::App* app = new_command(
      root,
      {.name = "frontier",
       .summary = "Tell what recomputing costs at least, for every budget",
       .examples = {{{"build/tidemark frontier gpt2 --batch 8 --device t4", "64 budgets and a plot"},
                     {"build/tidemark frontier resnet18 --batch 8 --device t4 --csv", "for a spreadsheet"},
                     {"build/tidemark frontier resnet18 --device t4 --budgets 8 --json", "fewer, for a script"}}}});
  const auto arguments = std::make_shared<FrontierArguments>();
  PlanningArguments& planning = arguments->planning;
  app->add_option(std::string(kStepName), planning.step, kStepHelp)->required();
  add_device_option(*app, planning)->required();
  add_count(*app, "--budgets", arguments->budgets, "how many, from the smallest possible on");
  app->add_flag("--full", arguments->is_full, "all breakpoints instead: where the least time changes");
  app->add_flag("--csv", arguments->is_csv, "a table for other programs");
  add_count(*app, "--max-work", arguments->max_work, "stop after N entries; 0: 100 million, --full 500");
  add_memory_options(*app, planning);
  add_space_options(*app, planning);
  add_step_options(*app, planning);
  return {app, [arguments](Console& console) { return run_frontier(*arguments, console); }};
}

}  // namespace tidemark::cli
