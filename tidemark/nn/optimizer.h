#pragma once

#include <string_view>
#include <vector>

#include "tidemark/nn/training.h"

namespace tidemark::nn {

// An optimizer of PyTorch with its default settings, at its second step.
class Optimizer {
 public:
  // Makes the state that the first step left, and tells the recorder.
  Optimizer(Net& net, const Training& training, const std::vector<Tensor>& parameters);

  // Requires: every parameter has a gradient.
  void step();

 private:
  struct Slot {
    Tensor parameter;
    Tensor updated;  // the parameter, or its master copy
    Tensor grad;     // while it steps
    Tensor step;
    Tensor first;   // exp_avg or the momentum buffer
    Tensor second;  // exp_avg_sq
  };
  void adam_for_loop();
  void adam_foreach();
  void adam_fused();
  void sgd_for_loop();
  void sgd_foreach();
  void sgd_fused();
  std::vector<Tensor> list(Tensor Slot::*member) const;
  void copy_back();

  Runtime& rt_;
  Training training_;
  std::vector<Slot> slots_;
};

}  // namespace tidemark::nn
