#pragma once

#include <string>

#include "tidemark/nn/layers.h"

namespace tidemark::nn {

struct GatedMlpShape {
  std::string type;  // the name of its class
  std::int64_t width = 0;
  std::int64_t inner = 0;
  bool has_bias = false;
  std::string activation_type = "SiLUActivation";
  Activation::Function activation = silu;
};

// Two projections, one of which opens and closes the other: down(activation(gate(x)) * up(x)).
class GatedMlp : public Module {
 public:
  GatedMlp(Net& net, step::ModuleId parent, const GatedMlpShape& shape);
  Tensor operator()(const Tensor& x) const;

 private:
  Linear gate_proj_;
  Linear up_proj_;
  Linear down_proj_;
  Activation act_fn_;
};

}  // namespace tidemark::nn
