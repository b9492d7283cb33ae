#include "tidemark/nn/gated_mlp.h"

#include "tidemark/ops/aten.h"

namespace tidemark::nn {

GatedMlp::GatedMlp(Net& net, step::ModuleId parent, const GatedMlpShape& shape)
    : Module(net, parent, "mlp", shape.type),
      gate_proj_(net, id(), "gate_proj", shape.width, shape.inner, shape.has_bias),
      up_proj_(net, id(), "up_proj", shape.width, shape.inner, shape.has_bias),
      down_proj_(net, id(), "down_proj", shape.inner, shape.width, shape.has_bias),
      act_fn_(net, id(), "act_fn", shape.activation_type, shape.activation) {}

Tensor GatedMlp::operator()(const Tensor& x) const {
  return called({&x}, [&] {
    Tensor gate = gate_proj_(x);
    gate = act_fn_(gate);
    Tensor up = up_proj_(x);
    Tensor y = ops::mul(rt(), gate, up);
    ops::drop(gate, up);
    Tensor result = down_proj_(y);
    y.reset();
    return result;
  });
}

}  // namespace tidemark::nn
