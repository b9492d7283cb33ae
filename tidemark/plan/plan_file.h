#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tidemark/base/hash.h"
#include "tidemark/plan/plan.h"
#include "tidemark/step/step.h"

namespace tidemark::plan {

// What a plan file says besides the plan: what it was made for, and what was promised. docs/plan_format.md is the
// format. Nothing of it is believed when a plan is checked.
struct PlanFacts {
  std::string device;
  std::int64_t budget_bytes = 0;
  std::int64_t reserve_bytes = 0;
  std::string against = "exact";         // exact, rounded or reserved bytes
  std::string termination;               // "optimal"
  std::int64_t peak_bytes = 0;           // predicted
  std::int64_t recompute_ps = 0;         // predicted
  std::int64_t bound_ps = 0;             // no plan that fits takes less
  std::int64_t smallest_peak_bytes = 0;  // of any plan

  friend bool operator==(const PlanFacts&, const PlanFacts&) = default;
};

struct PlanFile {
  Plan plan;
  PlanFacts facts;
  Hash128 fingerprint;  // of the step

  friend bool operator==(const PlanFile&, const PlanFile&) = default;
};

// The text of a plan file: the same bytes for the same plan and step on every machine. Ops are told by name and by how
// many of that name came before them in the unit's call. Requires: a plan that can be replayed on the step.
std::string write_plan(const step::Step& step, const Plan& plan, const PlanFacts& facts);

// Reads a plan for a step. `name` stands for the file in errors.
// Throws: Error for a file that is no plan, that was changed by hand without its hash, or that is of another step.
PlanFile read_plan_text(std::string_view text, const std::string& name, const step::Step& step);
PlanFile read_plan(const std::string& path, const step::Step& step);

}  // namespace tidemark::plan
