#include "tidemark/zoo/llama.h"

#include <cmath>
#include <optional>

#include "tidemark/nn/experts.h"
#include "tidemark/nn/gated_mlp.h"
#include "tidemark/nn/rms_norm.h"
#include "tidemark/nn/rotary.h"
#include "tidemark/ops/aten.h"
#include "tidemark/zoo/hf_parts.h"

namespace tidemark::zoo {

namespace {

using nn::ExpertShape;
using nn::GatedMlp;
using nn::GatedMlpShape;
using nn::Linear;
using nn::MixtureOfExperts;
using nn::Module;
using nn::RmsNorm;
using nn::RotaryEmbedding;

// What every layer is given besides the hidden states.
struct Shared {
  Tensor cos;
  Tensor sin;
  Tensor positions;
};

class Attention : public Module {
 public:
  Attention(Net& net, step::ModuleId parent, const LlamaConfig& c)
      : Module(net, parent, "self_attn", c.family + "Attention"),
        config_(c),
        q_proj_(net, id(), "q_proj", c.width, c.heads * c.head_width(), c.qkv_bias),
        k_proj_(net, id(), "k_proj", c.width, c.kv_heads * c.head_width(), c.qkv_bias),
        v_proj_(net, id(), "v_proj", c.width, c.kv_heads * c.head_width(), c.qkv_bias),
        o_proj_(net, id(), "o_proj", c.heads * c.head_width(), c.width, c.output_bias) {}

  Tensor operator()(const Tensor& x, const Shared& shared) const {
    if (config_.family == "Mixtral")
      return called({&x, &shared.cos, &shared.sin, &shared.positions}, [&] { return forward(x, shared); });
    return called({&x, &shared.positions, &shared.cos, &shared.sin}, [&] { return forward(x, shared); });
  }

 private:
  Tensor by_head(const Linear& projection, const Tensor& x) const {
    const Tensor y = projection(x);
    return ops::transpose(rt(), ops::view(rt(), y, Dims{x.size(0), x.size(1), -1, config_.head_width()}), 1, 2);
  }

  Tensor forward(const Tensor& x, const Shared& shared) const {
    Tensor query = by_head(q_proj_, x);
    Tensor key = by_head(k_proj_, x);
    Tensor value = by_head(v_proj_, x);
    nn::rotate(rt(), query, key, shared.cos, shared.sin);
    Tensor y = nn::scaled_dot_product_attention(rt(), query, key, value,
                                                {.dropout = config_.attention_dropout,
                                                 .is_causal = x.size(1) > 1,
                                                 .scale = std::pow(static_cast<double>(config_.head_width()), -0.5),
                                                 .enable_gqa = config_.kv_heads != config_.heads});
    y = ops::contiguous(rt(), ops::transpose(rt(), y, 1, 2));
    y = ops::contiguous(rt(), ops::reshape(rt(), y, Dims{x.size(0), x.size(1), -1}));
    y = o_proj_(y);
    ops::drop(query, key, value);
    return y;
  }

  LlamaConfig config_;
  Linear q_proj_;
  Linear k_proj_;
  Linear v_proj_;
  Linear o_proj_;
};

GatedMlpShape mlp_shape(const LlamaConfig& c) {
  return {.type = c.family + "MLP",
          .width = c.width,
          .inner = c.inner,
          .has_bias = c.mlp_bias,
          .activation_type = activation_type(c.activation),
          .activation = activation_function(c.activation)};
}

ExpertShape expert_shape(const LlamaConfig& c) {
  return {.family = c.family,
          .width = c.width,
          .inner = c.inner,
          .experts = c.experts,
          .chosen = c.chosen,
          .activation_type = activation_type(c.activation),
          .activation = activation_function(c.activation)};
}

class Layer : public Module {
 public:
  Layer(Net& net, step::ModuleId parent, std::string name, const LlamaConfig& c)
      : Module(net, parent, std::move(name), c.family + "DecoderLayer"),
        positions_first_(c.family == "Mistral" || c.family == "Mixtral" || c.is_gemma()),
        self_attn_(net, id(), c),
        mlp_(c.experts == 0 ? std::optional<GatedMlp>(std::in_place, net, id(), mlp_shape(c)) : std::nullopt),
        moe_(c.experts != 0 ? std::optional<MixtureOfExperts>(std::in_place, net, id(), expert_shape(c))
                            : std::nullopt),
        input_layernorm_(net, id(), "input_layernorm", c.family, c.width, c.rms_eps),
        post_attention_layernorm_(net, id(), "post_attention_layernorm", c.family, c.width, c.rms_eps) {}

  Tensor operator()(const Tensor& x, const Shared& shared) const {
    if (positions_first_)
      return called({&x, &shared.positions, &shared.cos, &shared.sin}, [&] { return forward(x, shared); });
    return called({&x, &shared.cos, &shared.sin, &shared.positions}, [&] { return forward(x, shared); });
  }

 private:
  Tensor forward(const Tensor& x, const Shared& shared) const {
    Tensor hidden = input_layernorm_(x);
    hidden = self_attn_(hidden, shared);
    hidden = ops::add(rt(), x, hidden);
    Tensor residual = hidden;
    hidden = post_attention_layernorm_(hidden);
    hidden = moe_ ? (*moe_)(hidden) : (*mlp_)(hidden);
    hidden = ops::add(rt(), residual, hidden);
    residual.reset();
    return hidden;
  }

  bool positions_first_;
  Attention self_attn_;
  std::optional<GatedMlp> mlp_;
  std::optional<MixtureOfExperts> moe_;
  RmsNorm input_layernorm_;
  RmsNorm post_attention_layernorm_;
};

// The embedding of words. Gemma multiplies it with the root of its width, which it keeps as a tensor.
class Words : public Module {
 public:
  Words(Net& net, step::ModuleId parent, const LlamaConfig& c)
      : Module(net, parent, "embed_tokens", c.is_gemma() ? "GemmaTextScaledWordEmbedding" : "Embedding"),
        padding_(c.padding),
        weight_(net.parameter(id(), "weight", {c.vocabulary, c.width})) {
    if (c.is_gemma()) scale_ = net.buffer(id(), "embed_scale", net.dtype, {});
  }

  Tensor operator()(const Tensor& ids) const {
    return called({&ids}, [&] {
      Tensor embedded = nn::embedding(rt(), weight_, ids, padding_);
      if (scale_) embedded = ops::mul(rt(), embedded, scale_);
      return embedded;
    });
  }
  const Tensor& weight() const { return weight_; }

 private:
  std::int64_t padding_;
  Tensor weight_;
  Tensor scale_;
};

class Body : public Module {
 public:
  Body(Net& net, step::ModuleId parent, const LlamaConfig& c)
      : Module(net, parent, "model", c.family + "Model"),
        config_(c),
        embed_tokens_(net, id(), c),
        list_(net, id(), "layers", "ModuleList"),
        layers_(make_layers(net, list_.id(), c)),
        norm_(net, id(), "norm", c.family, c.width, c.rms_eps),
        rotary_emb_(net, id(), c.family, c.head_width()) {}

  Tensor operator()(const Tensor& ids) const {
    return called({&ids}, [&] {
      Tensor embedded = embed_tokens_(ids);
      Shared shared;
      shared.positions = position_ids(rt(), ids.size(1));
      look_for_packed_sequences(rt(), shared.positions, ids.size(0));
      Tensor hidden = embedded;
      {
        std::vector<Tensor> turned = rotary_emb_(hidden, shared.positions);
        shared.cos = std::move(turned[0]);
        shared.sin = std::move(turned[1]);
      }
      for (const Layer& layer : layers_) hidden = layer(hidden, shared);
      hidden = norm_(hidden);
      // Qwen2 keeps the arguments of its masks in a dict, in this order; a tuple lets go from its end.
      if (config_.family == "Qwen2") embedded.reset();
      ops::drop(shared.positions, embedded, shared.sin, shared.cos);
      return hidden;
    });
  }
  const Tensor& embedding() const { return embed_tokens_.weight(); }

 private:
  static std::vector<Layer> make_layers(Net& net, step::ModuleId list, const LlamaConfig& c) {
    std::vector<Layer> layers;
    layers.reserve(static_cast<std::size_t>(c.layers));
    for (std::int64_t i = 0; i < c.layers; ++i) layers.emplace_back(net, list, std::to_string(i), c);
    return layers;
  }

  LlamaConfig config_;
  Words embed_tokens_;
  Module list_;
  std::vector<Layer> layers_;
  RmsNorm norm_;
  RotaryEmbedding rotary_emb_;
};

class Llama : public Model, public Module {
 public:
  Llama(Net& net, const LlamaConfig& c, const Batch& batch)
      : Module(net, {}, "", c.family + "ForCausalLM"),
        config_(c),
        model_(net, id(), c),
        lm_head_(c.tied ? Linear(net, id(), "lm_head", model_.embedding())
                        : Linear(net, id(), "lm_head", c.width, c.vocabulary, false)),
        ids_(net.rt.leaf(DType::kInt64, {batch.size, batch.length}, false)) {}

  std::vector<Tensor> inputs() const override { return {ids_}; }

  Tensor loss() const override {
    const std::vector<Tensor> results = called_for_all({&ids_, &ids_}, [&]() -> std::vector<Tensor> {
      Tensor hidden = model_(ids_);
      hidden = ops::alias(rt(), hidden);
      Tensor logits = lm_head_(hidden);
      Tensor loss = causal_lm_loss(rt(), logits, ids_, config_.vocabulary);
      hidden.reset();
      return {std::move(loss), std::move(logits)};
    });
    return results[0];
  }

 private:
  LlamaConfig config_;
  Body model_;
  Linear lm_head_;
  Tensor ids_;
};

}  // namespace

std::unique_ptr<Model> make_llama(nn::Net& net, const LlamaConfig& config, const Batch& batch) {
  return std::make_unique<Llama>(net, config, batch);
}

}  // namespace tidemark::zoo
