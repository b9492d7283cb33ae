#pragma once

#include <cstdint>
#include <string>

#include "tidemark/planner/space.h"
#include "tidemark/step/step.h"

namespace tidemark::test {

struct RandomTrainingOptions {
  int max_children = 3;
  int max_ops = 3;          // of one call, between calls inside it
  bool may_be_odd = false;  // nodes that never run, saves that go early or late: what no engine does in the usual case
  bool light_backward = false;  // gradients of an eighth: what is kept for backward decides peaks
  int saved_percent = 35;       // how often autograd keeps an input, or a result
  int freed_percent = 55;  // how often the program lets go of something after an op: more, and less binds in forward
  // The rest leaves the step as it is but for what is said.
  bool is_random = true;          // false: no op draws random numbers
  std::int64_t bytes_factor = 1;  // of every storage
  std::string name = "m";         // of modules, before their numbers
  int free_op = -1;               // after so many ops of the forward, one that takes nothing: no bytes, no time
  bool has_casts = false;         // as under autocast: casts of parameters, which stay until the forward ends
};

// A training step as autograd runs one, made at random and small enough to try every plan: nested module calls, some
// twice, views, changes in place, random ops, ops that must not run twice, skips, tensors that several ops save, saves
// that hooks do not see, micro-batches; backward in the order of falling sequence numbers, with gradients that stay.
// Sizes and times have many ties, and zeros, or are huge. The same seed gives the same step.
struct RandomTraining {
  step::Step step;
  planner::Times times;
};
RandomTraining random_training(std::uint64_t seed, const RandomTrainingOptions& options = {});

}  // namespace tidemark::test
