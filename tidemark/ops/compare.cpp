// Comparisons, logic, and what they decide.

#include <limits>

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

const Value kZero = std::int64_t{0};

// Sizes from all, the type from the two that are chosen from; one without dimensions has no say.
void infer_where(Call& call) {
  Dims sizes;
  Dims strides;
  pointwise_layout(call, sizes, strides);
  call.fresh(call.in(1).rank() == 0 && call.in(2).rank() > 0 ? call.in(2).dtype() : call.in(1).dtype(), sizes, strides);
}

void where_backward(Backward& b) {
  Runner& r = b.runner();
  if (b.needs("other")) {
    const Tensor zero = scalar_tensor(r, kZero, b.grad().dtype());
    b.give("other", where(r, b.saved("condition"), zero, b.grad()));
  }
  if (b.needs("self")) {
    const Tensor zero = scalar_tensor(r, kZero, b.grad().dtype());
    b.give("self", where(r, b.saved("condition"), b.grad(), zero));
  }
}

// masked_fill works on a clone of `self`.
void infer_masked_fill(Call& call) {
  const Tensor& t = call.in(0);
  call.fresh(t.dtype(), broadcast(t.sizes(), call.in(1).sizes()), like_strides(t.sizes(), t.strides()));
}

Tensor without_masked(Backward& b) {
  static const Op fill("aten.masked_fill.Scalar");
  return fill(b.runner(), {{"self", b.grad()}, {"mask", b.saved("mask")}, {"value", 0}});
}

void masked_fill_backward(Backward& b) { b.give("self", without_masked(b)); }

void masked_fill_tensor_backward(Backward& b) {
  Runner& r = b.runner();
  if (b.needs("self")) b.give("self", without_masked(b));
  if (b.needs("value")) {
    const Tensor masked = [&] {
      const Tensor zero = scalar_tensor(r, kZero, b.grad().dtype());
      return where(r, b.saved("mask"), b.grad(), zero);
    }();
    b.give("value", sum(r, masked));
  }
}

void nan_to_num_backward(Backward& b) {
  static const Op abs("aten.abs.default");
  static const Op ne("aten.ne.Scalar");
  static const Op eq("aten.eq.Tensor");
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  const Tensor is_finite = [&] {
    const Tensor size = abs(r, {{"self", self}});
    const Tensor is_bounded = ne(r, {{"self", size}, {"other", std::numeric_limits<double>::infinity()}});
    const Tensor is_number = eq(r, {{"self", self}, {"other", self}});
    return mul(r, is_number, is_bounded);
  }();
  b.give("self", mul(r, b.grad(), is_finite));
}

}  // namespace

std::vector<Row> compare_rows() {
  const Row fill_row = {.name = "aten.masked_fill.Scalar",
                        .infer = infer_masked_fill,
                        .node = "MaskedFillBackward0",
                        .saves = {{"mask"}},
                        .backward = masked_fill_backward,
                        .in_place = "aten.masked_fill_.Scalar"};
  std::vector<Row> rows = {
      {.name = "aten.where.self",
       .infer = infer_where,
       .node = "WhereBackward0",
       .saves = {{"condition"}},
       .backward = where_backward},
      fill_row,
      in_place_form("aten.masked_fill_.Scalar", fill_row, false),
      {.name = "aten.masked_fill.Tensor",
       .infer = infer_masked_fill,
       .node = "MaskedFillBackward1",
       .saves = {{"mask"}},
       .backward = masked_fill_tensor_backward,
       .in_place = "aten.masked_fill_.Tensor"},
      {.name = "aten.masked_fill_.Tensor", .infer = infer_in_place},
      of_self("aten.nan_to_num.default", infer_pointwise, "NanToNumBackward0", nan_to_num_backward),
      {.name = "aten.logical_and_.default", .infer = infer_in_place},
      {.name = "aten.logical_or_.default", .infer = infer_in_place},
      {.name = "aten.bitwise_and.Tensor", .infer = infer_pointwise},
      {.name = "aten.bitwise_or.Tensor", .infer = infer_pointwise},
      {.name = "aten.bitwise_xor.Tensor", .infer = infer_pointwise},
      {.name = "aten.bitwise_not.default", .infer = infer_pointwise},
  };
  for (const char* name :
       {"aten.eq.Scalar", "aten.eq.Tensor", "aten.ne.Scalar", "aten.ne.Tensor", "aten.lt.Scalar", "aten.lt.Tensor",
        "aten.le.Scalar", "aten.le.Tensor", "aten.gt.Scalar", "aten.gt.Tensor", "aten.ge.Scalar", "aten.ge.Tensor",
        "aten.logical_not.default", "aten.logical_and.default", "aten.logical_or.default", "aten.logical_xor.default",
        "aten.isnan.default", "aten.isinf.default"})
    rows.push_back({.name = name, .infer = infer_compare});
  return rows;
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

}  // namespace tidemark::ops
