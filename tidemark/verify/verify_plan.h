#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tidemark/memory/workspace.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/step/step.h"
#include "tidemark/verify/replay.h"

namespace tidemark::verify {

// Whether a plan keeps what its file promises, found out again from the step and the plan alone: what is legal by code
// of its own, the peak by the slow replay. The figures in the file are not believed; where they are wrong, that is
// said.
struct Verdict {
  bool holds = false;  // legal, and within the budget
  std::int64_t peak_bytes = 0;
  std::int64_t budget_bytes = 0;           // without the reserve
  std::vector<std::string> violations;     // of legality, each a sentence without its period
  std::string first_over;                  // the first change that goes over the budget, if any
  std::vector<std::string> wrong_figures;  // in the file, each a sentence without its period
};

Verdict verify_plan(const step::Step& step, const plan::PlanFile& file,
                    const memory::WorkspaceTable* workspace = nullptr);

// What is wrong with a plan in itself.
std::vector<std::string> find_violations(const step::Step& step, const plan::Plan& plan);

}  // namespace tidemark::verify
