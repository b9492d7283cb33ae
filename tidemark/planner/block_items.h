#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/planner/module_policy.h"
#include "tidemark/planner/space.h"
#include "tidemark/sac/module_operators.h"
#include "tidemark/step/step.h"

namespace tidemark::planner {

// A candidate unit as methods that count bytes see it: what may be kept of it, in PyTorch's greedy order. Bytes are
// those of PyTorch's estimator (what the unit returns is free), times what saving spares.
struct UnitItems {
  std::uint32_t candidate = 0;
  std::vector<PolicyItem> items;
  std::vector<std::uint32_t> choices;  // of the candidate, by item
  std::int64_t fixed_bytes = 0;        // of what is saved in any case
  std::int64_t total_bytes = 0;        // of all its operators
};

// Requires: `op_ms` has the milliseconds of every op of the step.
UnitItems unit_items(const sac::StepIndex& index, const Space& space, std::uint32_t candidate,
                     std::span<const double> op_ms);

// The candidates that are blocks (plan::find_blocks), or that the user's patterns name; of a model without blocks the
// outermost ones below the whole model. None inside another.
std::vector<std::uint32_t> block_candidates(const step::Step& step, const Space& space, const SpaceOptions& options);

// The unit that keeps these items, besides what it always saves.
plan::Unit unit_with(const Space& space, const UnitItems& unit, const std::vector<std::uint8_t>& kept);

}  // namespace tidemark::planner
