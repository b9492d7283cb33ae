#pragma once

#include <cstdint>

#include "tidemark/step/step.h"

namespace tidemark::test {

struct RandomStepOptions {
  int max_modules = 6;
  int max_ops_per_call = 4;
  int max_micro_batches = 2;
  bool with_extras = true;  // sections of a newer version
};

// A valid step made from a random program: nested module calls, saves before and after ops, views, mutations, tied
// weights, resizes, regions, collectives, micro-batches, notes, odd strings. The same seed gives the same step on
// every machine.
step::Step random_step(std::uint64_t seed, const RandomStepOptions& options = {});

}  // namespace tidemark::test
