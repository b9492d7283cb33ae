#include "tidemark/zoo/hf_parts.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "tidemark/nn/autocast.h"
#include "tidemark/ops/aten.h"

namespace tidemark::zoo {

using ops::Op;

Tensor position_ids(Runtime& rt, std::int64_t length) {
  static const Op arange("aten.arange.default");
  Tensor ids = arange(rt, {{"end", length}, {"device", "cpu"}, {"pin_memory", false}});
  ids = ops::add(rt, ids, std::int64_t{0});
  return ops::unsqueeze(rt, ids, 0);
}

void look_for_packed_sequences(Runtime& rt, const Tensor& positions, std::int64_t batch) {
  static const Op cumsum("aten.cumsum.default");
  static const Op all("aten.all.default");
  const std::int64_t length = positions.size(1);
  const Tensor ids = batch != positions.size(0) ? ops::expand(rt, positions, Dims{batch, -1}) : positions;
  Tensor first = ops::sub(rt, ops::slice(rt, ids, 1, 0, 1), std::int64_t{1});
  Tensor difference;
  {
    const Tensor joined = ops::cat(rt, {first, ids}, -1);
    const Tensor before = ops::slice(rt, joined, -1, 0, length);
    const Tensor after = ops::slice(rt, joined, -1, 1, length + 1);
    difference = ops::sub(rt, after, before);
  }
  Tensor mask = cumsum(rt, {{"self", ops::ne(rt, difference, 1)}, {"dim", -1}});
  {
    Tensor is_zero = ops::eq(rt, ops::select(rt, mask, 1, -1), 0);
    const Tensor answer = all(rt, {{"self", is_zero}});
    is_zero.reset();
    ops::read_by_host(rt, answer);
  }
  ops::drop(first, difference, mask);
}

Tensor new_gelu(Runtime& rt, const Tensor& x) {
  Tensor half = ops::mul(rt, x, 0.5);
  Tensor y = nn::raised_on_cuda(rt, x);
  y = ops::pow(rt, y, 3.0);
  y = ops::mul(rt, y, 0.044715);
  y = ops::add(rt, x, y);
  y = ops::mul(rt, y, std::sqrt(2.0 / std::numbers::pi));
  y = ops::tanh(rt, y);
  y = ops::add(rt, y, 1.0);
  Tensor result = ops::mul(rt, half, y);
  ops::drop(half, y);
  return result;
}

Tensor class_loss(Runtime& rt, const Tensor& scores, const Tensor& labels, std::int64_t classes) {
  const Tensor flat = ops::view(rt, scores, Dims{-1, classes});
  const Tensor targets = ops::view(rt, labels, Dims{-1});
  return nn::cross_entropy(rt, flat, targets);
}

void look_for_padding(Runtime& rt, const Tensor& ids, std::int64_t padding) {
  static const Op lift("aten.lift_fresh.default");
  static const Op index("aten.index.Tensor");
  static const Op any("aten.any.default");
  const Tensor ends = [&] {
    const std::vector<Tensor> columns = {Tensor(), lift(rt, {{"lifted", "torch.int64"}, {"lifted_size", Dims{2}}})};
    return index(rt, {{"self", ids}, {"indices", ops::Indices{columns}}});
  }();
  const Tensor found = any(rt, {{"self", ops::eq(rt, ends, padding)}});
  ops::read_by_host(rt, found);
}

Tensor causal_lm_loss(Runtime& rt, const Tensor& logits, const Tensor& labels, std::int64_t vocabulary) {
  static const Op pad("aten.constant_pad_nd.default");
  // The loss is computed in single precision.
  Tensor wide = logits.dtype() == DType::kFloat32 ? logits : ops::to_dtype(rt, logits, DType::kFloat32);
  Tensor padded = pad(rt, {{"self", labels}, {"pad", Dims{0, 1}}, {"value", -100.0}});
  Tensor targets = ops::contiguous(rt, ops::slice(rt, padded, 1, 1, std::numeric_limits<std::int64_t>::max()));
  Tensor flat = ops::view(rt, wide, Dims{-1, vocabulary});
  targets = ops::view(rt, targets, Dims{-1});
  Tensor loss = nn::cross_entropy(rt, flat, targets);
  ops::drop(wide, flat, padded, targets);
  return loss;
}

}  // namespace tidemark::zoo
