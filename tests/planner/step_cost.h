#pragma once

#include "tidemark/cost/step_cost.h"
#include "tidemark/planner/space.h"

namespace tidemark::test {

// Times as they are, without a device.
inline cost::StepCost cost_of(const planner::Times& times) {
  cost::StepCost cost;
  for (const std::int64_t ps : times.op_ps) {
    cost.ops.emplace_back();
    cost.ops.back().total_ps = ps;
  }
  cost.family.assign(cost.ops.size(), cost::Family::kMatmul);
  cost.bytes.assign(cost.ops.size(), 0);
  cost.region_ps = times.region_ps;
  cost.region_save_ps = times.region_save_ps;
  cost.region_rng_ps = times.region_rng_ps;
  return cost;
}

}  // namespace tidemark::test
