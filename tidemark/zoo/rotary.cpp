#include "tidemark/zoo/rotary.h"

#include <limits>

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::zoo {

namespace {

Tensor as(Runtime& rt, const Tensor& t, DType dtype) { return t.dtype() == dtype ? t : ops::to_dtype(rt, t, dtype); }

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
    std::vector<Tensor> results = {as(rt(), cos, hidden.dtype()), as(rt(), sin, hidden.dtype())};
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

RmsNorm::RmsNorm(Net& net, step::ModuleId parent, std::string name, const std::string& family, std::int64_t width,
                 double eps)
    : Module(net, parent, std::move(name), family + "RMSNorm"),
      eps_(eps),
      is_gemma_(family.starts_with("Gemma")),
      weight_(net.parameter(id(), "weight", {width})) {}

Tensor RmsNorm::gemma(const Tensor& x) const {
  const DType dtype = x.dtype();
  Tensor output;
  {
    const Tensor single = as(rt(), x, DType::kFloat32);
    Tensor scale = ops::pow(rt(), single, std::int64_t{2});
    scale = ops::mean(rt(), scale, Dims{-1}, true);
    scale = ops::add(rt(), scale, eps_);
    scale = ops::rsqrt(rt(), scale);
    output = ops::mul(rt(), single, scale);
    scale.reset();
  }
  {
    Tensor factor = as(rt(), weight_, DType::kFloat32);
    factor = ops::add(rt(), factor, 1.0);
    Tensor scaled = ops::mul(rt(), output, factor);
    factor.reset();
    output = std::move(scaled);
  }
  if (dtype != DType::kFloat32) {  // as output.type_as(x)
    static const ops::Op op("aten._to_copy.default");
    output =
        op(rt(), {{"self", output}, {"dtype", ops::dtype_word(dtype)}, {"layout", "torch.strided"}, {"device", "cpu"}});
  }
  return output;
}

Tensor RmsNorm::operator()(const Tensor& x) const {
  return called({&x}, [&] {
    if (is_gemma_) return gemma(x);
    Tensor hidden = as(rt(), x, DType::kFloat32);
    Tensor variance = ops::pow(rt(), hidden, std::int64_t{2});
    variance = ops::mean(rt(), variance, Dims{-1}, true);
    {
      Tensor scale = ops::add(rt(), variance, eps_);
      scale = ops::rsqrt(rt(), scale);
      Tensor scaled = ops::mul(rt(), hidden, scale);
      scale.reset();
      hidden = std::move(scaled);
    }
    Tensor result = ops::mul(rt(), weight_, as(rt(), hidden, x.dtype()));
    ops::drop(hidden, variance);
    return result;
  });
}

}  // namespace tidemark::zoo
