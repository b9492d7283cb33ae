// The largest, the smallest, and orders of size.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

Dims one_dim(const Call& call) { return call.is_given("dim") ? Dims{call.integer("dim")} : Dims{}; }

void infer_whole(Call& call) { call.fresh(call.in(0).dtype(), Dims{}); }
void infer_along(Call& call) {
  const Dims sizes = reduced(call.in(0).sizes(), one_dim(call), call.flag("keepdim"));
  call.fresh(call.in(0).dtype(), sizes);
  call.fresh(DType::kInt64, sizes);
}
void infer_over(Call& call) {
  call.fresh(call.in(0).dtype(), reduced(call.in(0).sizes(), call.dims("dim"), call.flag("keepdim")));
}
void infer_place(Call& call) {
  call.fresh(DType::kInt64, reduced(call.in(0).sizes(), one_dim(call), call.flag("keepdim")));
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

// All that equal the extreme share its gradient.
void whole_backward(Backward& b) {
  static const Op isnan("aten.isnan.default");
  static const Op both("aten.logical_and.default");
  static const Op equal("aten.eq.Tensor");
  static const Op either("aten.logical_or_.default");
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  const Tensor& result = b.saved("result");
  const Tensor self_unknown = isnan(r, {{"self", self}});
  const Tensor result_unknown = isnan(r, {{"self", result}});
  const Tensor unknown = both(r, {{"self", self_unknown}, {"other", result_unknown}});
  const Tensor chosen = equal(r, {{"self", self}, {"other", result}});
  either.none(r, {{"self", chosen}, {"other", unknown}});
  b.give("self", mul(r, chosen, div(r, b.grad(), sum(r, chosen))));
}

Tensor restored(Runner& r, const Tensor& t, const Dims& dims, bool keepdim) {
  if (keepdim) return t;
  const std::size_t rank = t.rank() + dims.size();
  Dims sizes = t.sizes();
  for (std::size_t i = 0; i < rank; ++i)
    for (const std::int64_t dim : dims)
      if (wrap_dim(dim, rank) == i) sizes.insert(i, 1);
  return view(r, t, sizes);
}

Tensor by_count(Runner& r, const Tensor& grad, const Tensor& mask, const Dims& dims) {
  return mul(r, div(r, grad, sum(r, mask, dims, true)), mask);
}

void over_backward(Backward& b) {
  static const Op equal("aten.eq.Tensor");
  Runner& r = b.runner();
  const Dims dims = b.dims("dim");
  const bool keepdim = b.flag("keepdim");
  const Tensor result = restored(r, b.saved("result"), dims, keepdim);
  const Tensor chosen = equal(r, {{"self", result}, {"other", b.saved("self")}});
  const Tensor grad = restored(r, b.grad(), dims, keepdim);
  b.give("self", by_count(r, grad, chosen, dims));
}

// Zeros, and the gradients at the places they were taken from.
Tensor scattered(Backward& b, const Tensor& grad, const Tensor& indices) {
  static const Op zeros("aten.new_zeros.default");
  static const Op scatter("aten.scatter.src");
  Runner& r = b.runner();
  const Tensor blank = zeros(r, {{"self", grad}, {"size", b.input("self").sizes}});
  return scatter(r, {{"self", blank}, {"dim", b.integer("dim", -1)}, {"index", indices}, {"src", grad}});
}

void along_backward(Backward& b) {
  Runner& r = b.runner();
  if (b.flag("keepdim") || b.input("self").sizes.empty()) {
    b.give("self", scattered(b, b.grad(), b.saved("indices")));
    return;
  }
  const std::int64_t dim = b.integer("dim", -1);
  const Tensor grad = unsqueeze(r, b.grad(), dim);
  const Tensor indices = unsqueeze(r, b.saved("indices"), dim);
  b.give("self", scattered(b, grad, indices));
}

void places_backward(Backward& b) { b.give("self", scattered(b, b.grad(), b.saved("indices"))); }

Row of_both(const char* name, void (*infer)(Call&), const char* node, void (*backward)(Backward&)) {
  Row row = of_result(name, infer, node, backward);
  row.saves = {{"self"}};
  return row;
}

Row of_indices(const char* name, void (*infer)(Call&), const char* node, void (*backward)(Backward&),
               step::OpFlags flags) {
  return {.name = name,
          .infer = infer,
          .node = node,
          .saved_results = {{"indices"}},
          .results = {"values", "indices"},
          .backward = backward,
          .flags = flags};
}

}  // namespace

std::vector<Row> extreme_rows() {
  constexpr step::OpFlags kRoutes = step::OpFlag::kRouting | step::OpFlag::kMustSave;
  return {
      of_both("aten.max.default", infer_whole, "MaxBackward1", whole_backward),
      of_both("aten.min.default", infer_whole, "MinBackward1", whole_backward),
      of_indices("aten.max.dim", infer_along, "MaxBackward0", along_backward, {}),
      of_indices("aten.min.dim", infer_along, "MinBackward0", along_backward, {}),
      of_both("aten.amax.default", infer_over, "AmaxBackward0", over_backward),
      of_both("aten.amin.default", infer_over, "AminBackward0", over_backward),
      of_indices("aten.topk.default", infer_topk, "TopkBackward0", places_backward, kRoutes),
      of_indices("aten.sort.default", infer_sort, "SortBackward0", places_backward, kRoutes),
      of_indices("aten.sort.stable", infer_sort, "SortBackward1", places_backward, kRoutes),
      {.name = "aten.argmax.default", .infer = infer_place, .flags = kRoutes},
      {.name = "aten.argmin.default", .infer = infer_place, .flags = kRoutes},
  };
}

}  // namespace tidemark::ops
