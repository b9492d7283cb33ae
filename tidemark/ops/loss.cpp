// Losses.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

constexpr std::int64_t kEach = 0;  // one loss for each target
constexpr std::int64_t kMean = 1;

void infer_nll_loss(Call& call) {
  const Tensor& self = call.in(0);
  call.fresh(self.dtype(), call.integer("reduction", kMean) == kEach ? call.in(1).sizes() : Dims{});
  call.fresh(self.dtype(), Dims{});
}

void infer_loss_backward(Call& call) {
  const Tensor& self = call.tensor("self");
  call.fresh(self.dtype(), self.sizes());
}

template <bool kImages>
void nll_loss_backward(Backward& b) {
  static const Op op(kImages ? "aten.nll_loss2d_backward.default" : "aten.nll_loss_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"self", b.saved("self")},
                                 {"target", b.saved("target")},
                                 {"weight", b.saved("weight")},
                                 {"reduction", b.integer("reduction")},
                                 {"ignore_index", b.integer("ignore_index")},
                                 {"total_weight", b.saved("total_weight")}}));
}

// One number, in a storage of its own.
void infer_reduced_loss(Call& call) {
  if (call.integer("reduction", kMean) == kEach) {
    infer_pointwise(call);
  } else {
    call.fresh(promoted(call), Dims{});
  }
}

// The kernel first makes room for the loss of every element, then shrinks that very tensor to one number, which does
// not shrink its storage.
void infer_shrunk_loss(Call& call) {
  infer_pointwise(call);
  if (call.integer("reduction", kMean) == kEach) return;
  const Tensor& result = call.made().front().tensor;
  result->sizes = {};
  result->strides = {};
}

// The gradient of the target is that of the prediction with the two exchanged.
template <class Run>
void symmetric_backward(Backward& b, const Run& run) {
  if (b.needs("self")) b.give("self", run(b.saved("self"), b.saved("target")));
  if (b.needs("target")) b.give("target", run(b.saved("target"), b.saved("self")));
}

void mse_loss_backward(Backward& b) {
  static const Op op("aten.mse_loss_backward.default");
  symmetric_backward(b, [&](const Tensor& self, const Tensor& target) {
    return op(
        b.runner(),
        {{"grad_output", b.grad()}, {"self", self}, {"target", target}, {"reduction", b.integer("reduction", kMean)}});
  });
}

void smooth_l1_loss_backward(Backward& b) {
  static const Op op("aten.smooth_l1_loss_backward.default");
  symmetric_backward(b, [&](const Tensor& self, const Tensor& target) {
    return op(b.runner(), {{"grad_output", b.grad()},
                           {"self", self},
                           {"target", target},
                           {"reduction", b.integer("reduction", kMean)},
                           {"beta", b.number("beta", 1)}});
  });
}

void huber_loss_backward(Backward& b) {
  static const Op op("aten.huber_loss_backward.default");
  symmetric_backward(b, [&](const Tensor& self, const Tensor& target) {
    return op(b.runner(), {{"grad_output", b.grad()},
                           {"self", self},
                           {"target", target},
                           {"reduction", b.integer("reduction", kMean)},
                           {"delta", b.number("delta", 1)}});
  });
}

void soft_margin_loss_backward(Backward& b) {
  static const Op op("aten.soft_margin_loss_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"self", b.saved("self")},
                                 {"target", b.saved("target")},
                                 {"reduction", b.integer("reduction", kMean)}}));
}

Row of_pair(const char* name, void (*infer)(Call&), const char* node, void (*backward)(Backward&)) {
  return {.name = name, .infer = infer, .node = node, .saves = {{"self"}, {"target"}}, .backward = backward};
}

Row nll_row(const char* name, const char* node, void (*backward)(Backward&)) {
  return {.name = name,
          .infer = infer_nll_loss,
          .node = node,
          .saves = {{"self"}, {"target"}, {"weight"}},
          .saved_results = {{"total_weight"}},
          .results = {"output", "total_weight"},
          .backward = backward};
}

}  // namespace

std::vector<Row> loss_rows() {
  return {
      nll_row("aten.nll_loss_forward.default", "NllLossBackward0", nll_loss_backward<false>),
      {.name = "aten.nll_loss_backward.default", .infer = infer_loss_backward},
      nll_row("aten.nll_loss2d_forward.default", "NllLoss2DBackward0", nll_loss_backward<true>),
      {.name = "aten.nll_loss2d_backward.default", .infer = infer_loss_backward},
      of_pair("aten.mse_loss.default", infer_shrunk_loss, "MseLossBackward0", mse_loss_backward),
      {.name = "aten.mse_loss_backward.default", .infer = infer_loss_backward},
      of_pair("aten.smooth_l1_loss.default", infer_shrunk_loss, "SmoothL1LossBackward0", smooth_l1_loss_backward),
      {.name = "aten.smooth_l1_loss_backward.default", .infer = infer_loss_backward},
      of_pair("aten.huber_loss.default", infer_reduced_loss, "HuberLossBackward0", huber_loss_backward),
      {.name = "aten.huber_loss_backward.default", .infer = infer_loss_backward},
      of_pair("aten.soft_margin_loss.default", infer_shrunk_loss, "SoftMarginLossBackward0", soft_margin_loss_backward),
      {.name = "aten.soft_margin_loss_backward.default", .infer = infer_loss_backward},
  };
}

}  // namespace tidemark::ops
