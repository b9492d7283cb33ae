// Sums, means, largest elements.

#include <algorithm>

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

Dims reduced(const Dims& sizes, const Dims& dims, bool keepdim) {
  std::array<bool, Dims::kMax> gone{};
  for (const std::int64_t dim : dims) gone[wrap_dim(dim, sizes.size())] = true;
  if (dims.empty()) gone.fill(true);
  Dims result;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!gone[i]) {
      result.push_back(sizes[i]);
    } else if (keepdim) {
      result.push_back(1);
    }
  }
  return result;
}

DType sum_type(const Tensor& t) { return is_floating(t.dtype()) ? t.dtype() : DType::kInt64; }

void fresh_reduced(Call& call, DType dtype, const Dims& dims, bool keepdim) {
  call.fresh(dtype, reduced(call.in(0).sizes(), dims, keepdim));
}

void infer_sum(Call& call) {
  fresh_reduced(call, dtype_argument(call, sum_type(call.in(0))), call.dims("dim"), call.flag("keepdim"));
}
void infer_mean(Call& call) {
  fresh_reduced(call, dtype_argument(call, call.in(0).dtype()), call.dims("dim"), call.flag("keepdim"));
}
void infer_all(Call& call) { call.fresh(DType::kBool, Dims{}); }
void infer_cumsum(Call& call) {
  const Tensor& t = call.in(0);
  call.fresh(dtype_argument(call, sum_type(t)), t.sizes(), like_strides(t.sizes(), t.strides()));
}
void infer_arg(Call& call) {
  const Dims dim = call.is_given("dim") ? Dims{call.integer("dim")} : Dims{};
  call.fresh(DType::kInt64, reduced(call.in(0).sizes(), dim, call.flag("keepdim")));
}
void infer_topk(Call& call) {
  const Tensor& t = call.in(0);
  Dims sizes = t.sizes();
  sizes[wrap_dim(call.integer("dim", -1), sizes.size())] = call.integer("k");
  call.fresh(t.dtype(), sizes);
  call.fresh(DType::kInt64, sizes);
}
void infer_sort(Call& call) {
  const Tensor& t = call.in(0);
  call.fresh(t.dtype(), t.sizes(), like_strides(t.sizes(), t.strides()));
  call.fresh(DType::kInt64, t.sizes(), like_strides(t.sizes(), t.strides()));
}

Tensor spread(Backward& b) {
  Runner& r = b.runner();
  const Dims& sizes = b.input("self").sizes;
  const Dims dims = b.dims("dim");
  if (b.flag("keepdim") || sizes.empty() || dims.empty()) return expand(r, b.grad(), sizes);
  if (dims.size() == 1) return expand(r, unsqueeze(r, b.grad(), dims[0]), sizes);
  Tensor grad = b.grad();
  for (std::size_t i = 0; i < sizes.size(); ++i)
    for (const std::int64_t dim : dims)
      if (wrap_dim(dim, sizes.size()) == i) grad = unsqueeze(r, grad, static_cast<std::int64_t>(i));
  return expand(r, grad, sizes);
}

void sum_backward(Backward& b) { b.give("self", spread(b)); }

void mean_backward(Backward& b) {
  const Dims& sizes = b.input("self").sizes;
  std::int64_t count = 1;
  const Dims dims = b.dims("dim");
  for (const std::int64_t dim : dims) count *= sizes[wrap_dim(dim, sizes.size())];
  if (dims.empty()) count = count_of(sizes);
  static const Op op("aten.div.Scalar");
  b.give("self", op(b.runner(), {{"self", spread(b)}, {"other", count}}));
}

void topk_backward(Backward& b) {
  static const Op zeros("aten.new_zeros.default");
  static const Op scatter("aten.scatter.src");
  Runner& r = b.runner();
  const Tensor blank = zeros(r, {{"self", b.grad()}, {"size", b.input("self").sizes}});
  b.give(
      "self",
      scatter(r, {{"self", blank}, {"dim", b.integer("dim", -1)}, {"index", b.saved("indices")}, {"src", b.grad()}}));
}

void infer_histc(Call& call) { call.fresh(call.in(0).dtype(), Dims{call.integer("bins", 100)}); }

// Of all elements.
void infer_norm(Call& call) { call.fresh(call.in(0).dtype(), Dims{}); }

}  // namespace

std::vector<Row> reduce_rows() {
  constexpr step::OpFlags kRoutes = step::OpFlag::kRouting | step::OpFlag::kMustSave;
  return {
      {.name = "aten.sum.default", .infer = infer_sum, .node = "SumBackward0", .backward = sum_backward},
      {.name = "aten.sum.dim_IntList", .infer = infer_sum, .node = "SumBackward1", .backward = sum_backward},
      {.name = "aten.mean.default", .infer = infer_mean, .node = "MeanBackward0", .backward = mean_backward},
      {.name = "aten.mean.dim", .infer = infer_mean, .node = "MeanBackward1", .backward = mean_backward},
      {.name = "aten.div.Scalar", .infer = infer_like_first},
      {.name = "aten.linalg_vector_norm.default", .infer = infer_norm},
      {.name = "aten.all.default", .infer = infer_all},
      {.name = "aten.any.default", .infer = infer_all},
      {.name = "aten.cumsum.default", .infer = infer_cumsum},
      {.name = "aten.argmax.default", .infer = infer_arg, .flags = kRoutes},
      {.name = "aten.argmin.default", .infer = infer_arg, .flags = kRoutes},
      {.name = "aten.topk.default",
       .infer = infer_topk,
       .node = "TopkBackward0",
       .saved_results = {{"indices"}},
       .results = {"values", "indices"},
       .backward = topk_backward,
       .flags = kRoutes},
      {.name = "aten.sort.default", .infer = infer_sort, .flags = kRoutes},
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
