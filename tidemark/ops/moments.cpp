// Variances and standard deviations.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

void infer_moment(Call& call) {
  call.fresh(call.in(0).dtype(), reduced(call.in(0).sizes(), call.dims("dim"), call.flag("keepdim")));
}
void infer_two_moments(Call& call) {
  infer_moment(call);
  infer_moment(call);
}

std::int64_t count_reduced(const Backward& b) {
  const Dims& sizes = b.input("self").sizes;
  const Dims dims = b.dims("dim");
  if (dims.empty()) return count_of(sizes);
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= sizes[wrap_dim(dim, sizes.size())];
  return count;
}

Tensor variance_grad(Backward& b, const Tensor& grad_in) {
  static const Op mean_of_all("aten.mean.default");
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  const Dims dims = b.dims("dim");
  const double factor = 2.0 / (static_cast<double>(count_reduced(b)) - b.number("correction", 1));
  const Tensor grad = restore_dims(r, grad_in, dims, b.flag("keepdim") || self.rank() <= 1, self.rank());
  const Tensor centre = dims.empty() ? mean_of_all(r, {{"self", self}}) : mean(r, self, dims, true);
  const Tensor distance = sub(r, self, centre);
  return mul(r, mul_scalar(r, grad, factor), distance);
}

Tensor deviation_grad(Backward& b, const Tensor& grad, const Tensor& result) {
  static const Op fill("aten.masked_fill_.Scalar");
  Runner& r = b.runner();
  const Tensor of_variance = [&] {
    const Tensor twice = mul_scalar(r, result, 2);
    Tensor quotient = div(r, grad, twice);
    const Tensor is_zero = eq(r, result, 0);
    fill.none(r, {{"self", quotient}, {"mask", is_zero}, {"value", 0}});
    return quotient;
  }();
  return variance_grad(b, of_variance);
}

void var_backward(Backward& b) { b.give("self", variance_grad(b, b.grad())); }

void std_backward(Backward& b) { b.give("self", deviation_grad(b, b.grad(), b.saved("result"))); }

Tensor mean_grad(Backward& b) {
  Runner& r = b.runner();
  const Dims& sizes = b.input("self").sizes;
  const Tensor whole = expand(r, restore_dims(r, b.grad(1), b.dims("dim"), b.flag("keepdim"), sizes.size()), sizes);
  return div_scalar(r, whole, count_reduced(b));
}

template <bool kDeviation>
void with_mean_backward(Backward& b) {
  Tensor grad;
  if (b.grad(0)) grad = kDeviation ? deviation_grad(b, b.grad(0), b.saved("result0")) : variance_grad(b, b.grad(0));
  if (b.grad(1)) {
    const Tensor of_mean = mean_grad(b);
    grad = grad ? add(b.runner(), grad, of_mean) : of_mean;
  }
  b.give("self", std::move(grad));
}

}  // namespace

std::vector<Row> moment_rows() {
  Row deviation = of_result("aten.std.correction", infer_moment, "StdBackward0", std_backward);
  deviation.saves = {{"self"}};
  return {
      of_self("aten.var.correction", infer_moment, "VarBackward0", var_backward),
      deviation,
      of_self("aten.var_mean.correction", infer_two_moments, "VarMeanBackward0", with_mean_backward<false>),
      {.name = "aten.std_mean.correction",
       .infer = infer_two_moments,
       .node = "StdMeanBackward0",
       .saves = {{"self"}},
       .saved_results = {{"result0"}},
       .results = {"result0", "result1"},
       .backward = with_mean_backward<true>},
  };
}

}  // namespace tidemark::ops
