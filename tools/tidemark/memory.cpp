// tidemark memory STEP: the bytes alive at every moment of a step under a plan, and who holds the most.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "commands.h"
#include "memory_report.h"
#include "step_argument.h"
#include "text_layout.h"
#include "tidemark/base/atomic_file.h"
#include "tidemark/base/bytes.h"
#include "tidemark/base/rounding.h"
#include "tidemark/device/catalog.h"
#include "tidemark/memory/replay.h"
#include "tidemark/memory/workspace_file.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/plan/policies.h"
#include "tidemark/step/dump.h"
#include "workspace_argument.h"

namespace tidemark::cli {

namespace {

struct MemoryOptions {
  std::string step;
  std::string policy = "none";
  std::string view = "category";
  std::size_t depth = 2;
  std::string csv;
  std::string workspace;
  std::string allocator;
  std::string overhead;
  std::optional<std::string> device;
  bool no_early_stop = false;
  bool no_rng = false;
  NativeOptions native;
};

MemoryView view_named(const std::string& name) {
  if (name == "module") return MemoryView::kModule;
  return name == "moment" ? MemoryView::kMoment : MemoryView::kCategory;
}

AllocatorModel allocator_named(const std::string& name) {
  return static_cast<AllocatorModel>(std::find(kAllocatorNames.begin(), kAllocatorNames.end(), name) -
                                     kAllocatorNames.begin());
}

// What was asked for, or what PyTorch uses on the device.
AllocatorModel allocator_of(const MemoryOptions& options, const std::optional<device::Device>& device) {
  if (!options.allocator.empty()) return allocator_named(options.allocator);
  return device && device->kind != device::DeviceKind::kCpu ? AllocatorModel::kCaching : AllocatorModel::kExact;
}

// What sizes are rounded up to. The models of PyTorch's allocator have its own figure; a device may have another.
std::int64_t rounding_of(const MemoryReport& report) {
  if (report.allocator == AllocatorModel::kExact) return 1;
  const bool is_devices = report.allocator == AllocatorModel::kRounded && report.device.has_value();
  return is_devices ? report.device->allocator_rounding_bytes.value : kCudaRoundingBytes;
}

void replay_into(MemoryReport& report) {
  const bool is_exact = report.allocator == AllocatorModel::kExact;
  report.rounding_bytes = rounding_of(report);
  report.timeline = memory::replay(report.step, report.plan,
                                   {.workspace = report.workspace ? &*report.workspace : nullptr,
                                    .round_to_bytes = report.rounding_bytes,
                                    .keep_changes = true});
  if (is_exact || report.allocator == AllocatorModel::kRounded) return;
  report.reserved = memory::use_caching_allocator(
      report.step, report.timeline, {.expandable_segments = report.allocator == AllocatorModel::kExpandable});
}

struct NamedPlan {
  std::string name;
  plan::Plan plan;
};

bool is_file(const std::string& plan) { return plan.ends_with(".json"); }

// The plan of a file, or the one that a policy means for the step.
NamedPlan find_plan(const MemoryOptions& options, const step::Step& step) {
  if (is_file(options.policy)) {
    const plan::PortablePlan words = plan::read_portable_plan(options.policy);
    return {step::printable(options.policy), plan::find_in(step, words, options.policy)};
  }
  const plan::Policy policy = plan::parse_policy(options.policy, "--plan");
  return {plan::policy_text(policy),
          plan::make_plan(step, policy, {.preserve_rng = !options.no_rng, .early_stop = !options.no_early_stop})};
}

// Before the step is read, which may take a while.
void check_plan(const MemoryOptions& options) {
  if (!is_file(options.policy)) {
    plan::parse_policy(options.policy, "--plan");
  } else if (options.no_rng || options.no_early_stop) {
    throw UsageError({.kind = ErrorKind::kInput,
                      .place = "tidemark memory",
                      .problem = "a plan file says itself whether units stop early and keep the random state",
                      .expected = {},
                      .got = {},
                      .remedy = "leave out --no-early-stop and --no-rng"});
  }
}

ExitCode run_memory(MemoryOptions options, const Console& console) {
  check_plan(options);
  std::int64_t overhead_bytes = options.overhead.empty() ? 0 : parse_bytes(options.overhead, "--overhead");
  std::optional<device::Device> device;
  if (options.device) {
    device = device::find_device(*options.device);
    if (options.overhead.empty()) overhead_bytes = device->overhead_bytes.value;
    follow_device(options.native, device->kind);
  }
  step::Step step = read_step_argument(options.step, options.native);
  NamedPlan plan = find_plan(options, step);
  MemoryReport report{.file = options.step,
                      .policy = std::move(plan.name),
                      .view = view_named(options.view),
                      .depth = options.depth,
                      .step = std::move(step),
                      .plan = std::move(plan.plan),
                      .workspace_file = find_workspace_argument(options.workspace, options.step, console),
                      .workspace = {},
                      .allocator = allocator_of(options, device),
                      .overhead_bytes = overhead_bytes,
                      .device = std::move(device),
                      .timeline = {},
                      .reserved = {}};
  if (!report.workspace_file.empty()) report.workspace = memory::read_workspace(report.workspace_file);
  replay_into(report);
  if (!options.csv.empty()) write_file_atomically(options.csv, memory_csv(report));
  if (console.json()) {
    console.print_json(memory_json(report));
  } else {
    console.print(memory_text(report, console));
  }
  return ExitCode::kOk;
}

}  // namespace

Command add_memory(CLI::App& root) {
  CLI::App* app = new_command(
      root,
      {.name = "memory",
       .summary = "Tell the memory of a step under a checkpointing plan",
       .examples = {{{"build/tidemark memory examples/steps/two_layer_mlp.step.jsonl", "its peak, and what holds it"},
                     {"build/tidemark memory gpt2 --batch 4 --seq 512 --plan full", "a model, checkpointed"},
                     {"build/tidemark memory resnet50 --batch 32 --device t4 --by module", "does it fit?"}}}});
  const auto options = std::make_shared<MemoryOptions>();
  app->add_option(std::string(kStepName), options->step, kStepHelp)->required();
  app->add_option("--plan", options->policy,
                  "what is checkpointed: none (default), full, every:K, selective, or a plan file")
      ->type_name("PLAN");
  app->add_option("--by", options->view, "break the peak down by category (default), module or moment")
      ->type_name("VIEW")
      ->check(CLI::IsMember({"category", "module", "moment"}));
  add_count(*app, "--depth", options->depth, "show modules down to N levels below the root");
  app->add_option("--csv", options->csv, "also write every allocation and free to FILE")
      ->type_name("FILE")
      ->check([](const std::string& path) { return path.empty() ? "the name of the file is empty" : std::string(); });
  app->add_option("--workspace", options->workspace,
                  "kernels' scratch memory; by default STEP.workspace.jsonl, if it is there")
      ->type_name("FILE");
  app->add_option("--allocator", options->allocator,
                  "hand bytes out as exact (default), rounded, caching or expandable does")
      ->type_name("MODEL")
      ->check(CLI::IsMember(std::vector<std::string>(kAllocatorNames.begin(), kAllocatorNames.end())));
  app->add_option("--device", options->device, "a device that it must fit: its allocator, overhead and memory")
      ->type_name("DEVICE");
  app->add_option("--overhead", options->overhead, "what the device takes beside tensors, such as 600MiB")
      ->type_name("SIZE");
  app->add_flag("--no-early-stop", options->no_early_stop, "recompute units to their end");
  app->add_flag("--no-rng", options->no_rng, "checkpoints do not keep the RNG state");
  add_native_options(*app, options->native);
  return {app, [options](Console& console) { return run_memory(*options, console); }};
}

}  // namespace tidemark::cli
