#include "tidemark/nn/functional.h"

#include "tidemark/nn/autocast.h"
#include "tidemark/ops/aten.h"

namespace tidemark::nn {

using ops::Op;

namespace {

// Whether a product of a batch of matrices with one matrix is done as one product of two matrices.
bool folds(const Tensor& a, const Tensor& b) {
  if (a.rank() < 3 || b.rank() != 2) return false;
  if (b.needs_grad()) return true;
  if (a.rank() == 2) return false;
  // Without a gradient, only when it needs no copy.
  Dims strides;
  const Dims flat{-1, a.size(-1)};
  return ops::view_strides(a.sizes(), a.strides(), ops::infer_size(flat, ops::count_of(a.sizes())), strides);
}

Dims leading(const Tensor& t, std::size_t count) { return Dims(t.sizes().span().first(t.rank() - count)); }

std::int64_t product(const Dims& sizes) { return ops::count_of(sizes); }

}  // namespace

namespace {

Tensor plain_matmul(Runtime& rt, const Tensor& a, const Tensor& b) {
  if (a.rank() == 2 && b.rank() == 2) return ops::mm(rt, a, b);
  if (folds(a, b)) {
    Dims sizes = leading(a, 1);
    const Tensor flat = ops::reshape(rt, a, Dims{product(sizes), a.size(-1)});
    sizes.push_back(b.size(-1));
    return ops::unsafe_view(rt, ops::mm(rt, flat, b), sizes);
  }
  const Dims batch = ops::broadcast(leading(a, 2), leading(b, 2));
  const std::int64_t count = product(batch);
  Dims a_size = batch;
  a_size.push_back(a.size(-2));
  a_size.push_back(a.size(-1));
  Dims b_size = batch;
  b_size.push_back(b.size(-2));
  b_size.push_back(b.size(-1));
  Dims out = batch;
  out.push_back(a.size(-2));
  out.push_back(b.size(-1));
  const Tensor a_flat = ops::reshape(rt, ops::expand(rt, a, a_size), Dims{count, a.size(-2), a.size(-1)});
  const Tensor b_flat = ops::reshape(rt, ops::expand(rt, b, b_size), Dims{count, b.size(-2), b.size(-1)});
  return ops::unsafe_view(rt, ops::bmm(rt, a_flat, b_flat), out);
}

Tensor plain_linear(Runtime& rt, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (!bias) return plain_matmul(rt, input, ops::t(rt, weight));
  if (input.rank() == 2) return ops::addmm(rt, bias, input, ops::t(rt, weight));
  if (input.rank() == 3 && ops::is_contiguous(input)) {
    Dims sizes = leading(input, 1);
    const Tensor flat = ops::reshape(rt, input, Dims{product(sizes), input.size(-1)});
    sizes.push_back(weight.size(0));
    return ops::view(rt, ops::addmm(rt, bias, flat, ops::t(rt, weight)), sizes);
  }
  const fake::Watchful watchful(rt);
  Tensor output = plain_matmul(rt, input, ops::t(rt, weight));
  output = ops::add(rt, output, bias);
  return output;
}

}  // namespace

// Autocast looks at the arguments from the last to the first.

Tensor in_type(Runtime& rt, const Tensor& t, DType dtype) {
  return t.dtype() == dtype ? t : ops::to_dtype(rt, t, dtype);
}

Tensor matmul(Runtime& rt, const Tensor& a, const Tensor& b) {
  const Tensor second = lowered(rt, b);
  const Tensor first = lowered(rt, a);
  return plain_matmul(rt, first, second);
}

Tensor addmm(Runtime& rt, const Tensor& bias, const Tensor& a, const Tensor& b) {
  const Tensor second = lowered(rt, b);
  const Tensor first = lowered(rt, a);
  const Tensor start = lowered(rt, bias);
  return ops::addmm(rt, start, first, second);
}

Tensor linear(Runtime& rt, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const Tensor b = lowered(rt, bias);
  const Tensor w = lowered(rt, weight);
  const Tensor x = lowered(rt, input);
  return plain_linear(rt, x, w, b);
}

Tensor layer_norm(Runtime& rt, const Tensor& input, const Dims& shape, const Tensor& weight, const Tensor& bias,
                  double eps) {
  static const Op op("aten.native_layer_norm.default");
  const Tensor b = raised_on_cuda(rt, bias);
  const Tensor w = raised_on_cuda(rt, weight);
  const Tensor x = raised_on_cuda(rt, input);
  return op(rt, {{"input", x}, {"normalized_shape", shape}, {"weight", w}, {"bias", b}, {"eps", eps}});
}

Tensor dropout(Runtime& rt, const Tensor& input, double p) {
  static const Op native("aten.native_dropout.default");
  static const Op bernoulli("aten.bernoulli_.float");
  static const Op div("aten.div_.Scalar");
  if (p == 0) return input;
  if (rt.target() == Target::kCuda) return native(rt, {{"input", input}, {"p", p}, {"train", true}});
  const Tensor noise = ops::empty_like(rt, input);
  bernoulli.none(rt, {{"self", noise}, {"p", 1 - p}});
  div.none(rt, {{"self", noise}, {"other", 1 - p}});
  return ops::mul(rt, input, noise);
}

Tensor softmax(Runtime& rt, const Tensor& input, std::int64_t dim, std::optional<DType> dtype) {
  static const Op op("aten._softmax.default");
  if (dtype && *dtype != input.dtype()) {
    const Tensor cast = ops::to_dtype(rt, input, *dtype);
    return op(rt, {{"self", cast}, {"dim", dim}, {"half_to_float", false}});
  }
  return op(rt, {{"self", input}, {"dim", dim}, {"half_to_float", false}});
}

Tensor embedding(Runtime& rt, const Tensor& weight, const Tensor& indices, std::int64_t padding_idx) {
  static const Op op("aten.embedding.default");
  if (padding_idx == -1) return op(rt, {{"weight", weight}, {"indices", indices}});
  return op(rt, {{"weight", weight}, {"indices", indices}, {"padding_idx", padding_idx}});
}

Tensor cross_entropy(Runtime& rt, const Tensor& input, const Tensor& target, std::int64_t ignore_index) {
  static const Op log_softmax("aten._log_softmax.default");
  static const Op nll_loss("aten.nll_loss_forward.default");
  const fake::Watchful watchful(rt);
  const Tensor scores = raised(rt, input);
  const Tensor logs = log_softmax(rt, {{"self", scores}, {"dim", 1}, {"half_to_float", false}});
  return nll_loss(
      rt,
      {{"self", logs}, {"target", target}, {"weight", ops::None{}}, {"reduction", 1}, {"ignore_index", ignore_index}});
}

}  // namespace tidemark::nn
