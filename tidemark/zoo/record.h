#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tidemark/nn/functional.h"
#include "tidemark/nn/training.h"
#include "tidemark/zoo/catalog.h"

namespace tidemark::zoo {

// How a native step is made. Zero means the model's own default.
struct StepOptions {
  std::int64_t batch = 1;
  std::int64_t sequence = 0;              // tokens; default: the model's positions, at most 8192
  std::int64_t image = 0;                 // pixels of a side; default: the model's
  nn::DType dtype = nn::DType::kFloat32;  // of parameters
  nn::Training training = {};
  nn::Target target = nn::Target::kCpu;
  bool input_needs_grad = false;
  nn::AttentionKernel attention = nn::AttentionKernel::kAuto;
};

// Sets types by one word, as users speak of them: fp32, bf16 or fp16 (parameters and all else), bf16-master or
// fp16-master (with a float32 copy that the optimizer updates), autocast-bf16 or autocast-fp16 (float32 parameters
// under torch.autocast). Throws: Error that lists them.
void set_precision(StepOptions& options, std::string_view word);
std::vector<std::string_view> precisions();

// Records one training step of the model without PyTorch, as the PyTorch capture records it.
//
//   step::Step step = record(find_model("gpt2")->config, {.batch = 8});
//
// Throws: Error when the config or an option is impossible.
step::Step record(const Config& config, const StepOptions& options);

}  // namespace tidemark::zoo
