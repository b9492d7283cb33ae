// Cross entropy of yes and no.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

constexpr std::int64_t kEach = 0;
constexpr std::int64_t kMean = 1;

std::int64_t reduction_of(const Backward& b) { return b.integer("reduction", kMean); }

void infer_of_self(Call& call) {
  const Tensor& self = call.tensor("self");
  call.fresh(self.dtype(), self.sizes());
}

// Room for the loss of every element is made first; shrinking the tensor does not shrink its storage.
void infer_entropy(Call& call) {
  const Tensor& self = call.tensor("self");
  call.fresh(self.dtype(), self.sizes());
  if (call.integer("reduction", kMean) == kEach) return;
  const Tensor& result = call.made().front().tensor;
  result->sizes = {};
  result->strides = {};
}

void infer_entropy_with_logits(Call& call) {
  if (call.integer("reduction", kMean) == kEach) {
    infer_pointwise(call);
  } else {
    call.fresh(promoted(call), Dims{});
  }
}

void divide_by_count(Backward& b, const Tensor& grad) {
  static const Op div_("aten.div_.Scalar");
  if (reduction_of(b) == kMean) div_.none(b.runner(), {{"self", grad}, {"other", count_of(b.input("self").sizes)}});
}

void entropy_backward(Backward& b) {
  static const Op op("aten.binary_cross_entropy_backward.default");
  static const Op logit("aten.logit.default");
  static const Op neg_("aten.neg_.default");
  Runner& r = b.runner();
  if (b.needs("self")) {
    if (reduction_of(b) == kMean) {
      b.give("self", op(r, {{"grad_output", b.grad()},
                            {"self", b.saved("self")},
                            {"target", b.saved("target")},
                            {"weight", b.saved("weight")}}));
    } else {
      b.give("self", op(r, {{"grad_output", b.grad()},
                            {"self", b.saved("self")},
                            {"target", b.saved("target")},
                            {"weight", b.saved("weight")},
                            {"reduction", reduction_of(b)}}));
    }
  }
  if (!b.needs("target")) return;
  Tensor grad;
  {
    const Tensor slope = logit(r, {{"self", b.saved("self")}});
    neg_.none(r, {{"self", slope}});
    grad = mul(r, slope, b.grad());
  }
  if (b.saved("weight")) grad = mul(r, grad, b.saved("weight"));
  divide_by_count(b, grad);
  b.give("target", std::move(grad));
}

Tensor logits_grad(Backward& b) {
  Runner& r = b.runner();
  const Tensor& target = b.saved("target");
  Tensor grad;
  if (const Tensor& positive = b.saved("pos_weight")) {
    const Tensor weighted = mul(r, positive, target);
    const Tensor more = add_scalar(r, weighted, 1);
    const Tensor less = sub(r, more, target);
    const Tensor likely = sigmoid(r, b.saved("self"));
    grad = sub(r, mul(r, less, likely), weighted);
  } else {
    grad = sub(r, sigmoid(r, b.saved("self")), target);
  }
  grad = mul(r, grad, b.grad());
  if (const Tensor& weight = b.saved("weight")) grad = mul(r, grad, weight);
  divide_by_count(b, grad);
  return grad;
}

Tensor target_grad(Backward& b) {
  static const Op log_sigmoid("aten.log_sigmoid_forward.default");
  Runner& r = b.runner();
  Tensor grad;
  if (const Tensor& positive = b.saved("pos_weight")) {
    const Tensor negative = neg(r, b.saved("self"));
    const Tensor unlikely = log_sigmoid(r, {{"self", negative}});
    const Tensor likely = log_sigmoid(r, {{"self", b.saved("self")}});
    const Tensor weighted = mul(r, likely, positive);
    grad = sub(r, unlikely, weighted);
    grad = mul(r, grad, b.grad());
  } else {
    grad = mul(r, neg(r, b.saved("self")), b.grad());
  }
  if (const Tensor& weight = b.saved("weight")) grad = mul(r, grad, weight);
  divide_by_count(b, grad);
  return grad;
}

void entropy_with_logits_backward(Backward& b) {
  if (b.needs("self")) b.give("self", logits_grad(b));
  if (b.needs("target")) b.give("target", target_grad(b));
}

}  // namespace

std::vector<Row> binary_loss_rows() {
  return {
      {.name = "aten.binary_cross_entropy.default",
       .infer = infer_entropy,
       .node = "BinaryCrossEntropyBackward0",
       .saves = {{"self"}, {"target"}, {"weight"}},
       .backward = entropy_backward},
      {.name = "aten.binary_cross_entropy_backward.default", .infer = infer_of_self},
      {.name = "aten.binary_cross_entropy_with_logits.default",
       .infer = infer_entropy_with_logits,
       .node = "BinaryCrossEntropyWithLogitsBackward0",
       .saves = {{"pos_weight"}, {"self"}, {"target"}, {"weight"}},
       .backward = entropy_with_logits_backward,
       .backward_in_place = {"aten.mul.Tensor", "aten.sub.Tensor"}},
  };
}

}  // namespace tidemark::ops
