#pragma once

#include <string>

#include "tidemark/cost/step_cost.h"
#include "tidemark/plan/portable_plan.h"
#include "tidemark/planner/planner.h"
#include "tidemark/step/step.h"

namespace tidemark::report {

// How every search for a plan ends, whoever asked for it: the plan is checked by code that does not trust the planner,
// and only then is it handed out or written.

// The plan of a result in words, read back from its file's text and checked. Throws: Error when it does not hold.
// Requires: has_plan(result.termination).
plan::PortablePlan checked_plan(const step::Step& step, const planner::PlanResult& result, const std::string& device,
                                const planner::PlannerOptions& options);

// What a search was about.
struct Searched {
  const step::Step& step;
  const cost::StepCost& cost;
  const planner::PlannerOptions& options;
  const planner::PlanResult& result;
  std::string device;
};

// Where a plan goes, and whether the proof that it is the cheapest goes beside it.
struct PlanOutput {
  std::string path;  // empty: nowhere
  bool has_certificate = true;
};

// What was written.
struct PlanFiles {
  std::string plan;            // empty: none
  std::string certificate;     // empty: none
  std::string no_certificate;  // why there is none, if one was asked for
  std::string removed;         // a plan of before, since there is none now; empty: none was there
};

// Checks the plan, if there is one, and writes it, if a file is named. Where nothing fits, the certificate of that is
// written alone. A certificate of an earlier plan does not stay, nor where there is no plan now an earlier plan.
// Throws: Error when the plan does not hold, or cannot be written.
PlanFiles write_plan_files(const Searched& searched, const PlanOutput& output);

}  // namespace tidemark::report
