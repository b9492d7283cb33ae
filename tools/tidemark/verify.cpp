// tidemark verify STEP PLAN: whether a plan keeps its promise, without trusting who made it.

#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "step_argument.h"
#include "tidemark/base/bytes.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/step/dump.h"
#include "tidemark/verify/verify_plan.h"
#include "workspace_argument.h"

namespace tidemark::cli {

namespace {

struct VerifyOptions {
  std::string step;
  std::string plan;
  std::string workspace;
  NativeOptions native;
};

ExitCode run_verify(const VerifyOptions& options, const Console& console) {
  const step::Step step = read_step_argument(options.step, options.native);
  const plan::PlanFile file = plan::read_plan(options.plan, step);
  const std::optional<memory::WorkspaceTable> table = read_workspace_argument(options.workspace, options.step, console);
  const verify::Verdict verdict = verify::verify_plan(step, file, table ? &*table : nullptr);
  if (console.json()) {
    console.print_json({{"holds", verdict.holds},
                        {"peak_bytes", verdict.peak_bytes},
                        {"budget_bytes", verdict.budget_bytes},
                        {"violations", verdict.violations},
                        {"first_over", verdict.first_over},
                        {"wrong_figures", verdict.wrong_figures}});
  } else {
    std::string text =
        fmt::format("{}: {}\n", step::printable(options.plan), verdict.holds ? "holds" : "does not hold");
    for (const std::string& violation : verdict.violations) text += fmt::format("  {}\n", step::printable(violation));
    if (verdict.violations.empty())
      text += fmt::format("  the peak is {} of {}\n", format_bytes_exact(verdict.peak_bytes),
                          format_bytes_exact(verdict.budget_bytes));
    if (!verdict.first_over.empty()) text += fmt::format("  first over the budget: {}\n", verdict.first_over);
    for (const std::string& wrong : verdict.wrong_figures) text += fmt::format("  {}\n", wrong);
    console.print(text);
  }
  return verdict.holds ? ExitCode::kOk : ExitCode::kError;
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
  app->add_option("FILE", options->plan, "a plan file")->required();
  app->add_option("--workspace", options->workspace,
                  "kernels' scratch memory; by default STEP.workspace.jsonl, if it is there")
      ->type_name("FILE");
  add_native_options(*app, options->native);
  return {app, [options](Console& console) { return run_verify(*options, console); }};
}

}  // namespace tidemark::cli
