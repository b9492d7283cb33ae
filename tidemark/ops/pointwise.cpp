// One element in, one element out.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

Value scalar(const Backward& b, const char* name) {
  const Value* value = b.find(name);
  return value == nullptr ? Value(std::int64_t{1}) : *value;
}

// The other factor: a tensor that was saved, or the number that stood there.
Tensor times_other(Backward& b, const char* other) {
  if (const Tensor& saved = b.saved(other)) return mul(b.runner(), b.grad(), saved);
  const Value* number = b.find(other);
  if (const auto* i = std::get_if<std::int64_t>(number)) return mul(b.runner(), b.grad(), *i);
  return mul(b.runner(), b.grad(), std::get<double>(*number));
}

Tensor over_other(Backward& b) {
  if (const Tensor& saved = b.saved("other")) return div(b.runner(), b.grad(), saved);
  return div(b.runner(), b.grad(), b.number("other"));
}

bool has_alpha(const Backward& b) { return b.number("alpha", 1) != 1; }

void add_backward(Backward& b) {
  if (b.needs("other")) b.give("other", has_alpha(b) ? mul(b.runner(), b.grad(), b.number("alpha")) : b.grad());
  if (b.needs("self")) b.give("self", b.grad());
}

void sub_backward(Backward& b) {
  if (b.needs("other")) b.give("other", neg(b.runner(), b.grad()));
  if (b.needs("self")) b.give("self", b.grad());
}

void mul_backward(Backward& b) {
  if (b.needs("other")) b.give("other", times_other(b, "self"));
  if (b.needs("self")) b.give("self", times_other(b, "other"));
}

void mul_scalar_backward(Backward& b) { b.give("self", mul_scalar(b.runner(), b.grad(), scalar(b, "other"))); }

void div_backward(Backward& b) {
  Runner& r = b.runner();
  if (b.needs("other")) {
    const Tensor quotient = div(r, b.saved("self"), b.saved("other"));
    const Tensor twice = div(r, quotient, b.saved("other"));
    const Tensor negative = neg(r, b.grad());
    b.give("other", mul(r, negative, twice));
  }
  if (b.needs("self")) b.give("self", over_other(b));
}

void neg_backward(Backward& b) { b.give("self", neg(b.runner(), b.grad())); }

void pow_backward(Backward& b) {
  Runner& r = b.runner();
  const double exponent = b.number("exponent");
  b.give("self", mul(r, b.grad(), mul_scalar(r, pow(r, b.saved("self"), exponent - 1), exponent)));
}

void rsqrt_backward(Backward& b) {
  Runner& r = b.runner();
  const Tensor cube = pow(r, b.saved("result"), std::int64_t{3});
  const Tensor half = mul_scalar(r, b.grad(), -0.5);
  b.give("self", mul(r, half, cube));
}

void cos_backward(Backward& b) {
  Runner& r = b.runner();
  b.give("self", mul(r, b.grad(), neg(r, sin(r, b.saved("self")))));
}

void sin_backward(Backward& b) { b.give("self", mul(b.runner(), b.grad(), cos(b.runner(), b.saved("self")))); }

void exp_backward(Backward& b) { b.give("self", mul(b.runner(), b.grad(), b.saved("result"))); }

void log_backward(Backward& b) { b.give("self", div(b.runner(), b.grad(), b.saved("self"))); }

void sqrt_backward(Backward& b) {
  Runner& r = b.runner();
  b.give("self", div(r, b.grad(), mul_scalar(r, b.saved("result"), std::int64_t{2})));
}

void tanh_backward(Backward& b) {
  static const Op op("aten.tanh_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"output", b.saved("result")}}));
}

void sigmoid_backward(Backward& b) {
  static const Op op("aten.sigmoid_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"output", b.saved("result")}}));
}

void relu_backward(Backward& b) {
  static const Op op("aten.threshold_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("result")}, {"threshold", 0}}));
}

void silu_backward(Backward& b) {
  static const Op op("aten.silu_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}}));
}

void gelu_backward(Backward& b) {
  static const Op op("aten.gelu_backward.default");
  if (b.is_given("approximate")) {
    b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}, {"approximate", "tanh"}}));
  } else {
    b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}}));
  }
}

void where_backward(Backward& b) {
  static const Op scalar("aten.scalar_tensor.default");
  Runner& r = b.runner();
  const auto nothing = [&] {
    return scalar(r,
                  {{"s", 0}, {"dtype", dtype_word(b.grad().dtype())}, {"layout", "torch.strided"}, {"device", "cpu"}});
  };
  if (b.needs("other")) {
    const Tensor zero = nothing();
    b.give("other", where(r, b.saved("condition"), zero, b.grad()));
  }
  if (b.needs("self")) {
    const Tensor zero = nothing();
    b.give("self", where(r, b.saved("condition"), b.grad(), zero));
  }
}

void masked_fill_backward(Backward& b) {
  static const Op fill("aten.masked_fill.Scalar");
  b.give("self", fill(b.runner(), {{"self", b.grad()}, {"mask", b.saved("mask")}, {"value", 0}}));
}

void pass_grad(Backward& b) { b.give("self", b.grad()); }

void to_copy_backward(Backward& b) {
  static const Op op("aten._to_copy.default");
  b.give("self", op(b.runner(), {{"self", b.grad()},
                                 {"dtype", dtype_word(b.input("self").dtype)},
                                 {"layout", "torch.strided"},
                                 {"device", "cpu"}}));
}

void infer_clone(Call& call) {
  const Tensor& t = call.in(0);
  const char* format = call.text("memory_format");
  if (format != nullptr && std::string_view(format) == "torch.contiguous_format") {
    call.fresh(t.dtype(), t.sizes());
  } else {
    call.fresh(t.dtype(), t.sizes(), like_strides(t.sizes(), t.strides()));
  }
}

void infer_to_copy(Call& call) {
  const Tensor& t = call.in(0);
  call.fresh(dtype_argument(call, t.dtype()), t.sizes(), like_strides(t.sizes(), t.strides()));
}

// The first input counts twice where a mask decides: sizes from all, the type from `self`.
void infer_where(Call& call) {
  Dims sizes;
  Dims strides;
  pointwise_layout(call, sizes, strides);
  call.fresh(call.in(1).rank() == 0 && call.in(2).rank() > 0 ? call.in(2).dtype() : call.in(1).dtype(), sizes, strides);
}

// masked_fill works on a clone of `self`.
void infer_masked_fill(Call& call) {
  const Tensor& t = call.in(0);
  call.fresh(t.dtype(), broadcast(t.sizes(), call.in(1).sizes()), like_strides(t.sizes(), t.strides()));
}

void infer_float_pointwise(Call& call) {
  Dims sizes;
  Dims strides;
  pointwise_layout(call, sizes, strides);
  const DType dtype = promoted(call);
  call.fresh(is_floating(dtype) ? dtype : DType::kFloat32, sizes, strides);
}

}  // namespace

std::vector<Row> pointwise_rows() {
  return {
      {.name = "aten.add.Tensor",
       .infer = infer_pointwise,
       .node = "AddBackward0",
       .backward = add_backward,
       .number = "other",
       .in_place = "aten.add_.Tensor"},
      {.name = "aten.sub.Tensor",
       .infer = infer_pointwise,
       .node = "SubBackward0",
       .backward = sub_backward,
       .number = "other"},
      {.name = "aten.rsub.Scalar", .infer = infer_pointwise, .node = "RsubBackward1", .backward = neg_backward},
      {.name = "aten.mul.Tensor",
       .infer = infer_pointwise,
       .node = "MulBackward0",
       .saves = {{"other", "self"}, {"self", "other"}},
       .backward = mul_backward,
       .number = "other",
       .saves_number = true},
      {.name = "aten.mul.Scalar", .infer = infer_pointwise, .node = "MulBackward1", .backward = mul_scalar_backward},
      {.name = "aten.div.Tensor",
       .infer = infer_float_pointwise,
       .node = "DivBackward0",
       .saves = {{"other"}, {"self", "other"}},
       .backward = div_backward,
       .number = "other",
       .saves_number = true},
      {.name = "aten.div_.Tensor",
       .infer = infer_in_place,
       .node = "DivBackward0",
       .saves = {{"other"}, {"self", "other"}},
       .backward = div_backward,
       .number = "other",
       .overwrites = "self"},
      {.name = "aten.neg.default", .infer = infer_pointwise, .node = "NegBackward0", .backward = neg_backward},
      {.name = "aten.pow.Tensor_Scalar",
       .infer = infer_pointwise,
       .node = "PowBackward0",
       .saves = {{"self"}},
       .backward = pow_backward},
      {.name = "aten.pow.Scalar", .infer = infer_float_pointwise},
      {.name = "aten.rsqrt.default",
       .infer = infer_float_pointwise,
       .node = "RsqrtBackward0",
       .saved_results = {{"result"}},
       .results = {"result"},
       .backward = rsqrt_backward},
      {.name = "aten.sqrt.default",
       .infer = infer_float_pointwise,
       .node = "SqrtBackward0",
       .saved_results = {{"result"}},
       .results = {"result"},
       .backward = sqrt_backward},
      {.name = "aten.exp.default",
       .infer = infer_float_pointwise,
       .node = "ExpBackward0",
       .saved_results = {{"result"}},
       .results = {"result"},
       .backward = exp_backward},
      {.name = "aten.log.default",
       .infer = infer_float_pointwise,
       .node = "LogBackward0",
       .saves = {{"self"}},
       .backward = log_backward},
      {.name = "aten.cos.default",
       .infer = infer_float_pointwise,
       .node = "CosBackward0",
       .saves = {{"self"}},
       .backward = cos_backward},
      {.name = "aten.sin.default",
       .infer = infer_float_pointwise,
       .node = "SinBackward0",
       .saves = {{"self"}},
       .backward = sin_backward},
      {.name = "aten.reciprocal.default", .infer = infer_float_pointwise},
      {.name = "aten.tanh.default",
       .infer = infer_float_pointwise,
       .node = "TanhBackward0",
       .saved_results = {{"result"}},
       .results = {"result"},
       .backward = tanh_backward},
      {.name = "aten.tanh_backward.default", .infer = infer_pointwise},
      {.name = "aten.sigmoid.default",
       .infer = infer_float_pointwise,
       .node = "SigmoidBackward0",
       .saved_results = {{"result"}},
       .results = {"result"},
       .backward = sigmoid_backward},
      {.name = "aten.sigmoid_backward.default", .infer = infer_pointwise},
      {.name = "aten.relu.default",
       .infer = infer_pointwise,
       .node = "ReluBackward0",
       .saved_results = {{"result"}},
       .results = {"result"},
       .backward = relu_backward},
      {.name = "aten.relu_.default",
       .infer = infer_in_place,
       .node = "ReluBackward0",
       .saved_results = {{"result"}},
       .results = {"result"},
       .backward = relu_backward},
      {.name = "aten.threshold_backward.default", .infer = infer_pointwise},
      {.name = "aten.silu.default",
       .infer = infer_pointwise,
       .node = "SiluBackward0",
       .saves = {{"self"}},
       .backward = silu_backward},
      {.name = "aten.silu_backward.default", .infer = infer_pointwise},
      {.name = "aten.gelu.default",
       .infer = infer_pointwise,
       .node = "GeluBackward0",
       .saves = {{"self"}},
       .backward = gelu_backward},
      {.name = "aten.gelu_backward.default", .infer = infer_pointwise},
      {.name = "aten.where.self",
       .infer = infer_where,
       .node = "WhereBackward0",
       .saves = {{"condition"}},
       .backward = where_backward},
      {.name = "aten.masked_fill.Scalar",
       .infer = infer_masked_fill,
       .node = "MaskedFillBackward0",
       .saves = {{"mask"}},
       .backward = masked_fill_backward,
       .in_place = "aten.masked_fill_.Scalar"},
      {.name = "aten.clone.default", .infer = infer_clone, .node = "CloneBackward0", .backward = pass_grad},
      {.name = "aten._to_copy.default",
       .infer = infer_to_copy,
       .node = "ToCopyBackward0",
       .backward = to_copy_backward},
      {.name = "aten.ne.Scalar", .infer = infer_compare},
      {.name = "aten.eq.Scalar", .infer = infer_compare},
      {.name = "aten.eq.Tensor", .infer = infer_compare},
      {.name = "aten.ne.Tensor", .infer = infer_compare},
      {.name = "aten.lt.Tensor", .infer = infer_compare},
      {.name = "aten.lt.Scalar", .infer = infer_compare},
      {.name = "aten.le.Tensor", .infer = infer_compare},
      {.name = "aten.le.Scalar", .infer = infer_compare},
      {.name = "aten.gt.Tensor", .infer = infer_compare},
      {.name = "aten.gt.Scalar", .infer = infer_compare},
      {.name = "aten.ge.Tensor", .infer = infer_compare},
      {.name = "aten.ge.Scalar", .infer = infer_compare},
      {.name = "aten.logical_not.default", .infer = infer_compare},
      {.name = "aten.logical_and.default", .infer = infer_compare},
      {.name = "aten.bitwise_and.Tensor", .infer = infer_pointwise},
      {.name = "aten.bitwise_or.Tensor", .infer = infer_pointwise},
      {.name = "aten.bitwise_not.default", .infer = infer_pointwise},
      {.name = "aten.abs.default", .infer = infer_pointwise},
      {.name = "aten.floor_divide.default", .infer = infer_pointwise},
      {.name = "aten.minimum.default", .infer = infer_pointwise},
      {.name = "aten.maximum.default", .infer = infer_pointwise},
      {.name = "aten.clamp.default", .infer = infer_like_first},
  };
}

Tensor add(Runner& r, const Tensor& self, const Tensor& other) {
  static const Op op("aten.add.Tensor");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor add(Runner& r, const Tensor& self, double other) {
  static const Op op("aten.add.Tensor");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor add(Runner& r, const Tensor& self, std::int64_t other) {
  static const Op op("aten.add.Tensor");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor sub(Runner& r, const Tensor& self, const Tensor& other) {
  static const Op op("aten.sub.Tensor");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor sub(Runner& r, const Tensor& self, std::int64_t other) {
  static const Op op("aten.sub.Tensor");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor rsub(Runner& r, const Tensor& self, double other) {
  static const Op op("aten.rsub.Scalar");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor mul(Runner& r, const Tensor& self, const Tensor& other) {
  static const Op op("aten.mul.Tensor");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor mul(Runner& r, const Tensor& self, double other) {
  static const Op op("aten.mul.Tensor");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor mul(Runner& r, const Tensor& self, std::int64_t other) {
  static const Op op("aten.mul.Tensor");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor mul_scalar(Runner& r, const Tensor& self, const Value& other) {
  static const Op op("aten.mul.Scalar");
  if (const auto* i = std::get_if<std::int64_t>(&other)) return op(r, {{"self", self}, {"other", *i}});
  return op(r, {{"self", self}, {"other", std::get<double>(other)}});
}
Tensor div(Runner& r, const Tensor& self, const Tensor& other) {
  static const Op op("aten.div.Tensor");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor div(Runner& r, const Tensor& self, double other) {
  static const Op op("aten.div.Tensor");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor neg(Runner& r, const Tensor& self) {
  static const Op op("aten.neg.default");
  return op(r, {{"self", self}});
}
Tensor pow(Runner& r, const Tensor& self, const Value& exponent) {
  static const Op op("aten.pow.Tensor_Scalar");
  if (const auto* i = std::get_if<std::int64_t>(&exponent)) return op(r, {{"self", self}, {"exponent", *i}});
  return op(r, {{"self", self}, {"exponent", std::get<double>(exponent)}});
}
Tensor sqrt(Runner& r, const Tensor& self) {
  static const Op op("aten.sqrt.default");
  return op(r, {{"self", self}});
}
Tensor rsqrt(Runner& r, const Tensor& self) {
  static const Op op("aten.rsqrt.default");
  return op(r, {{"self", self}});
}
Tensor cos(Runner& r, const Tensor& self) {
  static const Op op("aten.cos.default");
  return op(r, {{"self", self}});
}
Tensor sin(Runner& r, const Tensor& self) {
  static const Op op("aten.sin.default");
  return op(r, {{"self", self}});
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
Tensor where(Runner& r, const Tensor& condition, const Tensor& self, const Tensor& other) {
  static const Op op("aten.where.self");
  return op(r, {{"condition", condition}, {"self", self}, {"other", other}});
}
Tensor ne(Runner& r, const Tensor& self, std::int64_t other) {
  static const Op op("aten.ne.Scalar");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor eq(Runner& r, const Tensor& self, std::int64_t other) {
  static const Op op("aten.eq.Scalar");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor clone(Runner& r, const Tensor& self) {
  static const Op op("aten.clone.default");
  return op(r, {{"self", self}});
}
Tensor clone_contiguous(Runner& r, const Tensor& self) {
  static const Op op("aten.clone.default");
  return op(r, {{"self", self}, {"memory_format", "torch.contiguous_format"}});
}
Tensor to_dtype(Runner& r, const Tensor& self, DType dtype) {
  static const Op op("aten._to_copy.default");
  return op(r, {{"self", self}, {"dtype", dtype_word(dtype)}});
}

}  // namespace tidemark::ops
