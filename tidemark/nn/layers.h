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

// The same along every dimension of space.
struct ConvShape {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool has_bias = true;
  std::int64_t groups = 1;  // must divide the channels on both sides
};

// A convolution over one or two dimensions of space.
class Conv : public Module {
 public:
  Tensor operator()(const Tensor& x) const;

 protected:
  Conv(Net& net, step::ModuleId parent, std::string name, std::size_t space, std::int64_t in, std::int64_t out,
       const ConvShape& shape);

 private:
  std::size_t space_;
  ConvShape shape_;
  Tensor weight_;
  Tensor bias_;
};

class Conv1d : public Conv {
 public:
  Conv1d(Net& net, step::ModuleId parent, std::string name, std::int64_t in, std::int64_t out, const ConvShape& shape)
      : Conv(net, parent, std::move(name), 1, in, out, shape) {}
};

class Conv2d : public Conv {
 public:
  Conv2d(Net& net, step::ModuleId parent, std::string name, std::int64_t in, std::int64_t out, const ConvShape& shape)
      : Conv(net, parent, std::move(name), 2, in, out, shape) {}
};

class BatchNorm2d : public Module {
 public:
  BatchNorm2d(Net& net, step::ModuleId parent, std::string name, std::int64_t channels);
  Tensor operator()(const Tensor& x) const;

 private:
  Tensor weight_;
  Tensor bias_;
  Tensor running_mean_;
  Tensor running_var_;
  Tensor batches_;
};

class GroupNorm : public Module {
 public:
  GroupNorm(Net& net, step::ModuleId parent, std::string name, std::int64_t groups, std::int64_t channels, double eps);
  Tensor operator()(const Tensor& x) const;

 private:
  std::int64_t groups_;
  double eps_;
  Tensor weight_;
  Tensor bias_;
};

// nn.ReLU(inplace=True): its result is its input.
class InPlaceRelu : public Module {
 public:
  InPlaceRelu(Net& net, step::ModuleId parent, std::string name) : Module(net, parent, std::move(name), "ReLU") {}
  Tensor operator()(const Tensor& x) const;
};

class MaxPool2d : public Module {
 public:
  MaxPool2d(Net& net, step::ModuleId parent, std::string name, const ConvShape& shape)
      : Module(net, parent, std::move(name), "MaxPool2d"), shape_(shape) {}
  Tensor operator()(const Tensor& x) const;

 private:
  ConvShape shape_;
};

// nn.AdaptiveAvgPool2d((1, 1)).
class GlobalAvgPool2d : public Module {
 public:
  GlobalAvgPool2d(Net& net, step::ModuleId parent, std::string name)
      : Module(net, parent, std::move(name), "AdaptiveAvgPool2d") {}
  Tensor operator()(const Tensor& x) const;
};

Tensor exact_gelu(Runtime& rt, const Tensor& x);
Tensor tanh_gelu(Runtime& rt, const Tensor& x);
Tensor silu(Runtime& rt, const Tensor& x);

}  // namespace tidemark::nn
