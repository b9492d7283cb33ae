#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tidemark/device/device.h"
#include "tidemark/planner/planner.h"

namespace tidemark::python {

// What searches for plans have in common, whatever the budget.
struct SearchOptions {
  std::int64_t reserve_bytes = 0;
  planner::Against against = planner::Against::kExact;
  nanobind::object workspace = nanobind::none();
  planner::SpaceOptions space;
  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 0;

  // On a device; refers to the workspace.
  planner::PlannerOptions options(const device::Device& device) const;
};

nanobind::list policies_to_python(const std::vector<planner::PolicyFigures>& policies);

}  // namespace tidemark::python
