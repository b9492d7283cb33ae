#include "tidemark/zoo/toy_gpt.h"

#include "tidemark/nn/layers.h"
#include "tidemark/ops/aten.h"

namespace tidemark::zoo {

namespace {

using nn::Activation;
using nn::Dims;
using nn::Dropout;
using nn::DType;
using nn::Embedding;
using nn::LayerNorm;
using nn::Linear;
using nn::Module;
using nn::Net;
using nn::Tensor;

constexpr double kEps = 1e-5;

class Attention : public Module {
 public:
  Attention(Net& net, step::ModuleId parent, const ToyGptConfig& c)
      : Module(net, parent, "attention", "ToyAttention"),
        config_(c),
        resid_dropout_(net, id(), "resid_dropout", c.dropout),
        wq_(net, id(), "wq", c.width, c.width, false),
        wk_(net, id(), "wk", c.width, c.width, false),
        wv_(net, id(), "wv", c.width, c.width, false),
        wo_(net, id(), "wo", c.width, c.width, false) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] { return forward(x); });
  }

 private:
  Tensor forward(const Tensor& x) const {
    const Dims by_head{x.size(0), x.size(1), config_.heads, config_.width / config_.heads};
    Tensor queries = wq_(x);
    Tensor keys = wk_(x);
    Tensor values = wv_(x);
    for (Tensor* t : {&queries, &keys, &values}) *t = ops::view(rt(), *t, by_head);
    for (Tensor* t : {&queries, &keys, &values}) *t = ops::transpose(rt(), *t, 1, 2);
    Tensor output = nn::scaled_dot_product_attention(rt(), queries, keys, values,
                                                     {.dropout = config_.dropout, .is_causal = config_.is_causal});
    output = ops::view(rt(), ops::contiguous(rt(), ops::transpose(rt(), output, 1, 2)), Dims{x.size(0), x.size(1), -1});
    Tensor projected = wo_(output);
    Tensor result = resid_dropout_(projected);
    ops::drop(projected, queries, keys, values, output);
    return result;
  }

  ToyGptConfig config_;
  Dropout resid_dropout_;
  Linear wq_;
  Linear wk_;
  Linear wv_;
  Linear wo_;
};

class FeedForward : public Module {
 public:
  FeedForward(Net& net, step::ModuleId parent, const ToyGptConfig& c)
      : Module(net, parent, "feed_forward", "ToyFeedForward"),
        w1_(net, id(), "w1", c.width, 4 * c.width, true),
        gelu_(net, id(), "gelu", "GELU", nn::exact_gelu),
        w2_(net, id(), "w2", 4 * c.width, c.width, true),
        resid_dropout_(net, id(), "resid_dropout", c.dropout) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor y = w1_(x);
      y = gelu_(y);
      y = w2_(y);
      y = resid_dropout_(y);
      return y;
    });
  }

 private:
  Linear w1_;
  Activation gelu_;
  Linear w2_;
  Dropout resid_dropout_;
};

class Block : public Module {
 public:
  Block(Net& net, step::ModuleId parent, std::string name, const ToyGptConfig& c)
      : Module(net, parent, std::move(name), "ToyBlock"),
        attention_norm_(net, id(), "attention_norm", c.width, kEps),
        attention_(net, id(), c),
        ffn_norm_(net, id(), "ffn_norm", c.width, kEps),
        feed_forward_(net, id(), c) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor y = attention_norm_(x);
      y = attention_(y);
      y = ops::add(rt(), x, y);
      Tensor h = std::move(y);
      y = ffn_norm_(h);
      y = feed_forward_(y);
      y = ops::add(rt(), h, y);
      h.reset();
      return y;
    });
  }

 private:
  LayerNorm attention_norm_;
  Attention attention_;
  LayerNorm ffn_norm_;
  FeedForward feed_forward_;
};

class ToyGpt : public Model, public Module {
 public:
  ToyGpt(Net& net, const ToyGptConfig& c, const Batch& batch)
      : Module(net, {}, "", "ToyGPT"),
        tok_embeddings_(net, id(), "tok_embeddings", c.vocabulary, c.width),
        pos_embeddings_(net, id(), "pos_embeddings", c.positions, c.width),
        dropout_(net, id(), "dropout", c.dropout),
        list_(net, id(), "layers", "ModuleList"),
        layers_(make_layers(net, list_.id(), c)),
        norm_(net, id(), "norm", c.width, kEps),
        output_(c.tied ? Linear(net, id(), "output", tok_embeddings_.weight())
                       : Linear(net, id(), "output", c.width, c.vocabulary, false)),
        tokens_(net.rt.leaf(DType::kInt64, {batch.size, batch.length}, false)) {}

  std::vector<Tensor> inputs() const override { return {tokens_}; }

  Tensor loss() const override {
    const Tensor logits = called({&tokens_}, [&] { return forward(); });
    return ops::sum(rt(), logits);
  }

 private:
  static std::vector<Block> make_layers(Net& net, step::ModuleId list, const ToyGptConfig& c) {
    std::vector<Block> layers;
    layers.reserve(static_cast<std::size_t>(c.layers));
    for (std::int64_t i = 0; i < c.layers; ++i) layers.emplace_back(net, list, std::to_string(i), c);
    return layers;
  }

  Tensor forward() const {
    static const ops::Op arange("aten.arange.start");
    Tensor h = tok_embeddings_(tokens_);
    Tensor pos = arange(rt(), {{"start", 0}, {"end", tokens_.size(1)}, {"device", "cpu"}, {"pin_memory", false}});
    Tensor p = pos_embeddings_(pos);
    h = ops::add(rt(), h, p);
    h = dropout_(h);
    for (const Block& layer : layers_) h = layer(h);
    h = norm_(h);
    Tensor logits = output_(h);
    if (logits.dtype() != DType::kFloat32) logits = ops::to_dtype(rt(), logits, DType::kFloat32);
    ops::drop(h, pos, p);
    return logits;
  }

  Embedding tok_embeddings_;
  Embedding pos_embeddings_;
  Dropout dropout_;
  Module list_;
  std::vector<Block> layers_;
  LayerNorm norm_;
  Linear output_;
  Tensor tokens_;
};

}  // namespace

std::unique_ptr<Model> make_toy_gpt(nn::Net& net, const ToyGptConfig& config, const Batch& batch) {
  return std::make_unique<ToyGpt>(net, config, batch);
}

}  // namespace tidemark::zoo
