#include "tidemark/zoo/resnet.h"

#include <optional>

#include "tidemark/nn/layers.h"
#include "tidemark/ops/aten.h"

namespace tidemark::zoo {

namespace {

using nn::BatchNorm2d;
using nn::Conv2d;
using nn::Dims;
using nn::DType;
using nn::InPlaceRelu;
using nn::Module;
using nn::Net;
using nn::Tensor;

struct Shape {
  std::int64_t in = 0;
  std::int64_t planes = 0;
  std::int64_t stride = 1;
  bool has_downsample = false;
};

class Downsample : public Module {
 public:
  Downsample(Net& net, step::ModuleId parent, std::int64_t in, std::int64_t out, std::int64_t stride)
      : Module(net, parent, "downsample", "Sequential"),
        conv_(net, id(), "0", in, out, {.kernel = 1, .stride = stride, .padding = 0, .has_bias = false}),
        norm_(net, id(), "1", out) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor y = conv_(x);
      y = norm_(y);
      return y;
    });
  }

 private:
  Conv2d conv_;
  BatchNorm2d norm_;
};

class Block {
 public:
  virtual ~Block() = default;
  virtual Tensor operator()(const Tensor& x) const = 0;
};

Conv2d conv3(Net& net, step::ModuleId parent, std::string name, std::int64_t in, std::int64_t out,
             std::int64_t stride) {
  return {net, parent, std::move(name), in, out, {.kernel = 3, .stride = stride, .padding = 1, .has_bias = false}};
}
Conv2d conv1(Net& net, step::ModuleId parent, std::string name, std::int64_t in, std::int64_t out) {
  return {net, parent, std::move(name), in, out, {.kernel = 1, .stride = 1, .padding = 0, .has_bias = false}};
}

class BasicBlock : public Block, public Module {
 public:
  BasicBlock(Net& net, step::ModuleId parent, std::string name, const Shape& s)
      : Module(net, parent, std::move(name), "BasicBlock"),
        conv1_(conv3(net, id(), "conv1", s.in, s.planes, s.stride)),
        bn1_(net, id(), "bn1", s.planes),
        relu_(net, id(), "relu"),
        conv2_(conv3(net, id(), "conv2", s.planes, s.planes, 1)),
        bn2_(net, id(), "bn2", s.planes) {
    if (s.has_downsample) downsample_.emplace(net, id(), s.in, s.planes, s.stride);
  }

  Tensor operator()(const Tensor& x) const override {
    return called({&x}, [&] {
      Tensor out = conv1_(x);
      out = bn1_(out);
      out = relu_(out);
      out = conv2_(out);
      out = bn2_(out);
      Tensor identity = downsample_ ? (*downsample_)(x) : x;
      ops::add_(rt(), out, identity);
      out = relu_(out);
      identity.reset();
      return out;
    });
  }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  InPlaceRelu relu_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  std::optional<Downsample> downsample_;
};

class Bottleneck : public Block, public Module {
 public:
  Bottleneck(Net& net, step::ModuleId parent, std::string name, const Shape& s)
      : Module(net, parent, std::move(name), "Bottleneck"),
        conv1_(conv1(net, id(), "conv1", s.in, s.planes)),
        bn1_(net, id(), "bn1", s.planes),
        conv2_(conv3(net, id(), "conv2", s.planes, s.planes, s.stride)),
        bn2_(net, id(), "bn2", s.planes),
        conv3_(conv1(net, id(), "conv3", s.planes, 4 * s.planes)),
        bn3_(net, id(), "bn3", 4 * s.planes),
        relu_(net, id(), "relu") {
    if (s.has_downsample) downsample_.emplace(net, id(), s.in, 4 * s.planes, s.stride);
  }

  Tensor operator()(const Tensor& x) const override {
    return called({&x}, [&] {
      Tensor out = conv1_(x);
      out = bn1_(out);
      out = relu_(out);
      out = conv2_(out);
      out = bn2_(out);
      out = relu_(out);
      out = conv3_(out);
      out = bn3_(out);
      Tensor identity = downsample_ ? (*downsample_)(x) : x;
      ops::add_(rt(), out, identity);
      out = relu_(out);
      identity.reset();
      return out;
    });
  }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  Conv2d conv3_;
  BatchNorm2d bn3_;
  InPlaceRelu relu_;
  std::optional<Downsample> downsample_;
};

// Several blocks; the first may change the number of channels and the size of the image.
class Stage : public Module {
 public:
  Stage(Net& net, step::ModuleId parent, std::string name, const ResNetConfig& c, std::size_t number, std::int64_t& in)
      : Module(net, parent, std::move(name), "Sequential") {
    const std::int64_t planes = c.width << number;
    const std::int64_t out = c.bottleneck ? 4 * planes : planes;
    for (std::int64_t i = 0; i < c.blocks[number]; ++i) {
      const std::int64_t stride = i == 0 && number > 0 ? 2 : 1;
      const Shape shape{in, planes, stride, i == 0 && (stride != 1 || in != out)};
      if (c.bottleneck) {
        blocks_.push_back(std::make_unique<Bottleneck>(net, id(), std::to_string(i), shape));
      } else {
        blocks_.push_back(std::make_unique<BasicBlock>(net, id(), std::to_string(i), shape));
      }
      in = out;
    }
  }

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor y = x;
      for (const auto& block : blocks_) y = (*block)(y);
      return y;
    });
  }

 private:
  std::vector<std::unique_ptr<Block>> blocks_;
};

class ResNet : public Model, public Module {
 public:
  ResNet(Net& net, const ResNetConfig& c, const Batch& batch)
      : Module(net, {}, "", "ResNet"),
        channels_(c.width),
        conv1_(net, id(), "conv1", 3, c.width, {.kernel = 7, .stride = 2, .padding = 3, .has_bias = false}),
        bn1_(net, id(), "bn1", c.width),
        relu_(net, id(), "relu"),
        maxpool_(net, id(), "maxpool", {.kernel = 3, .stride = 2, .padding = 1, .has_bias = false}),
        layer1_(net, id(), "layer1", c, 0, channels_),
        layer2_(net, id(), "layer2", c, 1, channels_),
        layer3_(net, id(), "layer3", c, 2, channels_),
        layer4_(net, id(), "layer4", c, 3, channels_),
        avgpool_(net, id(), "avgpool"),
        fc_(net, id(), "fc", channels_, c.classes, true),
        images_(net.rt.leaf(net.dtype, {batch.size, 3, batch.image, batch.image}, batch.input_needs_grad)),
        classes_(net.rt.leaf(DType::kInt64, {batch.size}, false)) {}

  std::vector<Tensor> inputs() const override { return {images_, classes_}; }

  Tensor loss() const override {
    const Tensor logits = called({&images_}, [&] {
      Tensor x = conv1_(images_);
      x = bn1_(x);
      x = relu_(x);
      x = maxpool_(x);
      for (const Stage* stage : {&layer1_, &layer2_, &layer3_, &layer4_}) x = (*stage)(x);
      x = avgpool_(x);
      x = ops::view(rt(), x, Dims{x.size(0), x.size(1)});
      x = fc_(x);
      return x;
    });
    return nn::cross_entropy(rt(), logits, classes_);
  }

 private:
  std::int64_t channels_;
  Conv2d conv1_;
  BatchNorm2d bn1_;
  InPlaceRelu relu_;
  nn::MaxPool2d maxpool_;
  Stage layer1_;
  Stage layer2_;
  Stage layer3_;
  Stage layer4_;
  nn::GlobalAvgPool2d avgpool_;
  nn::Linear fc_;
  Tensor images_;
  Tensor classes_;
};

}  // namespace

std::unique_ptr<Model> make_resnet(nn::Net& net, const ResNetConfig& config, const Batch& batch) {
  return std::make_unique<ResNet>(net, config, batch);
}

}  // namespace tidemark::zoo
