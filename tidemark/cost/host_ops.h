#pragma once

#include <vector>

#include "tidemark/step/step.h"

namespace tidemark::cost {

// Which ops of a step the host does by itself, by op: those all of whose tensors lie in its memory. PyTorch keeps
// there, whatever a model's device is, the numbers that Python makes into tensors, and the step counters of optimizers
// that read them in each step (all but the fused and the capturable ones, which leave them on the device and never
// ask). Records give one device for all storages, so the counters are known by being read: optimizer state of one
// element that is copied to the host. Storages that a record puts on "cpu" while it has others elsewhere count as well.
std::vector<bool> host_ops(const step::Step& step);

}  // namespace tidemark::cost
