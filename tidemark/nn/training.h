#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "tidemark/nn/net.h"

namespace tidemark::nn {

enum class OptimizerKind { kNone, kSgd, kMomentum, kAdam, kAdamW };
// How an optimizer goes over its parameters: one after the other, in lists, or in one fused op. PyTorch's own choice is
// a loop on a CPU and lists on CUDA.
enum class OptimizerForm { kAuto, kForLoop, kForeach, kFused };

struct Training {
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  OptimizerForm form = OptimizerForm::kAuto;
  bool master_copy = false;            // the optimizer updates a float32 copy of parameters in half precision
  std::optional<DType> autocast = {};  // forward and loss run under torch.autocast of this type
  std::int64_t micro_batches = 1;      // forward and backward as often, gradients added up
  double clip_norm = 0;                // gradients scaled down to this norm; 0: they are not
};

// A gradient as a step leaves it: perhaps a part of a larger storage.
struct LeftGradient {
  std::int64_t storage_bytes = 0;
  Dims strides;
  std::int64_t offset = 0;
  bool is_plain = true;  // a tensor of its own, like the parameter
};

// One training step of a net, as in
//
//   optimizer.zero_grad();  loss = forward();  loss.backward();  optimizer.step()
//
// With micro-batches, each loss is divided by their number; with a largest norm, clip_grad_norm_ runs before the
// optimizer.
// It is the second step that is recorded, as by the PyTorch capture: optimizer state exists, and the gradients of the
// step before are there to be cleared. `forward` runs the model and returns the loss; `inputs` are the tensors it is
// given.
// Frozen parameters (requires_grad false) have neither gradient nor optimizer state. The gradients of the step before
// are taken to be tensors of their own; where a step leaves parts of larger storages, use the form below. Throws: Error
// for a parameter that wants a gradient and gets none.
step::Step record_step(Net& net, const std::vector<Tensor>& inputs, const std::function<Tensor()>& forward,
                       const Training& training);

// The same with what the step before has left for each parameter that is trained, in their order; empty: plain tensors
// like the parameters. Afterwards it says what this step has left.
step::Step record_step(Net& net, const std::vector<Tensor>& inputs, const std::function<Tensor()>& forward,
                       const Training& training, std::vector<LeftGradient>& left);

}  // namespace tidemark::nn
