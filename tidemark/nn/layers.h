#pragma once

#include <string>

#include "tidemark/nn/functional.h"
#include "tidemark/nn/net.h"

// The layers of torch.nn: each owns its parameters and is one call.

namespace tidemark::nn {

class Linear : public Module {
 public:
  Linear(Net& net, step::ModuleId parent, std::string name, std::int64_t in, std::int64_t out, bool has_bias);
  // With the weight of another module, and its bias if there is one.
  Linear(Net& net, step::ModuleId parent, std::string name, const Tensor& tied, const Tensor& tied_bias = {});
  Tensor operator()(const Tensor& x) const;
  const Tensor& weight() const { return weight_; }

 private:
  Tensor weight_;
  Tensor bias_;
};

class Embedding : public Module {
 public:
  Embedding(Net& net, step::ModuleId parent, std::string name, std::int64_t count, std::int64_t width,
            std::int64_t padding_idx = -1);
  Embedding(Net& net, step::ModuleId parent, std::string name, const Tensor& tied);
  Tensor operator()(const Tensor& indices) const;
  const Tensor& weight() const { return weight_; }

 private:
  Tensor weight_;
  std::int64_t padding_idx_ = -1;
};

class LayerNorm : public Module {
 public:
  LayerNorm(Net& net, step::ModuleId parent, std::string name, std::int64_t width, double eps);
  Tensor operator()(const Tensor& x) const;

 private:
  std::int64_t width_;
  double eps_;
  Tensor weight_;
  Tensor bias_;
};

class Dropout : public Module {
 public:
  Dropout(Net& net, step::ModuleId parent, std::string name, double p)
      : Module(net, parent, std::move(name), "Dropout"), p_(p) {}
  Tensor operator()(const Tensor& x) const;

 private:
  double p_;
};

// A module that is one function of its input, without parameters.
class Activation : public Module {
 public:
  using Function = Tensor (*)(Runtime&, const Tensor&);
  Activation(Net& net, step::ModuleId parent, std::string name, std::string type, Function function)
      : Module(net, parent, std::move(name), std::move(type)), function_(function) {}
  Tensor operator()(const Tensor& x) const;

 private:
  Function function_;
};

Tensor exact_gelu(Runtime& rt, const Tensor& x);
Tensor tanh_gelu(Runtime& rt, const Tensor& x);

}  // namespace tidemark::nn
