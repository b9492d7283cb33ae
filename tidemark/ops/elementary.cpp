// Elementary functions of one number: powers of e, logarithms, trigonometry, rounding.

#include <cmath>
#include <numbers>

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

Tensor unary(const Op& op, Runner& r, const Tensor& self) { return op(r, {{"self", self}}); }

Tensor exp(Runner& r, const Tensor& self) {
  static const Op op("aten.exp.default");
  return unary(op, r, self);
}

void exp_backward(Backward& b) { b.give("self", mul(b.runner(), b.grad(), b.saved("result"))); }

void exp2_backward(Backward& b) {
  Runner& r = b.runner();
  b.give("self", mul_scalar(r, mul(r, b.grad(), b.saved("result")), std::numbers::ln2));
}

void expm1_backward(Backward& b) {
  Runner& r = b.runner();
  b.give("self", mul(r, b.grad(), add_scalar(r, b.saved("result"), 1)));
}

void log_backward(Backward& b) { b.give("self", div(b.runner(), b.grad(), b.saved("self"))); }

void log2_backward(Backward& b) {
  Runner& r = b.runner();
  b.give("self", div(r, b.grad(), mul_scalar(r, b.saved("self"), 0.6931471805599453)));
}

// The constants are those of derivatives.yaml, with as many digits as stand there.
void log10_backward(Backward& b) {
  Runner& r = b.runner();
  b.give("self", div(r, b.grad(), mul_scalar(r, b.saved("self"), 2.3025850929940456)));
}

void log1p_backward(Backward& b) {
  Runner& r = b.runner();
  b.give("self", div(r, b.grad(), add_scalar(r, b.saved("self"), 1)));
}

void rsqrt_backward(Backward& b) {
  Runner& r = b.runner();
  const Tensor cube = pow(r, b.saved("result"), std::int64_t{3});
  const Tensor half = mul_scalar(r, b.grad(), -0.5);
  b.give("self", mul(r, half, cube));
}

void sqrt_backward(Backward& b) {
  Runner& r = b.runner();
  b.give("self", div(r, b.grad(), mul_scalar(r, b.saved("result"), 2)));
}

void reciprocal_backward(Backward& b) {
  Runner& r = b.runner();
  const Tensor square = mul(r, b.saved("result"), b.saved("result"));
  const Tensor negative = neg(r, b.grad());
  b.give("self", mul(r, negative, square));
}

void sin_backward(Backward& b) { b.give("self", mul(b.runner(), b.grad(), cos(b.runner(), b.saved("self")))); }

void cos_backward(Backward& b) {
  Runner& r = b.runner();
  b.give("self", mul(r, b.grad(), neg(r, sin(r, b.saved("self")))));
}

void tan_backward(Backward& b) {
  Runner& r = b.runner();
  b.give("self", mul(r, b.grad(), add_scalar(r, pow(r, b.saved("result"), std::int64_t{2}), 1)));
}

void asin_backward(Backward& b) {
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  b.give("self", mul(r, b.grad(), rsqrt(r, add_scalar(r, mul(r, neg(r, self), self), 1))));
}

void acos_backward(Backward& b) {
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  b.give("self", mul(r, b.grad(), neg(r, rsqrt(r, add_scalar(r, mul(r, neg(r, self), self), 1)))));
}

void atan_backward(Backward& b) {
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  b.give("self", div(r, b.grad(), add_scalar(r, mul(r, self, self), 1)));
}

void sinh_backward(Backward& b) {
  static const Op cosh("aten.cosh.default");
  b.give("self", mul(b.runner(), b.grad(), unary(cosh, b.runner(), b.saved("self"))));
}

void cosh_backward(Backward& b) {
  static const Op sinh("aten.sinh.default");
  b.give("self", mul(b.runner(), b.grad(), unary(sinh, b.runner(), b.saved("self"))));
}

template <int kSign>
void erf_backward(Backward& b) {
  Runner& r = b.runner();
  const double factor = kSign * 2.0 / std::sqrt(std::numbers::pi);
  const Tensor square = pow(r, b.saved("self"), std::int64_t{2});
  b.give("self", mul(r, mul_scalar(r, exp(r, neg(r, square)), factor), b.grad()));
}

void abs_backward(Backward& b) {
  static const Op sgn("aten.sgn.default");
  b.give("self", mul(b.runner(), b.grad(), unary(sgn, b.runner(), b.saved("self"))));
}

void neg_backward(Backward& b) { b.give("self", neg(b.runner(), b.grad())); }

void logit_backward(Backward& b) {
  static const Op op("aten.logit_backward.default");
  if (b.is_given("eps")) {
    b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}, {"eps", b.number("eps")}}));
  } else {
    b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}}));
  }
}

}  // namespace

std::vector<Row> elementary_rows() {
  const auto real = infer_float_pointwise;
  const Row exp_row = of_result("aten.exp.default", real, "ExpBackward0", exp_backward);
  const Row abs_row = of_self("aten.abs.default", infer_pointwise, "AbsBackward0", abs_backward);
  const Row neg_row = of_grad("aten.neg.default", infer_pointwise, "NegBackward0", neg_backward);
  return {
      exp_row,
      in_place_form("aten.exp_.default", exp_row, false),
      of_result("aten.exp2.default", real, "Exp2Backward0", exp2_backward),
      of_result("aten.expm1.default", real, "Expm1Backward0", expm1_backward),
      of_self("aten.log.default", real, "LogBackward0", log_backward),
      of_self("aten.log2.default", real, "Log2Backward0", log2_backward),
      of_self("aten.log10.default", real, "Log10Backward0", log10_backward),
      of_self("aten.log1p.default", real, "Log1PBackward0", log1p_backward),
      of_result("aten.sqrt.default", real, "SqrtBackward0", sqrt_backward),
      of_result("aten.rsqrt.default", real, "RsqrtBackward0", rsqrt_backward),
      of_result("aten.reciprocal.default", real, "ReciprocalBackward0", reciprocal_backward),
      of_self("aten.sin.default", real, "SinBackward0", sin_backward),
      of_self("aten.cos.default", real, "CosBackward0", cos_backward),
      of_result("aten.tan.default", real, "TanBackward0", tan_backward),
      of_self("aten.asin.default", real, "AsinBackward0", asin_backward),
      of_self("aten.acos.default", real, "AcosBackward0", acos_backward),
      of_self("aten.atan.default", real, "AtanBackward0", atan_backward),
      of_self("aten.sinh.default", real, "SinhBackward0", sinh_backward),
      of_self("aten.cosh.default", real, "CoshBackward0", cosh_backward),
      of_self("aten.erf.default", real, "ErfBackward0", erf_backward<1>),
      of_self("aten.erfc.default", real, "ErfcBackward0", erf_backward<-1>),
      of_self("aten.logit.default", real, "LogitBackward0", logit_backward),
      {.name = "aten.logit_backward.default", .infer = infer_pointwise},
      abs_row,
      in_place_form("aten.abs_.default", abs_row, true),
      neg_row,
      in_place_form("aten.neg_.default", neg_row, false),
      of_grad("aten.floor.default", infer_pointwise, "FloorBackward0", zero_grad),
      of_grad("aten.ceil.default", infer_pointwise, "CeilBackward0", zero_grad),
      of_grad("aten.round.default", infer_pointwise, "RoundBackward0", zero_grad),
      of_grad("aten.trunc.default", infer_pointwise, "TruncBackward0", zero_grad),
      of_grad("aten.sign.default", infer_pointwise, "SignBackward0", zero_grad),
      {.name = "aten.sgn.default", .infer = infer_pointwise},
  };
}

Tensor neg(Runner& r, const Tensor& self) {
  static const Op op("aten.neg.default");
  return op(r, {{"self", self}});
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

}  // namespace tidemark::ops
