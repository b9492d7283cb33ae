#pragma once

#include <string>
#include <string_view>

#include "tidemark/base/hash.h"
#include "tidemark/plan/plan.h"
#include "tidemark/plan/portable_plan.h"
#include "tidemark/step/step.h"

namespace tidemark::plan {

// A plan as it was read for a step. docs/plan_format.md is the format of the file.
struct PlanFile {
  Plan plan;
  PlanFacts facts;
  Hash128 fingerprint;  // of the step

  friend bool operator==(const PlanFile&, const PlanFile&) = default;
};

// The text of a plan file: the same bytes for the same plan and step on every machine. Ops are told by name and by how
// many of that name came before them in the unit's call. Requires: a plan that can be replayed on the step.
std::string write_plan(const step::Step& step, const Plan& plan, const PlanFacts& facts);
std::string write_plan(const PortablePlan& plan);

// What the file's `hash` is over: equal for equal plans, on every rank and machine.
Hash128 hash_of(const PortablePlan& plan);

// Reads a plan without its step. `name` stands for the file in errors.
// Throws: Error for a file that is no plan, or that was changed by hand without its hash.
PortablePlan read_portable_plan_text(std::string_view text, const std::string& name);
PortablePlan read_portable_plan(const std::string& path);

// Reads a plan for a step. Throws: Error also for a plan of another step.
PlanFile read_plan_text(std::string_view text, const std::string& name, const step::Step& step);
PlanFile read_plan(const std::string& path, const step::Step& step);

}  // namespace tidemark::plan
