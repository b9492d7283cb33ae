// Losses.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

// Reduction 1 is the mean, 2 the sum; 0 leaves one loss for each target.
void infer_nll_loss(Call& call) {
  const Tensor& self = call.in(0);
  call.fresh(self.dtype(), call.integer("reduction", 1) == 0 ? call.in(1).sizes() : Dims{});
  call.fresh(self.dtype(), Dims{});
}

void infer_loss_backward(Call& call) {
  const Tensor& self = call.tensor("self");
  call.fresh(self.dtype(), self.sizes());
}

void nll_loss_backward(Backward& b) {
  static const Op op("aten.nll_loss_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"self", b.saved("self")},
                                 {"target", b.saved("target")},
                                 {"weight", None{}},
                                 {"reduction", b.integer("reduction")},
                                 {"ignore_index", b.integer("ignore_index")},
                                 {"total_weight", b.saved("total_weight")}}));
}

// The kernel first makes room for the loss of every element, then shrinks that very tensor to one number, which does
// not shrink its storage.
void infer_mse_loss(Call& call) {
  infer_pointwise(call);
  if (call.integer("reduction", 1) == 0) return;
  const Tensor& result = call.made().front().tensor;
  result->sizes = {};
  result->strides = {};
}

void mse_loss_backward(Backward& b) {
  static const Op op("aten.mse_loss_backward.default");
  const auto grad_of = [&](const char* name, const Tensor& self, const Tensor& target) {
    if (b.needs(name))
      b.give(name, op(b.runner(), {{"grad_output", b.grad()},
                                   {"self", self},
                                   {"target", target},
                                   {"reduction", b.integer("reduction", 1)}}));
  };
  grad_of("self", b.saved("self"), b.saved("target"));
  grad_of("target", b.saved("target"), b.saved("self"));
}

}  // namespace

std::vector<Row> loss_rows() {
  return {
      {.name = "aten.nll_loss_forward.default",
       .infer = infer_nll_loss,
       .node = "NllLossBackward0",
       .saves = {{"self"}, {"target"}},
       .saved_results = {{"total_weight"}},
       .results = {"output", "total_weight"},
       .backward = nll_loss_backward},
      {.name = "aten.nll_loss_backward.default", .infer = infer_loss_backward},
      {.name = "aten.mse_loss.default",
       .infer = infer_mse_loss,
       .node = "MseLossBackward0",
       .saves = {{"self"}, {"target"}},
       .backward = mse_loss_backward},
      {.name = "aten.mse_loss_backward.default", .infer = infer_loss_backward},
  };
}

}  // namespace tidemark::ops
