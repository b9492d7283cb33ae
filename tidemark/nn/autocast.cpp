#include "tidemark/nn/autocast.h"

#include "tidemark/ops/aten.h"

namespace tidemark::nn {

using fake::Runtime;
using ops::DType;
using ops::Tensor;

Tensor lowered(Runtime& rt, const Tensor& t) {
  if (!t || !rt.autocast() || !ops::is_floating(t.dtype()) || t.dtype() == *rt.autocast()) return t;
  if (t.dtype() == DType::kFloat64) return t;
  const bool is_parameter = t.dtype() == DType::kFloat32 && t->requires_grad && !t->is_view;
  if (!is_parameter) return ops::to_dtype(rt, t, *rt.autocast());
  Tensor& cast = rt.cast_of(t);
  if (!cast) cast = ops::to_dtype(rt, t, *rt.autocast());
  return cast;
}

Tensor raised(Runtime& rt, const Tensor& t) {
  if (!t || !rt.autocast()) return t;
  const bool is_half = t.dtype() == DType::kFloat16 || t.dtype() == DType::kBFloat16;
  return is_half ? ops::to_dtype(rt, t, DType::kFloat32) : t;
}

Tensor raised_on_cuda(Runtime& rt, const Tensor& t) { return rt.target() == fake::Target::kCuda ? raised(rt, t) : t; }

Tensor cat(Runtime& rt, const std::vector<Tensor>& tensors, std::int64_t dim) {
  bool has_single = false;
  for (const Tensor& t : tensors) has_single = has_single || t.dtype() == DType::kFloat32;
  if (!has_single) return ops::cat(rt, tensors, dim);
  std::vector<Tensor> widest;
  for (const Tensor& t : tensors) widest.push_back(raised(rt, t));
  return ops::cat(rt, widest, dim);
}

}  // namespace tidemark::nn
