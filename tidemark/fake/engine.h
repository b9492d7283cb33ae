#pragma once

#include "tidemark/fake/recorder.h"

namespace tidemark::fake {

// Runs the graph below `root` as PyTorch's engine does on one thread: of the nodes whose gradients are complete, the
// one made last goes first; leaves go before all others; a gradient that arrives second is added to the first; what a
// node saved is released when it has run.
void run_backward(ops::Runner& runner, Recorder& recorder, const ops::Edge& root, const Tensor& gradient);

}  // namespace tidemark::fake
