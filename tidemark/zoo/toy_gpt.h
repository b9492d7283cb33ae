#pragma once

#include <cstdint>
#include <memory>

#include "tidemark/zoo/model.h"

namespace tidemark::zoo {

// The small transformer on which PyTorch tests its own planner of selective checkpointing
// (torch/testing/_internal/distributed/_tensor/common_dtensor.py). Its loss is the sum of the logits.
struct ToyGptConfig {
  std::int64_t layers = 2;
  std::int64_t vocabulary = 8;
  std::int64_t positions = 16;
  std::int64_t width = 16;
  std::int64_t heads = 4;
  double dropout = 0.1;
  bool is_causal = true;
  bool tied = true;
};

std::unique_ptr<Model> make_toy_gpt(nn::Net& net, const ToyGptConfig& config, const Batch& batch);

}  // namespace tidemark::zoo
