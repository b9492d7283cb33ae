#include "tidemark/zoo/gpt2.h"

#include <cmath>

#include "tidemark/ops/aten.h"
#include "tidemark/zoo/hf_parts.h"

namespace tidemark::zoo {

namespace {

using nn::Dropout;
using nn::Embedding;
using nn::LayerNorm;
using nn::Linear;
using nn::Module;

// A linear layer whose weight lies the other way round.
class Conv1D : public Module {
 public:
  Conv1D(Net& net, step::ModuleId parent, std::string name, std::int64_t in, std::int64_t out)
      : Module(net, parent, std::move(name), "Conv1D"),
        weight_(net.parameter(id(), "weight", {in, out})),
        bias_(net.parameter(id(), "bias", {out})) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Dims sizes = x.sizes();
      sizes[sizes.size() - 1] = weight_.size(1);
      Tensor y = nn::addmm(rt(), bias_, ops::view(rt(), x, Dims{-1, x.size(-1)}), weight_);
      y = ops::view(rt(), y, sizes);
      return y;
    });
  }

 private:
  Tensor weight_;
  Tensor bias_;
};

class Attention : public Module {
 public:
  Attention(Net& net, step::ModuleId parent, const Gpt2Config& config)
      : Module(net, parent, "attn", "GPT2Attention"),
        config_(config),
        c_attn_(net, id(), "c_attn", config.width, 3 * config.width),
        c_proj_(net, id(), "c_proj", config.width, config.width),
        attn_dropout_(net, id(), "attn_dropout", config.attention_dropout),
        resid_dropout_(net, id(), "resid_dropout", config.residual_dropout) {}

  Tensor operator()(const Tensor& x, const Tensor& positions) const {
    return called({&x, &positions}, [&] { return forward(x); });
  }

 private:
  Tensor forward(const Tensor& x) const {
    const std::int64_t head = config_.width / config_.heads;
    std::vector<Tensor> qkv = ops::split(rt(), c_attn_(x), config_.width, 2);
    const auto by_head = [&](Tensor& t) {
      t = ops::transpose(rt(), ops::view(rt(), t, Dims{t.size(0), t.size(1), -1, head}), 1, 2);
    };
    by_head(qkv[1]);
    by_head(qkv[2]);
    by_head(qkv[0]);
    Tensor y = nn::scaled_dot_product_attention(
        rt(), qkv[0], qkv[1], qkv[2],
        {.dropout = config_.attention_dropout, .is_causal = x.size(1) > 1, .scale = std::pow(head, -0.5)});
    y = ops::contiguous(rt(), ops::transpose(rt(), y, 1, 2));
    y = ops::contiguous(rt(), ops::view(rt(), y, Dims{y.size(0), y.size(1), -1}));
    y = c_proj_(y);
    y = resid_dropout_(y);
    return y;
  }

  Gpt2Config config_;
  Conv1D c_attn_;
  Conv1D c_proj_;
  Dropout attn_dropout_;
  Dropout resid_dropout_;
};

class Mlp : public Module {
 public:
  Mlp(Net& net, step::ModuleId parent, const Gpt2Config& config)
      : Module(net, parent, "mlp", "GPT2MLP"),
        c_fc_(net, id(), "c_fc", config.width, inner(config)),
        c_proj_(net, id(), "c_proj", inner(config), config.width),
        act_(net, id(), "act", activation_type(config.activation), activation_function(config.activation)),
        dropout_(net, id(), "dropout", config.residual_dropout) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor y = c_fc_(x);
      y = act_(y);
      y = c_proj_(y);
      y = dropout_(y);
      return y;
    });
  }

 private:
  static std::int64_t inner(const Gpt2Config& config) { return config.inner != 0 ? config.inner : 4 * config.width; }

  Conv1D c_fc_;
  Conv1D c_proj_;
  nn::Activation act_;
  Dropout dropout_;
};

class Block : public Module {
 public:
  Block(Net& net, step::ModuleId parent, std::string name, const Gpt2Config& config)
      : Module(net, parent, std::move(name), "GPT2Block"),
        ln_1_(net, id(), "ln_1", config.width, config.layer_norm_eps),
        attn_(net, id(), config),
        ln_2_(net, id(), "ln_2", config.width, config.layer_norm_eps),
        mlp_(net, id(), config) {}

  Tensor operator()(const Tensor& x, const Tensor& positions) const {
    return called({&x, &positions}, [&] {
      Tensor hidden = ln_1_(x);
      Tensor attended = attn_(hidden, positions);
      hidden = ops::add(rt(), attended, x);
      Tensor residual = hidden;
      hidden = ln_2_(hidden);
      Tensor fed = mlp_(hidden);
      hidden = ops::add(rt(), residual, fed);
      ops::drop(residual, attended, fed);
      return hidden;
    });
  }

 private:
  LayerNorm ln_1_;
  Attention attn_;
  LayerNorm ln_2_;
  Mlp mlp_;
};

class Transformer : public Module {
 public:
  Transformer(Net& net, step::ModuleId parent, const Gpt2Config& config)
      : Module(net, parent, "transformer", "GPT2Model"),
        padding_(config.padding),
        wte_(net, id(), "wte", config.vocabulary, config.width),
        wpe_(net, id(), "wpe", config.positions, config.width),
        drop_(net, id(), "drop", config.embedding_dropout),
        h_(net, id(), "h", "ModuleList"),
        blocks_(make_blocks(net, h_.id(), config)),
        ln_f_(net, id(), "ln_f", config.width, config.layer_norm_eps) {}

  Tensor operator()(const Tensor& ids) const {
    return called({&ids}, [&] { return forward(ids); });
  }
  const Tensor& embedding() const { return wte_.weight(); }

 private:
  static std::vector<Block> make_blocks(Net& net, step::ModuleId list, const Gpt2Config& config) {
    std::vector<Block> blocks;
    for (std::int64_t i = 0; i < config.layers; ++i) blocks.emplace_back(net, list, std::to_string(i), config);
    return blocks;
  }

  Tensor forward(const Tensor& given) const {
    if (padding_) look_for_padding(rt(), given, *padding_);
    const Tensor ids = ops::view(rt(), given, Dims{-1, given.size(1)});
    Tensor embedded = wte_(ids);
    Tensor positions = position_ids(rt(), ids.size(1));
    Tensor placed = wpe_(positions);
    Tensor hidden = ops::add(rt(), embedded, placed);
    look_for_packed_sequences(rt(), positions, ids.size(0));
    hidden = drop_(hidden);
    for (const Block& block : blocks_) hidden = block(hidden, positions);
    hidden = ln_f_(hidden);
    hidden = ops::view(rt(), hidden, Dims{-1, ids.size(1), hidden.size(-1)});
    ops::drop(positions, embedded, placed);
    return hidden;
  }

  std::optional<std::int64_t> padding_;
  Embedding wte_;
  Embedding wpe_;
  Dropout drop_;
  Module h_;
  std::vector<Block> blocks_;
  LayerNorm ln_f_;
};

class Gpt2 : public Model, public Module {
 public:
  Gpt2(Net& net, const Gpt2Config& config, const Batch& batch)
      : Module(net, {}, "", "GPT2LMHeadModel"),
        config_(config),
        transformer_(net, id(), config),
        lm_head_(net, id(), "lm_head", transformer_.embedding()),
        ids_(net.rt.leaf(DType::kInt64, {batch.size, batch.length}, false)) {}

  std::vector<Tensor> inputs() const override { return {ids_}; }

  Tensor loss() const override {
    const std::vector<Tensor> results = called_for_all({&ids_, &ids_}, [&]() -> std::vector<Tensor> {
      Tensor hidden = transformer_(ids_);
      hidden = ops::alias(rt(), hidden);
      Tensor logits = lm_head_(hidden);
      Tensor loss = causal_lm_loss(rt(), logits, ids_, config_.vocabulary);
      hidden.reset();
      return {std::move(loss), std::move(logits)};
    });
    return results[0];
  }

 private:
  Gpt2Config config_;
  Transformer transformer_;
  Linear lm_head_;
  Tensor ids_;
};

}  // namespace

std::unique_ptr<Model> make_gpt2(nn::Net& net, const Gpt2Config& config, const Batch& batch) {
  return std::make_unique<Gpt2>(net, config, batch);
}

}  // namespace tidemark::zoo
