// Sums, means, products, norms.

#include <algorithm>
#include <cmath>

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

DType sum_type(const Tensor& t) { return is_floating(t.dtype()) ? t.dtype() : DType::kInt64; }

void fresh_reduced(Call& call, DType dtype, const Dims& dims) {
  call.fresh(dtype, reduced(call.in(0).sizes(), dims, call.flag("keepdim")));
}

void infer_sum(Call& call) { fresh_reduced(call, dtype_argument(call, sum_type(call.in(0))), call.dims("dim")); }
void infer_mean(Call& call) { fresh_reduced(call, dtype_argument(call, call.in(0).dtype()), call.dims("dim")); }
void infer_norm(Call& call) { fresh_reduced(call, dtype_argument(call, call.in(0).dtype()), call.dims("dim")); }
void infer_prod(Call& call) {
  const Dims dim = call.is_given("dim") ? Dims{call.integer("dim")} : Dims{};
  fresh_reduced(call, dtype_argument(call, sum_type(call.in(0))), dim);
}
void infer_test(Call& call) {
  const Dims dim = call.is_given("dim") ? Dims{call.integer("dim")} : Dims{};
  fresh_reduced(call, DType::kBool, dim);
}
void infer_cumulative(Call& call) {
  const Tensor& t = call.in(0);
  call.fresh(dtype_argument(call, sum_type(t)), t.sizes(), like_strides(t.sizes(), t.strides()));
}
void infer_histc(Call& call) { call.fresh(call.in(0).dtype(), Dims{call.integer("bins", 100)}); }

// The gradient of a sum is the same for all that were summed.
Tensor spread(Backward& b) {
  const Dims& sizes = b.input("self").sizes;
  return expand(b.runner(), restore_dims(b.runner(), b.grad(), b.dims("dim"), b.flag("keepdim"), sizes.size()), sizes);
}

void sum_backward(Backward& b) { b.give("self", spread(b)); }

void mean_backward(Backward& b) {
  const Dims& sizes = b.input("self").sizes;
  std::int64_t count = 1;
  const Dims dims = b.dims("dim");
  for (const std::int64_t dim : dims) count *= sizes[wrap_dim(dim, sizes.size())];
  if (dims.empty()) count = count_of(sizes);
  b.give("self", div_scalar(b.runner(), spread(b), count));
}

Tensor flip(Runner& r, const Tensor& self, std::int64_t dim) {
  static const Op op("aten.flip.default");
  return op(r, {{"self", self}, {"dims", Dims{dim}}});
}

void cumsum_backward(Backward& b) {
  static const Op cumsum("aten.cumsum.default");
  Runner& r = b.runner();
  const std::int64_t dim = b.integer("dim");
  const Dims& sizes = b.input("self").sizes;
  if (count_of(sizes) <= 1 || sizes[wrap_dim(dim, sizes.size())] == 1) {
    b.give("self", b.grad());
  } else {
    b.give("self", flip(r, cumsum(r, {{"self", flip(r, b.grad(), dim)}, {"dim", dim}}), dim));
  }
}

// The product of all others, from both ends: PyTorch's way when there may be zeros, and whenever somebody watches.
Tensor product_grad(Runner& r, const Tensor& grad, const Tensor& self, std::int64_t dim) {
  static const Op ones_of("aten.ones.default");
  static const Op slice("aten.slice.Tensor");
  static const Op cumprod("aten.cumprod.default");
  const std::int64_t size = self.size(static_cast<int>(dim));
  if (size == 1) return grad;
  Dims one = self.sizes();
  one[wrap_dim(dim, self.rank())] = 1;
  Tensor ones =
      ones_of(r, {{"size", one}, {"dtype", dtype_word(grad.dtype())}, {"layout", "torch.strided"}, {"device", "cpu"}});
  const auto joined = [&](Tensor first, Tensor second) {
    static const Op cat("aten.cat.default");
    std::vector<Tensor> both = {std::move(first), std::move(second)};
    Tensor result = dim == 0 ? cat(r, {{"tensors", both}}) : ops::cat(r, both, dim);
    while (!both.empty()) both.pop_back();  // an array lets go from its end
    return result;
  };
  const auto narrow = [&](std::int64_t start) {
    return slice(r, {{"self", self}, {"dim", dim}, {"start", start}, {"end", start + size - 1}});
  };
  const Tensor before = joined(ones, narrow(0));
  const Tensor product_before = cumprod(r, {{"self", before}, {"dim", dim}});
  Tensor turned = flip(r, narrow(1), dim);
  const Tensor after = joined(std::move(ones), std::move(turned));
  const Tensor product_after = flip(r, cumprod(r, {{"self", after}, {"dim", dim}}), dim);
  return mul(r, grad, mul(r, product_before, product_after));
}

void prod_backward(Backward& b) {
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  if (self.rank() == 0) {
    b.give("self", mul(r, b.grad(), b.saved("result")));
    return;
  }
  b.give("self", view(r, product_grad(r, b.grad(), view(r, contiguous(r, self), Dims{-1}), 0), self.sizes()));
}

void prod_dim_backward(Backward& b) {
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  if (self.rank() == 0) {
    b.give("self", mul(r, b.grad(), b.saved("result")));
    return;
  }
  const auto dim = static_cast<std::int64_t>(wrap_dim(b.integer("dim"), self.rank()));
  if (b.flag("keepdim")) {
    b.give("self", product_grad(r, b.grad(), self, dim));
  } else {
    const Tensor grad = unsqueeze(r, b.grad(), dim);
    const Tensor result = unsqueeze(r, b.saved("result"), dim);
    b.give("self", product_grad(r, grad, self, dim));
  }
}

void logsumexp_backward(Backward& b) {
  static const Op exp("aten.exp.default");
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  const Dims dims = b.dims("dim");
  const Tensor grad = restore_dims(r, b.grad(), dims, b.flag("keepdim"), self.rank());
  const Tensor result = restore_dims(r, b.saved("result"), dims, b.flag("keepdim"), self.rank());
  b.give("self", mul(r, grad, exp(r, {{"self", sub(r, self, result)}})));
}

// As linalg_vector_norm_backward: a formula for every kind of norm.
Tensor norm_grad(Backward& b, const Tensor& grad, const Tensor& norm, double order) {
  static const Op abs("aten.abs.default");
  static const Op sgn("aten.sgn.default");
  static const Op fill("aten.masked_fill_.Scalar");
  static const Op pow_("aten.pow_.Scalar");
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  if (order == 1) {
    const Tensor sign = sgn(r, {{"self", self}});
    return mul(r, sign, grad);
  }
  if (order == 2) {
    const Tensor direction = div(r, self, norm);
    const Tensor is_zero = eq(r, norm, 0);
    fill.none(r, {{"self", direction}, {"mask", is_zero}, {"value", 0}});
    return mul(r, grad, direction);
  }
  if (std::isinf(order)) {
    static const Op eq_tensor("aten.eq.Tensor");
    static const Op isnan("aten.isnan.default");
    static const Op either("aten.logical_or.default");
    static const Op count_true("aten.sum.dim_IntList");
    const Tensor size = abs(r, {{"self", self}});
    const Tensor largest = [&] {
      const Tensor equal = eq_tensor(r, {{"self", size}, {"other", norm}});
      const Tensor unknown = isnan(r, {{"self", size}});
      return either(r, {{"self", equal}, {"other", unknown}});
    }();
    const Tensor count = count_true(r, {{"self", largest}, {"dim", b.dims("dim")}, {"keepdim", true}});
    const Tensor part = div(r, grad, count);
    const Tensor shared = mul(r, part, largest);
    const Tensor sign = sgn(r, {{"self", self}});
    return mul(r, sign, shared);
  }
  if (order < 2)
    throw Error({.kind = ErrorKind::kInput,
                 .place = "aten.linalg_vector_norm.default",
                 .problem = "native models have no backward of norms of this order",
                 .expected = "1, 2, more than 2, or infinity",
                 .got = {},
                 .remedy = "add its formula to norm_grad in tidemark/ops/reduce.cpp"});
  const Tensor scaled = [&] {
    const Tensor size = abs(r, {{"self", self}});
    pow_.none(r, {{"self", size}, {"exponent", order - 2}});
    return mul(r, self, size);
  }();
  const Tensor scale = [&] {
    Tensor quotient = div(r, grad, pow(r, norm, order - 1));
    const Tensor is_zero = eq(r, norm, 0);
    fill.none(r, {{"self", quotient}, {"mask", is_zero}, {"value", 0}});
    return quotient;
  }();
  return mul(r, scaled, scale);
}

void norm_backward(Backward& b) {
  Runner& r = b.runner();
  const Dims dims = b.dims("dim");
  const std::size_t rank = b.input("self").sizes.size();
  const Tensor grad = restore_dims(r, b.grad(), dims, b.flag("keepdim"), rank);
  const Tensor norm = restore_dims(r, b.saved("result"), dims, b.flag("keepdim"), rank);
  b.give("self", norm_grad(b, grad, norm, b.number("ord", 2)));
}

Row of_both(const char* name, void (*infer)(Call&), const char* node, void (*backward)(Backward&)) {
  Row row = of_result(name, infer, node, backward);
  row.saves = {{"self"}};
  return row;
}

}  // namespace

std::vector<Row> reduce_rows() {
  return {
      of_grad("aten.sum.default", infer_sum, "SumBackward0", sum_backward),
      of_grad("aten.sum.dim_IntList", infer_sum, "SumBackward1", sum_backward),
      of_grad("aten.mean.default", infer_mean, "MeanBackward0", mean_backward),
      of_grad("aten.mean.dim", infer_mean, "MeanBackward1", mean_backward),
      of_both("aten.prod.default", infer_prod, "ProdBackward0", prod_backward),
      of_both("aten.prod.dim_int", infer_prod, "ProdBackward1", prod_dim_backward),
      of_both("aten.logsumexp.default", infer_norm, "LogsumexpBackward0", logsumexp_backward),
      of_both("aten.linalg_vector_norm.default", infer_norm, "LinalgVectorNormBackward0", norm_backward),
      of_grad("aten.cumsum.default", infer_cumulative, "CumsumBackward0", cumsum_backward),
      {.name = "aten.cumprod.default", .infer = infer_cumulative},
      {.name = "aten.all.default", .infer = infer_test},
      {.name = "aten.all.dim", .infer = infer_test},
      {.name = "aten.any.default", .infer = infer_test},
      {.name = "aten.any.dim", .infer = infer_test},
      {.name = "aten.histc.default", .infer = infer_histc},
  };
}

Tensor sum(Runner& r, const Tensor& self) {
  static const Op op("aten.sum.default");
  return op(r, {{"self", self}});
}
Tensor sum(Runner& r, const Tensor& self, const Dims& dim, bool keepdim) {
  static const Op op("aten.sum.dim_IntList");
  if (!keepdim) return op(r, {{"self", self}, {"dim", dim}});
  return op(r, {{"self", self}, {"dim", dim}, {"keepdim", true}});
}
Tensor mean(Runner& r, const Tensor& self, const Dims& dim, bool keepdim) {
  static const Op op("aten.mean.dim");
  if (!keepdim) return op(r, {{"self", self}, {"dim", dim}});
  return op(r, {{"self", self}, {"dim", dim}, {"keepdim", true}});
}

Tensor sum_to(Runner& r, Tensor self, const Dims& sizes) {
  if (sizes.empty()) return sum(r, self);
  const std::size_t leading = self.rank() - sizes.size();
  Dims dims;
  for (std::size_t i = 0; i < self.rank(); ++i)
    if (i < leading || (sizes[i - leading] == 1 && self.sizes()[i] != 1)) dims.push_back(static_cast<std::int64_t>(i));
  if (!dims.empty()) self = sum(r, self, dims, true);
  return leading > 0 ? view(r, self, sizes) : self;
}

}  // namespace tidemark::ops
