#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "ranks_argument.h"
#include "step_argument.h"
#include "tidemark/device/device.h"
#include "tidemark/planner/planner.h"

namespace tidemark::cli {

// What the commands that plan have in common: the step, the device, which bytes count, and what a plan may be.
struct PlanningArguments {
  std::string step;
  std::string device;
  std::string reserve;
  std::string against;
  std::string workspace;
  std::vector<std::string> units;
  std::vector<std::string> not_units;
  std::vector<std::string> always_save;
  std::vector<std::string> never_save;
  std::string rng = "when-needed";
  bool no_early_stop = false;
  RanksArgument ranks;
  NativeOptions native;
};

// --device, and --reserve, --against, --units, ... with --batch, --seq, ...: so that a command's own options can stand
// between them in its help.
CLI::Option* add_device_option(CLI::App& app, PlanningArguments& arguments);
void add_memory_options(CLI::App& app, PlanningArguments& arguments);
void add_space_options(CLI::App& app, PlanningArguments& arguments);
void add_step_options(CLI::App& app, PlanningArguments& arguments);

// The options for a budget on a device; `workspace` must live as long as they are used.
planner::PlannerOptions planner_options(const PlanningArguments& arguments, const device::Device& device,
                                        std::int64_t budget_bytes, const memory::WorkspaceTable* workspace);

// Of the budget, what is not for tensors.
std::int64_t reserve_bytes(const PlanningArguments& arguments, const device::Device& device);

}  // namespace tidemark::cli
