// Arithmetic, element by element, and copies.

#include <cmath>

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

const Value kOne = std::int64_t{1};

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

void add_backward(Backward& b) {
  if (b.needs("other")) b.give("other", maybe_multiply(b.runner(), b.grad(), given(b, "alpha", kOne)));
  if (b.needs("self")) b.give("self", b.grad());
}

void sub_backward(Backward& b) {
  Runner& r = b.runner();
  if (b.needs("other")) b.give("other", maybe_multiply(r, neg(r, b.grad()), given(b, "alpha", kOne)));
  if (b.needs("self")) b.give("self", b.grad());
}

void rsub_backward(Backward& b) {
  Runner& r = b.runner();
  b.give("self", maybe_multiply(r, neg(r, b.grad()), given(b, "alpha", kOne)));
}

void mul_backward(Backward& b) {
  if (b.needs("other")) b.give("other", times_other(b, "self"));
  if (b.needs("self")) b.give("self", times_other(b, "other"));
}

void mul_scalar_backward(Backward& b) { b.give("self", mul_scalar(b.runner(), b.grad(), *b.find("other"))); }

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

void div_scalar_backward(Backward& b) {
  static const Op op("aten.div.Scalar");
  b.give("self", op(b.runner(), {{"self", b.grad()}, {"other", *b.find("other")}}));
}

// Rounded, a quotient has no slope.
void div_mode_backward(Backward& b) {
  static const Op op("aten.zeros_like.default");
  for (const char* name : {"other", "self"})
    if (b.needs(name))
      b.give(name, op(b.runner(), {{"self", b.grad()},
                                   {"dtype", dtype_word(b.grad().dtype())},
                                   {"layout", "torch.strided"},
                                   {"device", "cpu"}}));
}

void pow_backward(Backward& b) {
  static const Op zeros("aten.zeros_like.default");
  Runner& r = b.runner();
  const double exponent = b.number("exponent");
  if (exponent == 0) {
    b.give("self", zeros(r, {{"self", b.saved("self")}, {"memory_format", "torch.contiguous_format"}}));
  } else {
    b.give("self", mul(r, b.grad(), mul_scalar(r, pow(r, b.saved("self"), exponent - 1), exponent)));
  }
}

Tensor compared(const char* op, Runner& r, const Tensor& self, const Value& number) {
  return Op(op)(r, {{"self", self}, {"other", number}});
}

void pow_tensor_backward(Backward& b) {
  static const Op power("aten.pow.Tensor_Tensor");
  static const Op log("aten.log.default");
  static const Op both("aten.logical_and.default");
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  const Tensor& exponent = b.saved("exponent");
  if (b.needs("exponent")) {
    const Tensor undefined = [&] {
      const Tensor positive = compared("aten.ge.Scalar", r, exponent, std::int64_t{0});
      const Tensor zero = compared("aten.eq.Scalar", r, self, std::int64_t{0});
      return both(r, {{"self", zero}, {"other", positive}});
    }();
    const Tensor logarithm = log(r, {{"self", self}});
    const Tensor slope = mul(r, b.saved("result"), logarithm);
    const Tensor zero = scalar_tensor(r, 0.0, b.grad().dtype());
    b.give("exponent", mul(r, b.grad(), where(r, undefined, zero, slope)));
  }
  if (b.needs("self")) {
    const Tensor less = sub_scalar(r, exponent, 1);
    const Tensor lower = power(r, {{"self", self}, {"exponent", less}});
    const Tensor slope = mul(r, exponent, lower);
    const Tensor grad = mul(r, b.grad(), slope);
    const Tensor zero = scalar_tensor(r, 0.0, b.grad().dtype());
    const Tensor is_zero = compared("aten.eq.Scalar", r, exponent, 0.0);
    b.give("self", where(r, is_zero, zero, grad));
  }
}

void pow_scalar_backward(Backward& b) {
  Runner& r = b.runner();
  b.give("exponent", mul(r, b.grad(), mul_scalar(r, b.saved("result"), std::log(b.number("self")))));
}

void xlogy_backward(Backward& b) {
  static const Op xlogy("aten.xlogy.Tensor");
  static const Op both("aten.bitwise_and.Tensor");
  static const Op fill("aten.masked_fill.Scalar");
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  const Tensor& other = b.saved("other");
  if (b.needs("other")) b.give("other", div(r, mul(r, b.grad(), self), other));
  if (b.needs("self")) {
    const Tensor whole = xlogy(r, {{"self", b.grad()}, {"other", other}});
    const Tensor low = compared("aten.le.Scalar", r, other, 0.0);
    const Tensor zero = compared("aten.eq.Scalar", r, self, 0.0);
    const Tensor undefined = both(r, {{"self", zero}, {"other", low}});
    b.give("self", fill(r, {{"self", whole}, {"mask", undefined}, {"value", 0.0}}));
  }
}

void lerp_backward(Backward& b) {
  Runner& r = b.runner();
  const double weight = b.number("weight");
  if (b.needs("end")) b.give("end", mul_scalar(r, b.grad(), *b.find("weight")));
  if (b.needs("self")) b.give("self", mul_scalar(r, b.grad(), 1.0 - weight));
}

// 1 - x and 1 / x of a tensor: a new tensor of ones, worked upon in place.
Tensor from_number(Runner& r, const Tensor& self, const Value& number, const char* in_place) {
  static const Op empty("aten.empty_like.default");
  static const Op fill("aten.fill_.Scalar");
  Tensor made = empty(r, {{"self", self}, {"memory_format", "torch.preserve_format"}});
  fill.none(r, {{"self", made}, {"value", number}});
  Op(in_place).none(r, {{"self", made}, {"other", self}});
  return made;
}

void lerp_tensor_backward(Backward& b) {
  Runner& r = b.runner();
  if (b.needs("end")) b.give("end", mul(r, b.grad(), b.saved("weight")));
  if (b.needs("self")) b.give("self", mul(r, b.grad(), from_number(r, b.saved("weight"), kOne, "aten.sub_.Tensor")));
  if (b.needs("weight")) b.give("weight", mul(r, b.grad(), sub(r, b.saved("end"), b.saved("self"))));
}

void addcmul_backward(Backward& b) {
  Runner& r = b.runner();
  const Value value = given(b, "value", kOne);
  if (b.needs("self")) b.give("self", b.grad());
  if (b.needs("tensor1")) b.give("tensor1", mul(r, b.grad(), mul_scalar(r, b.saved("tensor2"), value)));
  if (b.needs("tensor2")) b.give("tensor2", mul(r, b.grad(), mul_scalar(r, b.saved("tensor1"), value)));
}

void addcdiv_backward(Backward& b) {
  Runner& r = b.runner();
  const Value value = given(b, "value", kOne);
  const Tensor& below = b.saved("tensor2");
  if (b.needs("self")) b.give("self", b.grad());
  if (b.needs("tensor1")) b.give("tensor1", mul(r, b.grad(), from_number(r, below, value, "aten.div_.Tensor")));
  if (b.needs("tensor2")) {
    const Tensor square = mul(r, below, below);
    const Tensor above = mul_scalar(r, b.saved("tensor1"), value);
    const Tensor quotient = div(r, above, square);
    const Tensor negative = neg(r, b.grad());
    b.give("tensor2", mul(r, negative, quotient));
  }
}

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

}  // namespace

std::vector<Row> pointwise_rows() {
  const Row sub_row = {.name = "aten.sub.Tensor",
                       .infer = infer_pointwise,
                       .node = "SubBackward0",
                       .backward = sub_backward,
                       .number = "other"};
  const Row mul_row = {.name = "aten.mul.Tensor",
                       .infer = infer_pointwise,
                       .node = "MulBackward0",
                       .saves = {{"other", "self"}, {"self", "other"}},
                       .backward = mul_backward,
                       .number = "other",
                       .saves_number = true};
  const Row div_row = {.name = "aten.div.Tensor",
                       .infer = infer_float_pointwise,
                       .node = "DivBackward0",
                       .saves = {{"other"}, {"self", "other"}},
                       .backward = div_backward,
                       .number = "other",
                       .saves_number = true};
  return {
      {.name = "aten.add.Tensor",
       .infer = infer_pointwise,
       .node = "AddBackward0",
       .backward = add_backward,
       .number = "other",
       .in_place = "aten.add_.Tensor"},
      of_grad("aten.add.Scalar", infer_pointwise, "AddBackward1", pass_grad),
      sub_row,
      in_place_form("aten.sub_.Tensor", sub_row, false),
      of_grad("aten.sub.Scalar", infer_pointwise, "SubBackward1", pass_grad),
      of_grad("aten.rsub.Scalar", infer_pointwise, "RsubBackward1", rsub_backward),
      mul_row,
      in_place_form("aten.mul_.Tensor", mul_row, true),
      of_grad("aten.mul.Scalar", infer_pointwise, "MulBackward1", mul_scalar_backward),
      div_row,
      in_place_form("aten.div_.Tensor", div_row, true),
      of_grad("aten.div.Scalar", infer_float_pointwise, "DivBackward1", div_scalar_backward),
      {.name = "aten.div.Tensor_mode",
       .infer = infer_pointwise,
       .node = "DivBackward2",
       .saves = {{"other"}, {"self", "other"}},
       .backward = div_mode_backward,
       .number = "other"},
      of_grad("aten.fmod.Scalar", infer_pointwise, "FmodBackward0", pass_grad),
      of_grad("aten.remainder.Scalar", infer_pointwise, "RemainderBackward0", pass_grad),
      of_self("aten.pow.Tensor_Scalar", infer_pointwise, "PowBackward0", pow_backward),
      {.name = "aten.pow.Tensor_Tensor",
       .infer = infer_pointwise,
       .node = "PowBackward1",
       .saves = {{"exponent"}, {"self"}},
       .saved_results = {{"result"}},
       .results = {"result"},
       .backward = pow_tensor_backward},
      {.name = "aten.pow.Scalar",
       .infer = infer_float_pointwise,
       .node = "PowBackward2",
       .saves = {{"exponent"}},
       .saved_results = {{"result"}},
       .results = {"result"},
       .backward = pow_scalar_backward},
      {.name = "aten.pow_.Scalar", .infer = infer_in_place},
      {.name = "aten.xlogy.Tensor",
       .infer = infer_float_pointwise,
       .node = "XlogyBackward0",
       .saves = {{"other"}, {"self"}},
       .backward = xlogy_backward},
      of_grad("aten.lerp.Scalar", infer_pointwise, "LerpBackward0", lerp_backward),
      {.name = "aten.lerp.Tensor",
       .infer = infer_pointwise,
       .node = "LerpBackward1",
       .saves = {{"end", "weight"}, {"self", "weight"}, {"weight"}},
       .backward = lerp_tensor_backward},
      {.name = "aten.addcmul.default",
       .infer = infer_pointwise,
       .node = "AddcmulBackward0",
       .saves = {{"tensor1", "tensor2"}, {"tensor2", "tensor1"}},
       .backward = addcmul_backward},
      {.name = "aten.addcdiv.default",
       .infer = infer_pointwise,
       .node = "AddcdivBackward0",
       .saves = {{"tensor1", "tensor2"}, {"tensor2"}},
       .backward = addcdiv_backward},
      {.name = "aten.floor_divide.default", .infer = infer_pointwise},
      of_grad("aten.clone.default", infer_clone, "CloneBackward0", pass_grad),
      of_grad("aten._to_copy.default", infer_to_copy, "ToCopyBackward0", to_copy_backward),
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
  return op(r, {{"self", self}, {"other", other}});
}
Tensor div_scalar(Runner& r, const Tensor& self, std::int64_t other) {
  static const Op op("aten.div.Scalar");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor add_scalar(Runner& r, const Tensor& self, std::int64_t other) {
  static const Op op("aten.add.Scalar");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor sub_scalar(Runner& r, const Tensor& self, std::int64_t other) {
  static const Op op("aten.sub.Scalar");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor div(Runner& r, const Tensor& self, const Tensor& other) {
  static const Op op("aten.div.Tensor");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor div(Runner& r, const Tensor& self, double other) {
  static const Op op("aten.div.Tensor");
  return op(r, {{"self", self}, {"other", other}});
}
Tensor pow(Runner& r, const Tensor& self, const Value& exponent) {
  static const Op op("aten.pow.Tensor_Scalar");
  return op(r, {{"self", self}, {"exponent", exponent}});
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
