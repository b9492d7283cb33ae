#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "step_trial.h"
#include "tidemark/step/step.h"

namespace tidemark::test {

// The planner against brute force on steps of real models, small ones of a few blocks. They have more plans than can be
// tried, so that some are meant only: once as many levels of modules as possible without saving anything, and once the
// fewest levels with as many ops to save as possible, those with the largest results first.

struct RealStep {
  std::string name;
  step::Step step;
};

// Models of every family that is built in, of 1 to `most_blocks` blocks, recorded natively.
std::vector<RealStep> small_native_steps(std::int64_t most_blocks);

void try_real_step(const RealStep& real, std::int64_t most, TrialCounts& counts);

}  // namespace tidemark::test
