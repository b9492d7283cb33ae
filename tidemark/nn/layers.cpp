#include "tidemark/nn/layers.h"

#include "tidemark/base/error.h"
#include "tidemark/nn/autocast.h"
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

namespace {

Dims in_space(std::size_t space, std::int64_t value) {
  Dims dims;
  for (std::size_t i = 0; i < space; ++i) dims.push_back(value);
  return dims;
}

Dims weight_sizes(std::size_t space, std::int64_t in, std::int64_t out, const ConvShape& shape) {
  Dims sizes{out, in / shape.groups};
  for (std::size_t i = 0; i < space; ++i) sizes.push_back(shape.kernel);
  return sizes;
}

}  // namespace

Conv::Conv(Net& net, step::ModuleId parent, std::string name, std::size_t space, std::int64_t in, std::int64_t out,
           const ConvShape& shape)
    : Module(net, parent, std::move(name), space == 1 ? "Conv1d" : "Conv2d"),
      space_(space),
      shape_(shape),
      weight_(net.parameter(id(), "weight", weight_sizes(space, in, out, shape))) {
  if (shape.has_bias) bias_ = net.parameter(id(), "bias", {out});
}

Tensor Conv::operator()(const Tensor& x) const {
  static const ops::Op op("aten.convolution.default");
  return called({&x}, [&] {
    const Tensor bias = lowered(rt(), bias_);
    const Tensor weight = lowered(rt(), weight_);
    const Tensor input = lowered(rt(), x);
    return op(rt(), {{"input", input},
                     {"weight", weight},
                     {"bias", bias},
                     {"stride", in_space(space_, shape_.stride)},
                     {"padding", in_space(space_, shape_.padding)},
                     {"dilation", in_space(space_, 1)},
                     {"transposed", false},
                     {"output_padding", in_space(space_, 0)},
                     {"groups", shape_.groups}});
  });
}

BatchNorm2d::BatchNorm2d(Net& net, step::ModuleId parent, std::string name, std::int64_t channels)
    : Module(net, parent, std::move(name), "BatchNorm2d"),
      weight_(net.parameter(id(), "weight", {channels})),
      bias_(net.parameter(id(), "bias", {channels})),
      running_mean_(net.buffer(id(), "running_mean", net.dtype, {channels})),
      running_var_(net.buffer(id(), "running_var", net.dtype, {channels})),
      batches_(net.buffer(id(), "num_batches_tracked", DType::kInt64, {})) {}

Tensor BatchNorm2d::operator()(const Tensor& x) const {
  static const ops::Op add("aten.add_.Tensor");
  static const ops::Op empty("aten.empty.memory_format");
  static const ops::Op norm("aten.native_batch_norm.default");
  if (x.size(0) * x.size(2) * x.size(3) == 1)
    throw Error({.kind = ErrorKind::kInput,
                 .place = "image",
                 .problem = "a batch norm would see one value per channel, which PyTorch refuses in training",
                 .expected = {},
                 .got = {},
                 .remedy = "a larger image or batch"});
  return called({&x}, [&] {
    add.none(rt(), {{"self", batches_}, {"other", 1}});
    const Tensor reserve =
        empty(rt(), {{"size", Dims{0}}, {"dtype", "torch.uint8"}, {"layout", "torch.strided"}, {"device", "cpu"}});
    return norm(rt(), {{"input", x},
                       {"weight", weight_},
                       {"bias", bias_},
                       {"running_mean", running_mean_},
                       {"running_var", running_var_},
                       {"training", true},
                       {"momentum", 0.1},
                       {"eps", 1e-5}});
  });
}

GroupNorm::GroupNorm(Net& net, step::ModuleId parent, std::string name, std::int64_t groups, std::int64_t channels,
                     double eps)
    : Module(net, parent, std::move(name), "GroupNorm"),
      groups_(groups),
      eps_(eps),
      weight_(net.parameter(id(), "weight", {channels})),
      bias_(net.parameter(id(), "bias", {channels})) {}

Tensor GroupNorm::operator()(const Tensor& x) const {
  static const ops::Op op("aten.native_group_norm.default");
  return called({&x}, [&] {
    const Tensor input = raised_on_cuda(rt(), x);
    std::int64_t positions = 1;
    for (std::size_t i = 2; i < x.rank(); ++i) positions *= x.sizes()[i];
    return op(rt(), {{"input", input},
                     {"weight", weight_},
                     {"bias", bias_},
                     {"N", x.size(0)},
                     {"C", x.size(1)},
                     {"HxW", positions},
                     {"group", groups_},
                     {"eps", eps_}});
  });
}

Tensor InPlaceRelu::operator()(const Tensor& x) const {
  return called({&x}, [&] {
    ops::relu_(rt(), x);
    return x;
  });
}

Tensor MaxPool2d::operator()(const Tensor& x) const {
  static const ops::Op op("aten.max_pool2d_with_indices.default");
  return called({&x}, [&] {
    if (shape_.padding == 0)
      return op(rt(), {{"self", x},
                       {"kernel_size", Dims{shape_.kernel, shape_.kernel}},
                       {"stride", Dims{shape_.stride, shape_.stride}}});
    return op(rt(), {{"self", x},
                     {"kernel_size", Dims{shape_.kernel, shape_.kernel}},
                     {"stride", Dims{shape_.stride, shape_.stride}},
                     {"padding", Dims{shape_.padding, shape_.padding}}});
  });
}

Tensor GlobalAvgPool2d::operator()(const Tensor& x) const {
  return called({&x}, [&] { return ops::mean(rt(), x, Dims{-1, -2}, true); });
}

Tensor exact_gelu(Runtime& rt, const Tensor& x) { return ops::gelu(rt, x, false); }
Tensor tanh_gelu(Runtime& rt, const Tensor& x) { return ops::gelu(rt, x, true); }
Tensor silu(Runtime& rt, const Tensor& x) { return ops::silu(rt, x); }

}  // namespace tidemark::nn
