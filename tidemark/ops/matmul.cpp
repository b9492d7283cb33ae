// Products of matrices. FLOPs count a multiplication and an addition as two.

#include <fmt/format.h>

#include <algorithm>

#include "tidemark/base/error.h"
#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"
#include "tidemark/step/dtype.h"

namespace tidemark::ops {

namespace {

void infer_mm(Call& call) { call.fresh(call.in(0).dtype(), Dims{call.in(0).sizes()[0], call.in(1).sizes()[1]}); }
void infer_addmm(Call& call) { call.fresh(call.in(1).dtype(), Dims{call.in(1).sizes()[0], call.in(2).sizes()[1]}); }
void infer_bmm(Call& call) {
  const Dims& a = call.in(0).sizes();
  call.fresh(call.in(0).dtype(), Dims{a[0], a[1], call.in(1).sizes()[2]});
}
void infer_baddbmm(Call& call) {
  const Dims& a = call.in(1).sizes();
  call.fresh(call.in(1).dtype(), Dims{a[0], a[1], call.in(2).sizes()[2]});
}

std::int64_t product_flops(const Tensor& a, const Tensor& b) {
  return times(times(2, count_of(a.sizes())), b.sizes().back());
}
std::int64_t mm_flops(const Call& call) { return product_flops(call.in(0), call.in(1)); }
std::int64_t addmm_flops(const Call& call) { return product_flops(call.in(1), call.in(2)); }

Tensor mat1_grad(Backward& b, const Meta& mat1, const Tensor& mat2) {
  Runner& r = b.runner();
  if (mat1.is_column_major) return t(r, mm(r, mat2, t(r, b.grad())));
  return mm(r, b.grad(), t(r, mat2));
}

Tensor mat2_grad(Backward& b, const Tensor& mat1, const Meta& mat2) {
  Runner& r = b.runner();
  if (mat2.is_column_major) return t(r, mm(r, t(r, b.grad()), mat1));
  return mm(r, t(r, mat1), b.grad());
}

void mm_backward(Backward& b) {
  if (b.needs("mat2")) b.give("mat2", mat2_grad(b, b.saved("self"), b.input("mat2")));
  if (b.needs("self")) b.give("self", mat1_grad(b, b.input("self"), b.saved("mat2")));
}

const Value kOne = std::int64_t{1};

void addmm_backward(Backward& b) {
  Runner& r = b.runner();
  const Value alpha = given(b, "alpha", kOne);
  if (b.needs("mat1")) b.give("mat1", maybe_multiply(r, mat1_grad(b, b.input("mat1"), b.saved("mat2")), alpha));
  if (b.needs("mat2")) b.give("mat2", maybe_multiply(r, mat2_grad(b, b.saved("mat1"), b.input("mat2")), alpha));
  if (b.needs("self")) b.give("self", maybe_multiply(r, b.grad(), given(b, "beta", kOne)));
}

void baddbmm_backward(Backward& b) {
  Runner& r = b.runner();
  const Value alpha = given(b, "alpha", kOne);
  if (b.needs("batch1"))
    b.give("batch1", maybe_multiply(r, bmm(r, b.grad(), transpose(r, b.saved("batch2"), 1, 2)), alpha));
  if (b.needs("batch2"))
    b.give("batch2", maybe_multiply(r, bmm(r, transpose(r, b.saved("batch1"), 1, 2), b.grad()), alpha));
  if (b.needs("self")) b.give("self", maybe_multiply(r, b.grad(), given(b, "beta", kOne)));
}

void infer_mv(Call& call) { call.fresh(call.in(0).dtype(), Dims{call.in(0).sizes()[0]}); }
void infer_dot(Call& call) { call.fresh(call.in(0).dtype(), Dims{}); }

std::int64_t vector_flops(const Call& call) { return times(2, count_of(call.in(0).sizes())); }

Tensor mv(Runner& r, const Tensor& self, const Tensor& vec) {
  static const Op op("aten.mv.default");
  return op(r, {{"self", self}, {"vec", vec}});
}

// The gradient of the matrix is an outer product: a column times a row.
void mv_backward(Backward& b) {
  Runner& r = b.runner();
  if (b.needs("self")) b.give("self", mul(r, view(r, b.grad(), Dims{b.grad().size(0), 1}), b.saved("vec")));
  if (b.needs("vec")) b.give("vec", mv(r, t(r, b.saved("self")), b.grad()));
}

void dot_backward(Backward& b) {
  if (b.needs("self")) b.give("self", mul(b.runner(), b.grad(), b.saved("tensor")));
  if (b.needs("tensor")) b.give("tensor", mul(b.runner(), b.grad(), b.saved("self")));
}

void bmm_backward(Backward& b) {
  Runner& r = b.runner();
  if (b.needs("mat2")) b.give("mat2", bmm(r, transpose(r, b.saved("self"), 1, 2), b.grad()));
  if (b.needs("self")) b.give("self", bmm(r, b.grad(), transpose(r, b.saved("mat2"), 1, 2)));
}

constexpr std::int64_t kGroupedAlignment = 16;  // bytes

// A product for each group of rows: [rows, k] x [groups, k, n], or [k, rows] x [rows, n] for the groups' weights. The
// kernel wants rows that start at multiples of 16 bytes.
void infer_grouped(Call& call) {
  const Dims& a = call.in(0).sizes();
  const Dims& b = call.in(1).sizes();
  const std::int64_t width = b.back();
  const std::int64_t aligned = kGroupedAlignment / step::item_bytes(call.in(0).dtype());
  for (const std::size_t i : {0u, 1u}) {
    const Dims& strides = call.in(i).strides();
    const std::int64_t row = std::max(strides[strides.size() - 1], strides[strides.size() - 2]);
    if (row % aligned != 0)
      throw Error({.kind = ErrorKind::kInput,
                   .place = "aten._grouped_mm.default",
                   .problem = "PyTorch refuses grouped products of such rows",
                   .expected = fmt::format("rows of a multiple of {} bytes", kGroupedAlignment),
                   .got = fmt::format("{} elements", row),
                   .remedy = "widths that are multiples of 16"});
  }
  const std::int64_t padded = (width + aligned - 1) / aligned * aligned;
  if (b.size() == 3) {
    call.fresh(call.in(0).dtype(), Dims{a[0], width}, Dims{padded, 1});
  } else {
    call.fresh(call.in(0).dtype(), Dims{call.in(2).sizes()[0], a[0], width}, Dims{a[0] * padded, padded, 1});
  }
}

std::int64_t grouped_flops(const Call& call) { return product_flops(call.in(0), call.in(1)); }

Tensor grouped_mm(Runner& r, const Tensor& a, const Tensor& b, const Tensor& offs) {
  static const Op op("aten._grouped_mm.default");
  return op(r, {{"self", a}, {"mat2", b}, {"offs", offs}});
}

void grouped_backward(Backward& b) {
  Runner& r = b.runner();
  if (b.needs("mat2")) {
    if (b.input("mat2").is_column_major) {
      const Tensor turned = transpose(r, b.grad(), -2, -1);
      b.give("mat2", transpose(r, grouped_mm(r, turned, b.saved("self"), b.saved("offs")), -2, -1));
    } else {
      b.give("mat2", grouped_mm(r, transpose(r, b.saved("self"), -2, -1), b.grad(), b.saved("offs")));
    }
  }
  if (b.needs("self")) b.give("self", grouped_mm(r, b.grad(), transpose(r, b.saved("mat2"), -2, -1), b.saved("offs")));
}

}  // namespace

std::vector<Row> matmul_rows() {
  return {
      {.name = "aten._grouped_mm.default",
       .infer = infer_grouped,
       .node = "GroupedMmBackward0",
       .saves = {{"mat2", "self"}, {"offs"}, {"self", "mat2"}},
       .backward = grouped_backward,
       .flops = grouped_flops},
      {.name = "aten.mm.default",
       .infer = infer_mm,
       .node = "MmBackward0",
       .saves = {{"mat2", "self"}, {"self", "mat2"}},
       .backward = mm_backward,
       .flops = mm_flops},
      {.name = "aten.addmm.default",
       .infer = infer_addmm,
       .node = "AddmmBackward0",
       .saves = {{"mat1", "mat2"}, {"mat2", "mat1"}},
       .backward = addmm_backward,
       .flops = addmm_flops},
      {.name = "aten.bmm.default",
       .infer = infer_bmm,
       .node = "BmmBackward0",
       .saves = {{"mat2", "self"}, {"self", "mat2"}},
       .backward = bmm_backward,
       .flops = mm_flops},
      {.name = "aten.baddbmm.default",
       .infer = infer_baddbmm,
       .node = "BaddbmmBackward0",
       .saves = {{"batch1", "batch2"}, {"batch2", "batch1"}},
       .backward = baddbmm_backward,
       .flops = addmm_flops},
      {.name = "aten.mv.default",
       .infer = infer_mv,
       .node = "MvBackward0",
       .saves = {{"self", "vec"}, {"vec", "self"}},
       .backward = mv_backward,
       .flops = vector_flops},
      {.name = "aten.dot.default",
       .infer = infer_dot,
       .node = "DotBackward0",
       .saves = {{"self", "tensor"}, {"tensor", "self"}},
       .backward = dot_backward,
       .flops = vector_flops},
  };
}

Tensor mm(Runner& r, const Tensor& self, const Tensor& mat2) {
  static const Op op("aten.mm.default");
  return op(r, {{"self", self}, {"mat2", mat2}});
}
Tensor bmm(Runner& r, const Tensor& self, const Tensor& mat2) {
  static const Op op("aten.bmm.default");
  return op(r, {{"self", self}, {"mat2", mat2}});
}
Tensor addmm(Runner& r, const Tensor& self, const Tensor& mat1, const Tensor& mat2) {
  static const Op op("aten.addmm.default");
  return op(r, {{"self", self}, {"mat1", mat1}, {"mat2", mat2}});
}

}  // namespace tidemark::ops
