#include "planning_arguments.h"

#include "commands.h"
#include "tidemark/base/bytes.h"

namespace tidemark::cli {

namespace {

planner::Against against_of(const PlanningArguments& arguments, const device::Device& device) {
  for (std::size_t i = 0; i < planner::kAgainstNames.size(); ++i)
    if (planner::kAgainstNames[i] == arguments.against) return static_cast<planner::Against>(i);
  return device.kind == device::DeviceKind::kCpu ? planner::Against::kExact : planner::Against::kRounded;
}

planner::RngRule rng_of(const std::string& word) {
  if (word == "always") return planner::RngRule::kAlways;
  return word == "never" ? planner::RngRule::kNever : planner::RngRule::kWhenNeeded;
}

}  // namespace

CLI::Option* add_device_option(CLI::App& app, PlanningArguments& arguments) {
  return app
      .add_option("--device", arguments.device, "the device: a name (tidemark devices), or the path of a device file")
      ->type_name("DEVICE");
}

void add_memory_options(CLI::App& app, PlanningArguments& arguments) {
  app.add_option("--reserve", arguments.reserve, "of the budget, not for tensors; by default the device's overhead")
      ->type_name("BYTES");
  app.add_option("--against", arguments.against, "which bytes: exact (default on a CPU), rounded (default) or reserved")
      ->type_name("BYTES")
      ->check(CLI::IsMember({"exact", "rounded", "reserved"}));
}

void add_space_options(CLI::App& app, PlanningArguments& arguments) {
  app.add_option("--units", arguments.units, "only modules that match PATTERN may be checkpointed")
      ->type_name("PATTERN");
  app.add_option("--not-units", arguments.not_units, "modules that match PATTERN may not")->type_name("PATTERN");
  app.add_option("--always-save", arguments.always_save, "never recompute ops that match FQN::OP")
      ->type_name("PATTERN");
  app.add_option("--never-save", arguments.never_save, "never save ops that match FQN::OP")->type_name("PATTERN");
  app.add_option("--rng", arguments.rng, "keep the random state when-needed (default), always or never")
      ->type_name("RULE")
      ->check(CLI::IsMember({"when-needed", "always", "never"}));
  app.add_flag("--no-early-stop", arguments.no_early_stop, "run units again to their end");
}

void add_step_options(CLI::App& app, PlanningArguments& arguments) {
  add_ranks_options(app, arguments.ranks);
  app.add_option("--workspace", arguments.workspace,
                 "kernels' scratch memory; by default STEP.workspace.jsonl, if it is there")
      ->type_name("FILE");
  add_native_options(app, arguments.native);
}

std::int64_t reserve_bytes(const PlanningArguments& arguments, const device::Device& device) {
  return arguments.reserve.empty() ? device.overhead_bytes.value : parse_bytes(arguments.reserve, "--reserve");
}

planner::PlannerOptions planner_options(const PlanningArguments& arguments, const device::Device& device,
                                        std::int64_t budget_bytes, const memory::WorkspaceTable* workspace) {
  planner::PlannerOptions options;
  options.budget_bytes = budget_bytes;
  options.reserve_bytes = reserve_bytes(arguments, device);
  options.against = against_of(arguments, device);
  options.rounding_bytes = device.allocator_rounding_bytes.value;
  options.workspace = workspace;
  options.space = {.early_stop = !arguments.no_early_stop,
                   .rng = rng_of(arguments.rng),
                   .units = arguments.units,
                   .not_units = arguments.not_units,
                   .always_save = arguments.always_save,
                   .never_save = arguments.never_save};
  return options;
}

}  // namespace tidemark::cli
