// What networks put between their layers.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

// Backward ops that take the gradient and the result.
template <int kWhich>
void by_result(Backward& b) {
  static const Op op(kWhich == 0 ? "aten.tanh_backward.default" : "aten.sigmoid_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"output", b.saved("result")}}));
}

// Backward ops that take the gradient and the input.
enum ByInput { kSilu, kMish, kHardSwish, kHardSigmoid };
template <ByInput kWhich>
void by_input(Backward& b) {
  static const Op op(kWhich == kSilu        ? "aten.silu_backward.default"
                     : kWhich == kMish      ? "aten.mish_backward.default"
                     : kWhich == kHardSwish ? "aten.hardswish_backward.default"
                                            : "aten.hardsigmoid_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}}));
}

Tensor threshold_backward_op(Runner& r, const Tensor& grad, const Tensor& self, const Value& threshold) {
  static const Op op("aten.threshold_backward.default");
  return op(r, {{"grad_output", grad}, {"self", self}, {"threshold", threshold}});
}

void relu_backward(Backward& b) {
  b.give("self", threshold_backward_op(b.runner(), b.grad(), b.saved("result"), std::int64_t{0}));
}

void threshold_backward(Backward& b) {
  b.give("self", threshold_backward_op(b.runner(), b.grad(), b.saved("self"), *b.find("threshold")));
}

void gelu_backward(Backward& b) {
  static const Op op("aten.gelu_backward.default");
  if (b.is_given("approximate")) {
    b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}, {"approximate", "tanh"}}));
  } else {
    b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}}));
  }
}

// Whether the sign of the input can be told from the result decides what the form in place keeps.
template <bool kFromResult>
void leaky_relu_backward(Backward& b) {
  static const Op op("aten.leaky_relu_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"self", b.saved(kFromResult ? "result" : "self")},
                                 {"negative_slope", given(b, "negative_slope", 0.01)},
                                 {"self_is_result", kFromResult}}));
}

Tensor elu_backward_op(Backward& b, const Value& alpha, const Value& scale, const Value& input_scale,
                       const char* from) {
  static const Op op("aten.elu_backward.default");
  return op(b.runner(), {{"grad_output", b.grad()},
                         {"alpha", alpha},
                         {"scale", scale},
                         {"input_scale", input_scale},
                         {"is_result", std::string_view(from) == "result"},
                         {"self_or_result", b.saved(from)}});
}

template <bool kFromResult>
void elu_backward(Backward& b) {
  const Value one = std::int64_t{1};
  b.give("self", elu_backward_op(b, given(b, "alpha", one), given(b, "scale", one), given(b, "input_scale", one),
                                 kFromResult ? "result" : "self"));
}

void celu_backward(Backward& b) {
  b.give("self", elu_backward_op(b, given(b, "alpha", 1.0), std::int64_t{1}, 1.0 / b.number("alpha", 1.0), "self"));
}

void softplus_backward(Backward& b) {
  static const Op op("aten.softplus_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"self", b.saved("self")},
                                 {"beta", given(b, "beta", std::int64_t{1})},
                                 {"threshold", given(b, "threshold", std::int64_t{20})}}));
}

void hardtanh_backward(Backward& b) {
  static const Op op("aten.hardtanh_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"self", b.saved("self")},
                                 {"min_val", given(b, "min_val", std::int64_t{-1})},
                                 {"max_val", given(b, "max_val", std::int64_t{1})}}));
}

void hardshrink_backward(Backward& b) {
  static const Op op("aten.hardshrink_backward.default");
  b.give("self",
         op(b.runner(), {{"grad_out", b.grad()}, {"self", b.saved("self")}, {"lambd", given(b, "lambd", 0.5)}}));
}

void softshrink_backward(Backward& b) {
  static const Op op("aten.softshrink_backward.default");
  b.give("self",
         op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}, {"lambd", given(b, "lambd", 0.5)}}));
}

// The second result spares backward an exponential.
void infer_log_sigmoid(Call& call) {
  infer_pointwise(call);
  infer_pointwise(call);
}

void log_sigmoid_backward(Backward& b) {
  static const Op op("aten.log_sigmoid_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}, {"buffer", b.saved("buffer")}}));
}

void infer_glu(Call& call) {
  Dims sizes = call.in(0).sizes();
  sizes[wrap_dim(call.integer("dim", -1), sizes.size())] /= 2;
  call.fresh(call.in(0).dtype(), sizes);
}

void infer_glu_backward(Call& call) { call.fresh(call.in(1).dtype(), call.in(1).sizes()); }

void glu_backward(Backward& b) {
  static const Op op("aten.glu_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}, {"dim", b.integer("dim", -1)}}));
}

// The gradient of the slopes comes back unsummed, in the shape of the result.
void infer_prelu_backward(Call& call) {
  infer_pointwise(call);
  infer_pointwise(call);
}

void prelu_backward(Backward& b) {
  static const Op op("aten._prelu_kernel_backward.default");
  std::vector<Tensor> grads =
      op.all(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}, {"weight", b.saved("weight")}});
  if (b.needs("self")) b.give("self", std::move(grads[0]));
  if (b.needs("weight")) b.give("weight", std::move(grads[1]));
}

}  // namespace

std::vector<Row> activation_rows() {
  const auto same = infer_pointwise;
  const auto real = infer_float_pointwise;
  const Row tanh_row = of_result("aten.tanh.default", real, "TanhBackward0", by_result<0>);
  const Row sigmoid_row = of_result("aten.sigmoid.default", real, "SigmoidBackward0", by_result<1>);
  const Row relu_row = of_result("aten.relu.default", same, "ReluBackward0", relu_backward);
  const Row silu_row = of_self("aten.silu.default", same, "SiluBackward0", by_input<kSilu>);
  const Row gelu_row = of_self("aten.gelu.default", same, "GeluBackward0", gelu_backward);
  const Row hardtanh_row = of_self("aten.hardtanh.default", same, "HardtanhBackward0", hardtanh_backward);
  const Row hardswish_row = of_self("aten.hardswish.default", same, "HardswishBackward0", by_input<kHardSwish>);
  const Row leaky_of_result =
      of_result("aten.leaky_relu.default", same, "LeakyReluBackward1", leaky_relu_backward<true>);
  const Row elu_of_result = of_result("aten.elu.default", same, "EluBackward1", elu_backward<true>);
  return {
      tanh_row,
      in_place_form("aten.tanh_.default", tanh_row, false),
      {.name = "aten.tanh_backward.default", .infer = same},
      sigmoid_row,
      in_place_form("aten.sigmoid_.default", sigmoid_row, false),
      {.name = "aten.sigmoid_backward.default", .infer = same},
      relu_row,
      in_place_form("aten.relu_.default", relu_row, false),
      of_self("aten.threshold.default", same, "ThresholdBackward0", threshold_backward),
      {.name = "aten.threshold_backward.default", .infer = same},
      silu_row,
      in_place_form("aten.silu_.default", silu_row, true),
      {.name = "aten.silu_backward.default", .infer = same},
      gelu_row,
      in_place_form("aten.gelu_.default", gelu_row, true),
      {.name = "aten.gelu_backward.default", .infer = same},
      of_self("aten.mish.default", same, "MishBackward0", by_input<kMish>),
      {.name = "aten.mish_backward.default", .infer = same},
      hardswish_row,
      in_place_form("aten.hardswish_.default", hardswish_row, true),
      {.name = "aten.hardswish_backward.default", .infer = same},
      of_self("aten.hardsigmoid.default", same, "HardsigmoidBackward0", by_input<kHardSigmoid>),
      {.name = "aten.hardsigmoid_backward.default", .infer = same},
      of_self("aten.leaky_relu.default", same, "LeakyReluBackward0", leaky_relu_backward<false>),
      in_place_form("aten.leaky_relu_.default", leaky_of_result, false),
      {.name = "aten.leaky_relu_backward.default", .infer = same},
      of_self("aten.elu.default", same, "EluBackward0", elu_backward<false>),
      in_place_form("aten.elu_.default", elu_of_result, false),
      of_self("aten.celu.default", same, "CeluBackward0", celu_backward),
      {.name = "aten.elu_backward.default", .infer = same},
      of_self("aten.softplus.default", same, "SoftplusBackward0", softplus_backward),
      {.name = "aten.softplus_backward.default", .infer = same},
      hardtanh_row,
      in_place_form("aten.hardtanh_.default", hardtanh_row, true),
      {.name = "aten.hardtanh_backward.default", .infer = same},
      of_self("aten.hardshrink.default", same, "HardshrinkBackward0", hardshrink_backward),
      {.name = "aten.hardshrink_backward.default", .infer = same},
      of_self("aten.softshrink.default", same, "SoftshrinkBackward0", softshrink_backward),
      {.name = "aten.softshrink_backward.default", .infer = same},
      {.name = "aten.log_sigmoid_forward.default",
       .infer = infer_log_sigmoid,
       .node = "LogSigmoidBackward0",
       .saves = {{"self"}},
       .saved_results = {{"buffer"}},
       .results = {"output", "buffer"},
       .backward = log_sigmoid_backward},
      {.name = "aten.log_sigmoid_backward.default", .infer = same},
      of_self("aten.glu.default", infer_glu, "GluBackward0", glu_backward),
      {.name = "aten.glu_backward.default", .infer = infer_glu_backward},
      {.name = "aten._prelu_kernel.default",
       .infer = same,
       .node = "PreluKernelBackward0",
       .saves = {{"self"}, {"weight"}},
       .backward = prelu_backward},
      {.name = "aten._prelu_kernel_backward.default", .infer = infer_prelu_backward},
  };
}

Tensor tanh(Runner& r, const Tensor& self) {
  static const Op op("aten.tanh.default");
  return op(r, {{"self", self}});
}
Tensor sigmoid(Runner& r, const Tensor& self) {
  static const Op op("aten.sigmoid.default");
  return op(r, {{"self", self}});
}
Tensor relu(Runner& r, const Tensor& self) {
  static const Op op("aten.relu.default");
  return op(r, {{"self", self}});
}
void relu_(Runner& r, const Tensor& self) {
  static const Op op("aten.relu_.default");
  op.none(r, {{"self", self}});
}
Tensor silu(Runner& r, const Tensor& self) {
  static const Op op("aten.silu.default");
  return op(r, {{"self", self}});
}
Tensor gelu(Runner& r, const Tensor& self, bool approximate) {
  static const Op op("aten.gelu.default");
  if (approximate) return op(r, {{"self", self}, {"approximate", "tanh"}});
  return op(r, {{"self", self}});
}

}  // namespace tidemark::ops
