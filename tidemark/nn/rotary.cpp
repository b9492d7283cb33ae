#include "tidemark/nn/rotary.h"

#include <limits>

#include "tidemark/nn/functional.h"
#include "tidemark/ops/aten.h"

namespace tidemark::nn {

namespace {

// As t.to(device=..., dtype=torch.float).
Tensor single_precision(Runtime& rt, const Tensor& t) {
  static const ops::Op op("aten._to_copy.default");
  if (t.dtype() == DType::kFloat32) return t;
  return op(rt, {{"self", t}, {"dtype", "torch.float32"}, {"device", "cpu"}});
}

Tensor rotate_half(Runtime& rt, const Tensor& x) {
  const std::int64_t half = x.size(-1) / 2;
  const auto dim = static_cast<std::int64_t>(x.rank()) - 1;
  const Tensor first = ops::slice(rt, x, dim, 0, half);
  const Tensor second = ops::slice(rt, x, dim, half, std::numeric_limits<std::int64_t>::max());
  return ops::cat(rt, {ops::neg(rt, second), first}, -1);
}

Tensor turned(Runtime& rt, const Tensor& x, const Tensor& cos, const Tensor& sin) {
  Tensor straight = ops::mul(rt, x, cos);
  Tensor crossed = rotate_half(rt, x);
  crossed = ops::mul(rt, crossed, sin);
  Tensor result = ops::add(rt, straight, crossed);
  ops::drop(straight, crossed);
  return result;
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(Net& net, step::ModuleId parent, const std::string& family, std::int64_t head)
    : Module(net, parent, "rotary_emb", family + "RotaryEmbedding"),
      inv_freq_(net.buffer(id(), "inv_freq", net.dtype, {head / 2})),
      original_inv_freq_(net.buffer(id(), "original_inv_freq", net.dtype, {head / 2})) {}

std::vector<Tensor> RotaryEmbedding::operator()(const Tensor& hidden, const Tensor& positions) const {
  return called_for_all({&hidden, &positions}, [&]() -> std::vector<Tensor> {
    const fake::NoGrad no_grad(rt());
    Tensor freqs = ops::to_dtype(rt(), ops::unsqueeze(rt(), positions, 2), DType::kFloat32);
    {
      const Tensor inverse = single_precision(rt(), inv_freq_);
      freqs = ops::mul(rt(), freqs, inverse);
    }
    Tensor angles = ops::cat(rt(), {freqs, freqs}, -1);
    Tensor cos = ops::cos(rt(), angles);
    cos = ops::mul(rt(), cos, 1.0);
    Tensor sin = ops::sin(rt(), angles);
    sin = ops::mul(rt(), sin, 1.0);
    std::vector<Tensor> results = {in_type(rt(), cos, hidden.dtype()), in_type(rt(), sin, hidden.dtype())};
    ops::drop(freqs, angles, cos, sin);
    return results;
  });
}

void rotate(Runtime& rt, Tensor& query, Tensor& key, const Tensor& cos, const Tensor& sin) {
  const Tensor c = ops::unsqueeze(rt, cos, 1);
  const Tensor s = ops::unsqueeze(rt, sin, 1);
  Tensor q = turned(rt, query, c, s);
  Tensor k = turned(rt, key, c, s);
  query = std::move(q);
  key = std::move(k);
}

}  // namespace tidemark::nn
