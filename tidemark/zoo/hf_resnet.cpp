#include "tidemark/zoo/hf_resnet.h"

#include <optional>

#include "tidemark/ops/aten.h"
#include "tidemark/zoo/hf_parts.h"

namespace tidemark::zoo {

namespace {

using nn::Activation;
using nn::BatchNorm2d;
using nn::Conv2d;
using nn::Linear;
using nn::Module;

Tensor relu(Runtime& rt, const Tensor& x) { return ops::relu(rt, x); }
Tensor identity(Runtime&, const Tensor& x) { return x; }
Tensor flattened(Runtime& rt, const Tensor& x) { return ops::view(rt, x, Dims{x.size(0), x.size(1)}); }

nn::ConvShape shape(std::int64_t kernel, std::int64_t stride) {
  return {.kernel = kernel, .stride = stride, .padding = kernel / 2, .has_bias = false};
}

class ConvLayer : public Module {
 public:
  ConvLayer(Net& net, step::ModuleId parent, std::string name, std::int64_t in, std::int64_t out,
            const nn::ConvShape& s, bool is_active)
      : Module(net, parent, std::move(name), "ResNetConvLayer"),
        convolution_(net, id(), "convolution", in, out, s),
        normalization_(net, id(), "normalization", out),
        activation_(net, id(), "activation", is_active ? "ReLU" : "Identity", is_active ? relu : identity) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor hidden = convolution_(x);
      hidden = normalization_(hidden);
      hidden = activation_(hidden);
      return hidden;
    });
  }

 private:
  Conv2d convolution_;
  BatchNorm2d normalization_;
  Activation activation_;
};

// The way around a layer: nothing, or a convolution where sizes differ.
class ShortCut : public Module {
 public:
  ShortCut(Net& net, step::ModuleId parent, std::int64_t in, std::int64_t out, std::int64_t stride)
      : Module(net, parent, "shortcut", in != out || stride != 1 ? "ResNetShortCut" : "Identity") {
    if (in == out && stride == 1) return;
    convolution_.emplace(net, id(), "convolution", in, out, shape(1, stride));
    normalization_.emplace(net, id(), "normalization", out);
  }

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      if (!convolution_) return x;
      Tensor hidden = (*convolution_)(x);
      hidden = (*normalization_)(hidden);
      return hidden;
    });
  }

 private:
  std::optional<Conv2d> convolution_;
  std::optional<BatchNorm2d> normalization_;
};

class Layer : public Module {
 public:
  Layer(Net& net, step::ModuleId parent, std::string name, const HfResNetConfig& c, std::int64_t in, std::int64_t out,
        std::int64_t stride, bool downsamples_first)
      : Module(net, parent, std::move(name), c.bottleneck ? "ResNetBottleNeckLayer" : "ResNetBasicLayer"),
        shortcut_(net, id(), in, out, stride),
        list_(net, id(), "layer", "Sequential") {
    if (c.bottleneck) {
      const std::int64_t reduced = out / 4;
      convolutions_.emplace_back(net, list_.id(), "0", in, reduced, shape(1, downsamples_first ? stride : 1), true);
      convolutions_.emplace_back(net, list_.id(), "1", reduced, reduced, shape(3, downsamples_first ? 1 : stride),
                                 true);
      convolutions_.emplace_back(net, list_.id(), "2", reduced, out, shape(1, 1), false);
    } else {
      convolutions_.emplace_back(net, list_.id(), "0", in, out, shape(3, stride), true);
      convolutions_.emplace_back(net, list_.id(), "1", out, out, shape(3, 1), false);
    }
    activation_.emplace(net, id(), "activation", "ReLU", relu);
  }

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor hidden = list_.run(x, convolutions_);
      Tensor residual = shortcut_(x);
      ops::add_(rt(), hidden, residual);
      hidden = (*activation_)(hidden);
      residual.reset();
      return hidden;
    });
  }

 private:
  class Sequential : public Module {
   public:
    using Module::Module;
    Tensor run(const Tensor& x, const std::vector<ConvLayer>& layers) const {
      return called({&x}, [&] {
        Tensor hidden = x;
        for (const ConvLayer& layer : layers) hidden = layer(hidden);
        return hidden;
      });
    }
  };

  ShortCut shortcut_;
  Sequential list_;
  std::vector<ConvLayer> convolutions_;
  std::optional<Activation> activation_;
};

class Stage : public Module {
 public:
  Stage(Net& net, step::ModuleId parent, std::string name, const HfResNetConfig& c, std::int64_t in, std::int64_t out,
        std::int64_t stride, std::int64_t depth)
      : Module(net, parent, std::move(name), "ResNetStage"), list_(net, id(), "layers", "Sequential") {
    for (std::int64_t i = 0; i < depth; ++i)
      layers_.emplace_back(net, list_.id(), std::to_string(i), c, i == 0 ? in : out, out, i == 0 ? stride : 1,
                           i == 0 && c.downsamples_first_convolution);
  }

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor hidden = x;
      for (const Layer& layer : layers_) hidden = layer(hidden);
      return hidden;
    });
  }

 private:
  Module list_;
  std::vector<Layer> layers_;
};

class Embeddings : public Module {
 public:
  Embeddings(Net& net, step::ModuleId parent, const HfResNetConfig& c)
      : Module(net, parent, "embedder", "ResNetEmbeddings"),
        embedder_(net, id(), "embedder", c.channels, c.embedding, shape(7, 2), true),
        pooler_(net, id(), "pooler", {.kernel = 3, .stride = 2, .padding = 1, .has_bias = false}) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor embedding = embedder_(x);
      embedding = pooler_(embedding);
      return embedding;
    });
  }

 private:
  ConvLayer embedder_;
  nn::MaxPool2d pooler_;
};

class Encoder : public Module {
 public:
  Encoder(Net& net, step::ModuleId parent, const HfResNetConfig& c)
      : Module(net, parent, "encoder", "ResNetEncoder"), list_(net, id(), "stages", "ModuleList") {
    std::int64_t in = c.embedding;
    for (std::size_t i = 0; i < c.depths.size(); ++i) {
      const std::int64_t stride = i == 0 && !c.downsamples_first_stage ? 1 : 2;
      stages_.emplace_back(net, list_.id(), std::to_string(i), c, in, c.widths[i], stride, c.depths[i]);
      in = c.widths[i];
    }
  }

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor hidden = x;
      for (const Stage& stage : stages_) hidden = stage(hidden);
      return hidden;
    });
  }

 private:
  Module list_;
  std::vector<Stage> stages_;
};

class Body : public Module {
 public:
  Body(Net& net, step::ModuleId parent, const HfResNetConfig& c)
      : Module(net, parent, "resnet", "ResNetModel"),
        embedder_(net, id(), c),
        encoder_(net, id(), c),
        pooler_(net, id(), "pooler") {}

  // {the last hidden state, pooled}.
  std::vector<Tensor> operator()(const Tensor& x) const {
    return called_for_all({&x}, [&]() -> std::vector<Tensor> {
      Tensor embedding = embedder_(x);
      Tensor last = encoder_(embedding);
      Tensor pooled = pooler_(last);
      embedding.reset();
      return {std::move(last), std::move(pooled)};
    });
  }

 private:
  Embeddings embedder_;
  Encoder encoder_;
  nn::GlobalAvgPool2d pooler_;
};

class Classifier : public Module {
 public:
  Classifier(Net& net, step::ModuleId parent, const HfResNetConfig& c)
      : Module(net, parent, "classifier", "Sequential"),
        flatten_(net, id(), "0", "Flatten", flattened),
        linear_(net, id(), "1", c.widths.back(), c.classes, true) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor hidden = flatten_(x);
      hidden = linear_(hidden);
      return hidden;
    });
  }

 private:
  Activation flatten_;
  Linear linear_;
};

class HfResNet : public Model, public Module {
 public:
  HfResNet(Net& net, const HfResNetConfig& c, const Batch& batch)
      : Module(net, {}, "", "ResNetForImageClassification"),
        classes_(c.classes),
        resnet_(net, id(), c),
        classifier_(net, id(), c),
        images_(net.rt.leaf(net.dtype, {batch.size, c.channels, batch.image, batch.image}, batch.input_needs_grad)),
        labels_(net.rt.leaf(DType::kInt64, {batch.size}, false)) {}

  std::vector<Tensor> inputs() const override { return {images_, labels_}; }

  Tensor loss() const override {
    const std::vector<Tensor> results = called_for_all({&images_, &labels_}, [&]() -> std::vector<Tensor> {
      std::vector<Tensor> outputs = resnet_(images_);
      Tensor logits = classifier_(outputs[1]);
      Tensor loss = class_loss(rt(), logits, labels_, classes_);
      ops::drop(outputs[0], outputs[1]);
      return {std::move(loss), std::move(logits)};
    });
    return results[0];
  }

 private:
  std::int64_t classes_;
  Body resnet_;
  Classifier classifier_;
  Tensor images_;
  Tensor labels_;
};

}  // namespace

std::unique_ptr<Model> make_hf_resnet(nn::Net& net, const HfResNetConfig& config, const Batch& batch) {
  return std::make_unique<HfResNet>(net, config, batch);
}

}  // namespace tidemark::zoo
