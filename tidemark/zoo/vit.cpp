#include "tidemark/zoo/vit.h"

#include <cmath>

#include "tidemark/nn/autocast.h"
#include "tidemark/ops/aten.h"
#include "tidemark/zoo/hf_parts.h"

namespace tidemark::zoo {

namespace {

using nn::Activation;
using nn::Dropout;
using nn::LayerNorm;
using nn::Linear;
using nn::Module;

class PatchEmbeddings : public Module {
 public:
  PatchEmbeddings(Net& net, step::ModuleId parent, const ViTConfig& c)
      : Module(net, parent, "patch_embeddings", "ViTPatchEmbeddings"),
        projection_(net, id(), "projection", c.channels, c.width, {.kernel = c.patch, .stride = c.patch}) {}

  Tensor operator()(const Tensor& images) const {
    return called({&images}, [&] {
      const Tensor y = projection_(images);
      return ops::transpose(rt(), ops::view(rt(), y, Dims{y.size(0), y.size(1), y.size(2) * y.size(3)}), 1, 2);
    });
  }

 private:
  nn::Conv2d projection_;
};

class Embeddings : public Module {
 public:
  Embeddings(Net& net, step::ModuleId parent, const ViTConfig& c)
      : Module(net, parent, "embeddings", "ViTEmbeddings"),
        cls_token_(net.parameter(id(), "cls_token", {1, 1, c.width})),
        position_embeddings_(
            net.parameter(id(), "position_embeddings", {1, (c.image / c.patch) * (c.image / c.patch) + 1, c.width})),
        patch_embeddings_(net, id(), c),
        dropout_(net, id(), "dropout", c.dropout) {}

  Tensor operator()(const Tensor& images) const {
    return called({&images}, [&] {
      Tensor y = patch_embeddings_(images);
      const Tensor tokens = ops::expand(rt(), cls_token_, Dims{images.size(0), -1, -1});
      y = nn::cat(rt(), {tokens, y}, 1);
      y = ops::add(rt(), y, position_embeddings_);
      y = dropout_(y);
      return y;
    });
  }

 private:
  Tensor cls_token_;
  Tensor position_embeddings_;
  PatchEmbeddings patch_embeddings_;
  Dropout dropout_;
};

class Attention : public Module {
 public:
  Attention(Net& net, step::ModuleId parent, const ViTConfig& c)
      : Module(net, parent, "attention", "ViTAttention"),
        head_(c.width / c.heads),
        dropout_p_(c.attention_dropout),
        q_proj_(net, id(), "q_proj", c.width, c.width, c.qkv_bias),
        k_proj_(net, id(), "k_proj", c.width, c.width, c.qkv_bias),
        v_proj_(net, id(), "v_proj", c.width, c.width, c.qkv_bias),
        o_proj_(net, id(), "o_proj", c.width, c.width, true) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor query = by_head(q_proj_, x);
      Tensor key = by_head(k_proj_, x);
      Tensor value = by_head(v_proj_, x);
      Tensor y = nn::scaled_dot_product_attention(
          rt(), query, key, value,
          {.dropout = dropout_p_, .is_causal = false, .scale = std::pow(static_cast<double>(head_), -0.5)});
      y = ops::contiguous(rt(), ops::transpose(rt(), y, 1, 2));
      y = ops::contiguous(rt(), ops::reshape(rt(), y, Dims{x.size(0), x.size(1), -1}));
      y = o_proj_(y);
      ops::drop(query, key, value);
      return y;
    });
  }

 private:
  Tensor by_head(const Linear& projection, const Tensor& x) const {
    const Tensor y = projection(x);
    return ops::transpose(rt(), ops::view(rt(), y, Dims{x.size(0), x.size(1), -1, head_}), 1, 2);
  }

  std::int64_t head_;
  double dropout_p_;
  Linear q_proj_;
  Linear k_proj_;
  Linear v_proj_;
  Linear o_proj_;
};

class Mlp : public Module {
 public:
  Mlp(Net& net, step::ModuleId parent, const ViTConfig& c)
      : Module(net, parent, "mlp", "ViTMLP"),
        activation_fn_(net, id(), "activation_fn", activation_type(c.activation), activation_function(c.activation)),
        fc1_(net, id(), "fc1", c.width, c.inner, true),
        fc2_(net, id(), "fc2", c.inner, c.width, true) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor y = fc1_(x);
      y = activation_fn_(y);
      y = fc2_(y);
      return y;
    });
  }

 private:
  Activation activation_fn_;
  Linear fc1_;
  Linear fc2_;
};

class Layer : public Module {
 public:
  Layer(Net& net, step::ModuleId parent, std::string name, const ViTConfig& c)
      : Module(net, parent, std::move(name), "ViTLayer"),
        attention_(net, id(), c),
        layernorm_before_(net, id(), "layernorm_before", c.width, c.layer_norm_eps),
        layernorm_after_(net, id(), "layernorm_after", c.width, c.layer_norm_eps),
        mlp_(net, id(), c),
        dropout_(net, id(), "dropout", c.dropout) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor y = layernorm_before_(x);
      y = attention_(y);
      y = dropout_(y);
      y = ops::add(rt(), y, x);
      Tensor residual = y;
      y = layernorm_after_(y);
      y = mlp_(y);
      y = dropout_(y);
      y = ops::add(rt(), y, residual);
      residual.reset();
      return y;
    });
  }

 private:
  Attention attention_;
  LayerNorm layernorm_before_;
  LayerNorm layernorm_after_;
  Mlp mlp_;
  Dropout dropout_;
};

class Body : public Module {
 public:
  Body(Net& net, step::ModuleId parent, const ViTConfig& c)
      : Module(net, parent, "vit", "ViTModel"),
        embeddings_(net, id(), c),
        list_(net, id(), "layers", "ModuleList"),
        layers_(make_layers(net, list_.id(), c)),
        layernorm_(net, id(), "layernorm", c.width, c.layer_norm_eps) {}

  Tensor operator()(const Tensor& images) const {
    return called({&images}, [&] {
      Tensor pixels = images.dtype() == net().dtype ? images : ops::to_dtype(rt(), images, net().dtype);
      Tensor embedded = embeddings_(pixels);
      Tensor y = embedded;
      for (const Layer& layer : layers_) y = layer(y);
      Tensor result = layernorm_(y);
      ops::drop(pixels, embedded, y);
      return result;
    });
  }

 private:
  static std::vector<Layer> make_layers(Net& net, step::ModuleId list, const ViTConfig& c) {
    std::vector<Layer> layers;
    layers.reserve(static_cast<std::size_t>(c.layers));
    for (std::int64_t i = 0; i < c.layers; ++i) layers.emplace_back(net, list, std::to_string(i), c);
    return layers;
  }

  Embeddings embeddings_;
  Module list_;
  std::vector<Layer> layers_;
  LayerNorm layernorm_;
};

class ViT : public Model, public Module {
 public:
  ViT(Net& net, const ViTConfig& c, const Batch& batch)
      : Module(net, {}, "", "ViTForImageClassification"),
        config_(c),
        vit_(net, id(), c),
        classifier_(net, id(), "classifier", c.width, c.classes, true),
        images_(net.rt.leaf(DType::kFloat32, {batch.size, c.channels, c.image, c.image}, batch.input_needs_grad)),
        labels_(net.rt.leaf(DType::kInt64, {batch.size}, false)) {}

  std::vector<Tensor> inputs() const override { return {images_, labels_}; }

  Tensor loss() const override {
    const std::vector<Tensor> results = called_for_all({&images_, &labels_}, [&]() -> std::vector<Tensor> {
      Tensor hidden = vit_(images_);
      Tensor logits = classifier_(ops::select(rt(), hidden, 1, 0));
      Tensor loss = class_loss(rt(), logits, labels_, config_.classes);
      hidden.reset();
      return {std::move(loss), std::move(logits)};
    });
    return results[0];
  }

 private:
  ViTConfig config_;
  Body vit_;
  Linear classifier_;
  Tensor images_;
  Tensor labels_;
};

}  // namespace

std::unique_ptr<Model> make_vit(nn::Net& net, const ViTConfig& config, const Batch& batch) {
  return std::make_unique<ViT>(net, config, batch);
}

}  // namespace tidemark::zoo
