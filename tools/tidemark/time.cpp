// tidemark time STEP --device DEVICE: how long a step takes on a device, and which ops take it.

#include <memory>

#include "commands.h"
#include "ranks_argument.h"
#include "step_argument.h"
#include "tidemark/device/catalog.h"
#include "time_report.h"

namespace tidemark::cli {

namespace {

struct TimeOptions {
  std::string step;
  std::string device;
  std::string view;
  std::size_t depth = 2;
  RanksArgument ranks;
  NativeOptions native;
};

TimeView view_named(const std::string& name) {
  if (name == "module") return TimeView::kModule;
  return name == "op" ? TimeView::kOp : TimeView::kKind;
}

ExitCode run_time(TimeOptions options, const Console& console) {
  device::Device device = device::find_device(options.device);
  follow_device(options.native, device.kind);
  step::Step step = read_step_argument(options.step, options.native);
  cost::StepCost cost = cost::price_step(step, device, options.ranks.price_options());
  const TimeReport report{.file = options.step,
                          .view = view_named(options.view),
                          .depth = options.depth,
                          .step = std::move(step),
                          .device = std::move(device),
                          .cost = std::move(cost)};
  if (console.json()) {
    console.print_json(time_json(report));
  } else {
    console.print(time_text(report, console));
  }
  return ExitCode::kOk;
}

}  // namespace

Command add_time(CLI::App& root) {
  CLI::App* app = new_command(
      root, {.name = "time",
             .summary = "Tell how long a step takes on a device",
             .examples = {{{"build/tidemark time gpt2 --device h100-sxm --dtype bfloat16", "a built-in model"},
                           {"build/tidemark time resnet50 --device t4 --by module", "where its time goes"},
                           {"build/tidemark time examples/steps/two_layer_mlp.step.jsonl --device t4", "a file"}}}});
  const auto options = std::make_shared<TimeOptions>();
  app->add_option(std::string(kStepName), options->step, kStepHelp)->required();
  app->add_option("--device", options->device, "the device: a name (tidemark devices), or the path of a device file")
      ->type_name("DEVICE")
      ->required();
  add_ranks_options(*app, options->ranks);
  app->add_option("--by", options->view, "add the times up by op or by module")
      ->type_name("VIEW")
      ->check(CLI::IsMember({"op", "module"}));
  add_count(*app, "--depth", options->depth, "show modules down to N levels below the root");
  add_native_options(*app, options->native);
  return {app, [options](Console& console) { return run_time(*options, console); }};
}

}  // namespace tidemark::cli
