// tidemark max MODEL --of batch|seq|layers|device|budget: how far it goes with the best plan.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "commands.h"
#include "plan_output.h"
#include "planning_arguments.h"
#include "text_layout.h"
#include "tidemark/base/bytes.h"
#include "tidemark/device/catalog.h"
#include "tidemark/planner/largest.h"
#include "tidemark/planner/prepared.h"
#include "tidemark/step/dump.h"
#include "workspace_argument.h"

namespace tidemark::cli {

namespace {

constexpr std::string_view kDefaultBudget = "90%";

struct MaxArguments {
  PlanningArguments planning;
  std::string of;
  std::string budget = std::string(kDefaultBudget);
  std::string output;
  std::size_t max_work = planner::PlannerOptions{}.max_work;
};

// The answer, before it is words.
struct MaxReport {
  std::string of;
  std::string answer;  // one sentence
  Json figures;
  std::optional<report::PlanReport> plan;
};

UsageError usage(std::string problem, std::string remedy) {
  return UsageError({.kind = ErrorKind::kInput,
                     .place = "tidemark max",
                     .problem = std::move(problem),
                     .expected = {},
                     .got = {},
                     .remedy = std::move(remedy)});
}

planner::PlannerOptions wishes_on(const MaxArguments& arguments, const device::Device& device,
                                  const memory::WorkspaceTable* workspace) {
  const std::int64_t budget = parse_budget(arguments.budget, "--budget").bytes_on(device.memory_bytes.value);
  planner::PlannerOptions wishes = planner_options(arguments.planning, device, budget, workspace);
  wishes.max_work = static_cast<std::int64_t>(arguments.max_work);
  return wishes;
}

report::PlanReport plan_on(const MaxArguments& arguments, step::Step step, const device::Device& device,
                           const planner::PlannerOptions& wishes) {
  cost::StepCost cost = cost::price_step(step, device, arguments.planning.ranks.price_options());
  planner::PlanResult result = planner::plan_step(step, cost, wishes);
  report::PlanReport report =
      report::make_report(arguments.planning.step, std::make_shared<const step::Step>(std::move(step)), device,
                          std::move(cost), wishes, std::move(result));
  finish_plan(report, wishes, {.path = arguments.output});
  return report;
}

// The smallest peak that a plan reaches, or the peak without one if that fits.
planner::SizeTrial try_step(const RanksArgument& ranks, const step::Step& step, const device::Device& device,
                            const planner::PlannerOptions& wishes, std::int64_t size) {
  const std::int64_t room = wishes.budget_bytes - wishes.reserve_bytes;
  const std::int64_t plain = planner::peak_of(step, {}, wishes);
  if (plain <= room) return {size, plain, true};
  const planner::PreparedStep prepared(step, cost::price_step(step, device, ranks.price_options()), wishes);
  const std::int64_t smallest = prepared.smallest().peak_bytes;
  return {size, smallest, smallest <= room, smallest <= room || prepared.is_smallest_proved()};
}

// One kind of size: how to make a step of that size, and which sizes there are.
struct SizeKind {
  std::string noun;
  std::int64_t last = 1;
  bool is_models_own = false;  // the last size is the model's, not ours
  std::function<step::Step(std::int64_t)> record;
};

SizeKind size_kind(const MaxArguments& arguments, const zoo::Config& config, const zoo::StepOptions& options) {
  constexpr std::int64_t kLastBatch = std::int64_t{1} << 20;
  constexpr std::int64_t kLastSequence = std::int64_t{1} << 24;
  constexpr std::int64_t kLastLayers = 1024;
  const auto refuse_given = [&](const char* flag) {
    const std::vector<std::string>& given = arguments.planning.native.given;
    if (std::find(given.begin(), given.end(), flag) != given.end())
      throw usage(fmt::format("--of {} looks for what {} would say", arguments.of, flag),
                  fmt::format("leave out {}", flag));
  };
  if (arguments.of == "batch") {
    refuse_given("--batch");
    return {"batch", kLastBatch, false, [config, options](std::int64_t size) {
              zoo::StepOptions sized = options;
              sized.batch = size;
              return zoo::record(config, sized);
            }};
  }
  if (arguments.of == "seq") {
    refuse_given("--seq");
    if (zoo::takes_images(config)) throw usage("the model takes images, not sequences", "--of batch");
    const std::int64_t longest = zoo::longest_sequence_of(config);
    return {"sequence", longest > 0 ? longest : kLastSequence, longest > 0, [config, options](std::int64_t size) {
              zoo::StepOptions sized = options;
              sized.sequence = size;
              return zoo::record(config, sized);
            }};
  }
  if (!zoo::with_layers(config, 1)) throw usage("the model is made of stages, not of equal layers", "--of batch");
  return {"number of layers", kLastLayers, false,
          [config, options](std::int64_t size) { return zoo::record(*zoo::with_layers(config, size), options); }};
}

std::string size_answer(const planner::Largest& found, const SizeKind& kind, std::int64_t room_bytes) {
  if (found.size == 0) return fmt::format("not even a {} of 1 fits", kind.noun);
  std::string text = fmt::format("the largest {} that fits is {}", kind.noun, format_count(found.size));
  if (found.is_cut) {
    text += kind.is_models_own ? ", which is as long as the model takes" : ", and more was not tried";
  } else {
    const auto next = std::find_if(found.trials.begin(), found.trials.end(),
                                   [&](const planner::SizeTrial& trial) { return trial.size > found.size; });
    if (next != found.trials.end())
      text += fmt::format("; {} needs at least {} of {}{}", format_count(next->size), format_bytes(next->peak_bytes),
                          format_bytes(room_bytes), next->is_proved ? "" : ", as far as is known");
  }
  if (!found.is_monotone)
    text += ". Of the sizes tried, some need less than smaller ones, so that still larger ones may fit";
  return text;
}

Json trials_json(const std::vector<planner::SizeTrial>& trials) {
  Json list = Json::array();
  for (const planner::SizeTrial& trial : trials)
    list.push_back({{"size", trial.size},
                    {"smallest_peak_bytes", trial.peak_bytes},
                    {"fits", trial.fits},
                    {"proved", trial.is_proved}});
  return list;
}

device::Device device_of(MaxArguments& arguments) {
  if (arguments.planning.device.empty()) throw usage("the device is missing", "--device NAME (tidemark devices)");
  device::Device device = device::find_device(arguments.planning.device);
  follow_device(arguments.planning.native, device.kind);
  return device;
}

MaxReport largest_size(MaxArguments& arguments) {
  const device::Device device = device_of(arguments);
  const zoo::Config config = read_model_argument(arguments.planning.step);
  const SizeKind kind = size_kind(arguments, config, step_options(arguments.planning.native));
  const planner::PlannerOptions wishes = wishes_on(arguments, device, nullptr);
  const std::int64_t room = planner::room_of(wishes);
  const planner::Largest found = planner::find_largest({.first = 1, .last = kind.last}, [&](std::int64_t size) {
    return try_step(arguments.planning.ranks, kind.record(size), device, wishes, size);
  });
  MaxReport report;
  report.answer = size_answer(found, kind, room);
  report.figures = {{"largest", found.size},
                    {"is_last_tried", found.is_cut},
                    {"monotone", found.is_monotone},
                    {"trials", trials_json(found.trials)}};
  report.plan = plan_on(arguments, kind.record(std::max<std::int64_t>(1, found.size)), device, wishes);
  return report;
}

MaxReport smallest_budget(MaxArguments& arguments, const Console& console) {
  if (arguments.budget != kDefaultBudget)
    throw usage("a budget is what --of budget finds, and one was given", "leave out --budget");
  const device::Device device = device_of(arguments);
  step::Step step = read_step_argument(arguments.planning.step, arguments.planning.native);
  const std::optional<memory::WorkspaceTable> table =
      read_workspace_argument(arguments.planning.workspace, arguments.planning.step, console);
  planner::PlannerOptions wishes = wishes_on(arguments, device, table ? &*table : nullptr);
  const planner::PreparedStep prepared(step, cost::price_step(step, device, arguments.planning.ranks.price_options()),
                                       wishes);
  wishes.budget_bytes = prepared.smallest().peak_bytes + wishes.reserve_bytes;
  MaxReport report;
  report.answer = fmt::format("the smallest budget is {}{}", format_bytes_exact(wishes.budget_bytes),
                              prepared.is_smallest_proved() ? " (proved)" : ", as far as is known");
  if (device.memory_bytes.value > 0 && wishes.budget_bytes > device.memory_bytes.value)
    report.answer += fmt::format(", more than the {} of the device", format_bytes(device.memory_bytes.value));
  report.figures = {{"smallest", wishes.budget_bytes}, {"proved", prepared.is_smallest_proved()}};
  report.plan = plan_on(arguments, std::move(step), device, wishes);
  return report;
}

MaxReport smallest_device(MaxArguments& arguments, const Console& console) {
  if (!arguments.planning.device.empty())
    throw usage("--of device looks for what --device would say", "leave out --device");
  if (!arguments.budget.ends_with('%'))
    throw usage("the budget must be a part of each device's memory", "--budget 90%");
  follow_device(arguments.planning.native, device::DeviceKind::kCuda);
  std::vector<const device::Device*> devices;
  for (const device::Device& device : device::built_in_devices())
    if (device.kind != device::DeviceKind::kCpu) devices.push_back(&device);
  std::stable_sort(devices.begin(), devices.end(), [](const device::Device* a, const device::Device* b) {
    return a->memory_bytes.value < b->memory_bytes.value;
  });
  step::Step step = read_step_argument(arguments.planning.step, arguments.planning.native);
  const std::optional<memory::WorkspaceTable> table =
      read_workspace_argument(arguments.planning.workspace, arguments.planning.step, console);
  MaxReport report;
  Json trials = Json::array();
  for (const device::Device* device : devices) {
    const planner::PlannerOptions wishes = wishes_on(arguments, *device, table ? &*table : nullptr);
    const planner::SizeTrial trial = try_step(arguments.planning.ranks, step, *device, wishes, 0);
    trials.push_back({{"device", device->name},
                      {"memory_bytes", device->memory_bytes.value},
                      {"smallest_peak_bytes", trial.peak_bytes},
                      {"fits", trial.fits},
                      {"proved", trial.is_proved}});
    if (!trial.fits && device != devices.back()) continue;
    report.answer = trial.fits ? fmt::format("the smallest built-in device is {} with {}", device->name,
                                             format_bytes(device->memory_bytes.value))
                               : fmt::format("it fits none of the {} built-in devices; the largest is {} with {}",
                                             devices.size(), device->name, format_bytes(device->memory_bytes.value));
    report.figures = {{"smallest", trial.fits ? Json(device->name) : Json()}, {"trials", trials}};
    report.plan = plan_on(arguments, std::move(step), *device, wishes);
    break;
  }
  return report;
}

ExitCode run_max(MaxArguments arguments, const Console& console) {
  check_output(arguments.output, arguments.planning);
  MaxReport report = arguments.of == "budget"   ? smallest_budget(arguments, console)
                     : arguments.of == "device" ? smallest_device(arguments, console)
                                                : largest_size(arguments);
  if (console.json()) {
    Json json{{"of", arguments.of}};
    json.update(report.figures);
    json["answer"] = report.answer;
    json["plan"] = report::plan_json(*report.plan);
    console.print_json(json);
  } else {
    console.print(console.heading(wrap(report.answer, 0)) + "\n" + report::plan_text(*report.plan, console.style()));
  }
  return exit_code_of(report.plan->result.termination);
}

}  // namespace

Command add_max(CLI::App& root) {
  CLI::App* app = new_command(
      root, {.name = "max",
             .summary = "Find the largest batch, sequence or depth that fits, or the smallest device or budget",
             .examples = {{{"build/tidemark max gpt2 --device t4 --of batch", "the largest batch"},
                           {"build/tidemark max gpt2 --batch 32 --of device", "the smallest device"},
                           {"build/tidemark max examples/steps/two_layer_mlp.step.jsonl --device cpu --of budget",
                            "the least memory, of a recorded step"}}}});
  const auto arguments = std::make_shared<MaxArguments>();
  PlanningArguments& planning = arguments->planning;
  app->add_option(std::string(kStepName), planning.step, kStepHelp)->required();
  app->add_option("--of", arguments->of, "what to find: batch, seq, layers, device or budget")
      ->type_name("WHAT")
      ->required()
      ->check(CLI::IsMember({"batch", "seq", "layers", "device", "budget"}));
  add_device_option(*app, planning);
  app->add_option("--budget", arguments->budget, "the memory there is: 70GiB, 80GB, or 90% (default) of the device's")
      ->type_name("BUDGET");
  add_output_option(*app, arguments->output, "write the plan to FILE");
  add_count(*app, "--max-work", arguments->max_work, "stop a search after N entries");
  add_memory_options(*app, planning);
  add_space_options(*app, planning);
  add_step_options(*app, planning);
  return {app, [arguments](Console& console) { return run_max(*arguments, console); }};
}

}  // namespace tidemark::cli
