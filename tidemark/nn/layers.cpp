#include "tidemark/nn/layers.h"

#include "tidemark/ops/aten.h"

namespace tidemark::nn {

Linear::Linear(Net& net, step::ModuleId parent, std::string name, std::int64_t in, std::int64_t out, bool has_bias)
    : Module(net, parent, std::move(name), "Linear"), weight_(net.parameter(id(), "weight", {out, in})) {
  if (has_bias) bias_ = net.parameter(id(), "bias", {out});
}

Linear::Linear(Net& net, step::ModuleId parent, std::string name, const Tensor& tied, const Tensor& tied_bias)
    : Module(net, parent, std::move(name), "Linear"), weight_(tied), bias_(tied_bias) {
  net.tie(id(), "weight", tied);
  if (tied_bias) net.tie(id(), "bias", tied_bias);
}

Tensor Linear::operator()(const Tensor& x) const {
  return called({&x}, [&] { return linear(rt(), x, weight_, bias_); });
}

Embedding::Embedding(Net& net, step::ModuleId parent, std::string name, std::int64_t count, std::int64_t width,
                     std::int64_t padding_idx)
    : Module(net, parent, std::move(name), "Embedding"),
      weight_(net.parameter(id(), "weight", {count, width})),
      padding_idx_(padding_idx) {}

Embedding::Embedding(Net& net, step::ModuleId parent, std::string name, const Tensor& tied)
    : Module(net, parent, std::move(name), "Embedding"), weight_(tied) {
  net.tie(id(), "weight", tied);
}

Tensor Embedding::operator()(const Tensor& indices) const {
  return called({&indices}, [&] { return embedding(rt(), weight_, indices, padding_idx_); });
}

LayerNorm::LayerNorm(Net& net, step::ModuleId parent, std::string name, std::int64_t width, double eps)
    : Module(net, parent, std::move(name), "LayerNorm"),
      width_(width),
      eps_(eps),
      weight_(net.parameter(id(), "weight", {width})),
      bias_(net.parameter(id(), "bias", {width})) {}

Tensor LayerNorm::operator()(const Tensor& x) const {
  return called({&x}, [&] { return layer_norm(rt(), x, {width_}, weight_, bias_, eps_); });
}

Tensor Dropout::operator()(const Tensor& x) const {
  return called({&x}, [&] { return dropout(rt(), x, p_); });
}

Tensor Activation::operator()(const Tensor& x) const {
  return called({&x}, [&] { return function_(rt(), x); });
}

Tensor exact_gelu(Runtime& rt, const Tensor& x) { return ops::gelu(rt, x, false); }
Tensor tanh_gelu(Runtime& rt, const Tensor& x) { return ops::gelu(rt, x, true); }

}  // namespace tidemark::nn
