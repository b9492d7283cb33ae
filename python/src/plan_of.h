#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "tidemark/cost/step_cost.h"
#include "tidemark/memory/workspace.h"
#include "tidemark/plan/plan.h"
#include "tidemark/plan/portable_plan.h"
#include "tidemark/step/step.h"

namespace tidemark::python {

// A plan as Python holds it: in the ids of a step, in words, or both.
struct PlanOf {
  std::optional<plan::Plan> plan;
  std::optional<plan::PortablePlan> words;
  nanobind::object step = nanobind::none();  // kept as long as the words are missing
  cost::PriceOptions ranks = {};             // that take part in its collectives; for the words

  // In the ids of the step. Throws: Error when the plan is of another one.
  plan::Plan in(const step::Step& of) const { return plan ? *plan : plan::find_in(of, *words, "the plan"); }
};

// The table that capture or load gave a step; null when it has none.
inline const memory::WorkspaceTable* workspace_of(nanobind::handle step) {
  const nanobind::object own = nanobind::getattr(step, "workspace", nanobind::none());
  return own.is_none() ? nullptr : &nanobind::cast<const memory::WorkspaceTable&>(own);
}

}  // namespace tidemark::python
