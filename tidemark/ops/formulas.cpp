#include "tidemark/ops/formulas.h"

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

Value given(const Backward& b, const char* name, const Value& otherwise) {
  return b.is_given(name) ? *b.find(name) : otherwise;
}

Tensor maybe_multiply(Runner& r, const Tensor& grad, const Value& factor) {
  const auto* whole = std::get_if<std::int64_t>(&factor);
  const auto* real = std::get_if<double>(&factor);
  if ((whole != nullptr && *whole == 1) || (real != nullptr && *real == 1)) return grad;
  return mul_scalar(r, grad, factor);
}

Tensor scalar_tensor(Runner& r, const Value& number, DType dtype) {
  static const Op op("aten.scalar_tensor.default");
  return op(r, {{"s", number}, {"dtype", dtype_word(dtype)}, {"layout", "torch.strided"}, {"device", "cpu"}});
}

Tensor zeros_like(Runner& r, const Tensor& self) {
  static const Op op("aten.zeros_like.default");
  return op(r, {{"self", self}});
}

Tensor restore_dims(Runner& r, const Tensor& reduced, const Dims& dims, bool keepdim, std::size_t rank) {
  if (keepdim || rank == 0 || dims.empty()) return reduced;
  if (dims.size() == 1) return unsqueeze(r, reduced, dims[0]);
  Tensor restored = reduced;
  for (std::size_t i = 0; i < rank; ++i)
    for (const std::int64_t dim : dims)
      if (wrap_dim(dim, rank) == i) restored = unsqueeze(r, restored, static_cast<std::int64_t>(i));
  return restored;
}

void pass_grad(Backward& b) { b.give("self", b.grad()); }

void zero_grad(Backward& b) { b.give("self", zeros_like(b.runner(), b.grad())); }

Row of_self(const char* name, void (*infer)(Call&), const char* node, void (*backward)(Backward&)) {
  return {.name = name, .infer = infer, .node = node, .saves = {{"self"}}, .backward = backward};
}

Row of_result(const char* name, void (*infer)(Call&), const char* node, void (*backward)(Backward&)) {
  return {.name = name,
          .infer = infer,
          .node = node,
          .saved_results = {{"result"}},
          .results = {"result"},
          .backward = backward};
}

Row of_grad(const char* name, void (*infer)(Call&), const char* node, void (*backward)(Backward&)) {
  return {.name = name, .infer = infer, .node = node, .backward = backward};
}

Row in_place_form(const char* name, const Row& row, bool keeps_self) {
  Row made = row;
  made.name = name;
  made.infer = infer_in_place;
  made.in_place = nullptr;
  made.overwrites = keeps_self ? "self" : nullptr;
  return made;
}

}  // namespace tidemark::ops
