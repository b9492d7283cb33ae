#pragma once

#include "tidemark/step/step.h"

namespace tidemark::test {

// The step that PyTorch's own planner is tested with: its toy GPT with 4 layers, 12 heads, vocabulary 8192, sequence
// 1024, width 768, batch 8, in float32 with Adam on a CUDA-like device.
step::Step published_gpt_step();

}  // namespace tidemark::test
