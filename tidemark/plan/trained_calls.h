#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/plan/event_index.h"
#include "tidemark/step/step.h"

namespace tidemark::plan {

// The calls that a plan counts: those that autograd saw, in forward and loss passes. Who applies a plan does not see
// calls without gradients, as for pseudo labels, rollouts or an evaluation after the step.
struct TrainedCalls {
  std::vector<std::uint8_t> is_trained;  // by call
  std::vector<std::uint32_t> number;     // by call: how many such calls of the module came before it in the micro-batch
  std::uint32_t micro_batches = 1;       // the last has such a call or a backward
};

// Requires: `index` is index_events(step).
TrainedCalls find_trained_calls(const step::Step& step, const EventIndex& index);

}  // namespace tidemark::plan
