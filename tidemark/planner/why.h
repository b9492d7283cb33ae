#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/planner/explain.h"
#include "tidemark/planner/prepared.h"

namespace tidemark::planner {

// Questions about a plan: why is this module (not) a unit, why is this op (not) saved, and what would it cost to have
// it the other way round. The last is answered by a replay of the changed plan, not by a model.

enum class WhyKind : std::uint8_t {
  // of a module call
  kUnit,        // it is checkpointed
  kInsideUnit,  // a call around it is
  kHoldsUnits,  // calls inside it are
  kExcluded,    // it cannot be: `exclusion` says by which rule
  kNotNeeded,   // it could be; the budget is met for less without it
  // of an op
  kSaved,
  kRecomputed,  // `reason` says why
  kNoUnit,      // it lies in no unit: nothing of it is recomputed
};
inline constexpr std::array<std::string_view, 8> kWhyKindNames = {
    "unit", "inside_unit", "holds_units", "excluded", "not_needed", "saved", "recomputed", "no_unit"};
inline constexpr std::string_view name_of(WhyKind kind) { return kWhyKindNames[static_cast<std::size_t>(kind)]; }

// The plan with the opposite decision for all of a row's calls at once, replayed. Where a module becomes a unit, all of
// it is recomputed that may be.
struct WhatIf {
  std::int64_t peak_bytes = 0;
  std::int64_t recompute_ps = 0;
  bool fits = false;
};

// Equal answers for equal layers.
struct WhyRow {
  std::string subject;  // "layers.{0-3}.mlp", "layers.{0-3}.mlp::aten.mm.default"
  WhyKind kind = WhyKind::kNotNeeded;
  Exclusion exclusion = Exclusion::kNone;
  GroupReason reason = GroupReason::kChosen;
  std::string units;       // the units around or inside it, or the unit of an op; folded, the first of them
  std::string with;        // the ops that are decided together with an op, if there are others
  std::int64_t count = 0;  // calls, or ops
  std::int64_t bytes_each = 0;
  std::int64_t ps_each = 0;
  std::optional<WhatIf> opposite;  // none where the opposite is not possible
};

// `pattern` is over names of modules, or "FQN::OP" as SpaceOptions has it; a name that is no module's may be an op's.
// Throws: Error when it matches nothing of the forward pass.
std::vector<WhyRow> why(const PreparedStep& prepared, const PlanResult& result, const std::string& pattern,
                        std::int64_t room_bytes);

}  // namespace tidemark::planner
