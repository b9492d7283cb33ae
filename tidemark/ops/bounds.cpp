// The larger, the smaller, and what lies between two bounds.

#include "tidemark/base/error.h"
#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

Tensor compare(const Op& op, Runner& r, const Tensor& self, const Value& other) {
  return op(r, {{"self", self}, {"other", other}});
}

// Where the bounds hold, the gradient passes.
Tensor clamp_grad(Backward& b, const Value* low, const Value* high) {
  static const Op ge("aten.ge.Scalar");
  static const Op le("aten.le.Scalar");
  static const Op both("aten.logical_and_.default");
  Runner& r = b.runner();
  const Tensor& self = b.saved("self");
  const Tensor zero = scalar_tensor(r, 0.0, b.grad().dtype());
  if (low == nullptr) return where(r, compare(le, r, self, *high), b.grad(), zero);
  const Tensor inside = compare(ge, r, self, *low);
  if (high == nullptr) return where(r, inside, b.grad(), zero);
  const Tensor below = compare(le, r, self, *high);
  both.none(r, {{"self", inside}, {"other", below}});
  return where(r, inside, b.grad(), zero);
}

void clamp_backward(Backward& b) {
  b.give("self",
         clamp_grad(b, b.is_given("min") ? b.find("min") : nullptr, b.is_given("max") ? b.find("max") : nullptr));
}

// Bounds that are tensors themselves. What was outside of them would have a gradient for them: no model asks for it.
void clamp_tensor_backward(Backward& b) {
  static const Op ge("aten.ge.Tensor");
  static const Op le("aten.le.Tensor");
  static const Op both("aten.logical_and.default");
  Runner& r = b.runner();
  if (b.needs("min") || b.needs("max"))
    throw Error({.kind = ErrorKind::kInput,
                 .place = "aten.clamp.Tensor",
                 .problem = "native models have no gradient of bounds",
                 .expected = {},
                 .got = {},
                 .remedy = "add it to clamp_tensor_backward in tidemark/ops/bounds.cpp"});
  const Tensor& self = b.saved("self");
  const Tensor zero = scalar_tensor(r, 0.0, b.grad().dtype());
  if (!b.saved("max")) {
    b.give("self", where(r, ge(r, {{"self", self}, {"other", b.saved("min")}}), b.grad(), zero));
  } else if (!b.saved("min")) {
    b.give("self", where(r, le(r, {{"self", self}, {"other", b.saved("max")}}), b.grad(), zero));
  } else {
    const Tensor above = ge(r, {{"self", self}, {"other", b.saved("min")}});
    const Tensor below = le(r, {{"self", self}, {"other", b.saved("max")}});
    const Tensor inside = both(r, {{"self", above}, {"other", below}});
    b.give("self", where(r, inside, b.grad(), zero));
  }
}

// Equal operands share the gradient.
template <bool kLargest>
void extreme_backward(Backward& b) {
  static const Op div("aten.div.Scalar");
  static const Op eq("aten.eq.Tensor");
  static const Op gt("aten.gt.Tensor");
  static const Op lt("aten.lt.Tensor");
  static const Op fill("aten.masked_fill_.Scalar");
  Runner& r = b.runner();
  const auto grad_of = [&](const char* name, const Op& loses) {
    if (!b.needs(name)) return;
    const Tensor half = div(r, {{"self", b.grad()}, {"other", 2}});
    const Tensor equal = eq(r, {{"self", b.saved("self")}, {"other", b.saved("other")}});
    Tensor shared = where(r, equal, half, b.grad());
    {
      const Tensor lost = loses(r, {{"self", b.saved("self")}, {"other", b.saved("other")}});
      fill.none(r, {{"self", shared}, {"mask", lost}, {"value", 0}});
    }
    b.give(name, std::move(shared));
  };
  grad_of("other", kLargest ? gt : lt);
  grad_of("self", kLargest ? lt : gt);
}

}  // namespace

std::vector<Row> bound_rows() {
  const Row clamp_row = of_self("aten.clamp.default", infer_pointwise, "ClampBackward1", clamp_backward);
  return {
      clamp_row,
      in_place_form("aten.clamp_.default", clamp_row, true),
      {.name = "aten.clamp.Tensor",
       .infer = infer_pointwise,
       .node = "ClampBackward0",
       .saves = {{"max"}, {"min"}, {"self"}},
       .backward = clamp_tensor_backward},
      of_self("aten.clamp_min.default", infer_pointwise, "ClampMinBackward0", clamp_backward),
      of_self("aten.clamp_max.default", infer_pointwise, "ClampMaxBackward0", clamp_backward),
      {.name = "aten.maximum.default",
       .infer = infer_pointwise,
       .node = "MaximumBackward0",
       .saves = {{"other"}, {"self"}},
       .backward = extreme_backward<true>},
      {.name = "aten.minimum.default",
       .infer = infer_pointwise,
       .node = "MinimumBackward0",
       .saves = {{"other"}, {"self"}},
       .backward = extreme_backward<false>},
  };
}

}  // namespace tidemark::ops
