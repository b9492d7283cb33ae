#include "tidemark/zoo/bert.h"

#include <cmath>

#include "tidemark/ops/aten.h"
#include "tidemark/zoo/hf_parts.h"

namespace tidemark::zoo {

namespace {

using nn::Activation;
using nn::Dropout;
using nn::Embedding;
using nn::LayerNorm;
using nn::Linear;
using nn::Module;

class Embeddings : public Module {
 public:
  Embeddings(Net& net, step::ModuleId parent, const BertConfig& c)
      : Module(net, parent, "embeddings", "BertEmbeddings"),
        position_ids_(net.buffer(id(), "position_ids", DType::kInt64, {1, c.positions})),
        token_type_ids_(net.buffer(id(), "token_type_ids", DType::kInt64, {1, c.positions})),
        word_embeddings_(net, id(), "word_embeddings", c.vocabulary, c.width, c.padding),
        position_embeddings_(net, id(), "position_embeddings", c.positions, c.width),
        token_type_embeddings_(net, id(), "token_type_embeddings", c.token_types, c.width),
        norm_(net, id(), "LayerNorm", c.width, c.layer_norm_eps),
        dropout_(net, id(), "dropout", c.dropout) {}

  Tensor operator()(const Tensor& ids) const {
    return called({&ids}, [&] { return forward(ids); });
  }
  const Tensor& words() const { return word_embeddings_.weight(); }

 private:
  Tensor forward(const Tensor& ids) const {
    static const ops::Op gather("aten.gather.default");
    const Tensor positions = ops::slice(rt(), position_ids_, 1, 0, ids.size(1));
    Tensor types = ops::expand(rt(), token_type_ids_, Dims{1, -1});
    types = gather(rt(), {{"self", types}, {"dim", 1}, {"index", positions}});
    Tensor spread = ops::expand(rt(), types, Dims{ids.size(0), ids.size(1)});
    Tensor words = word_embeddings_(ids);
    Tensor typed = token_type_embeddings_(spread);
    Tensor y = ops::add(rt(), words, typed);
    Tensor placed = position_embeddings_(positions);
    y = ops::add(rt(), y, placed);
    y = norm_(y);
    y = dropout_(y);
    ops::drop(spread, words, types, typed, placed);
    return y;
  }

  Tensor position_ids_;
  Tensor token_type_ids_;
  Embedding word_embeddings_;
  Embedding position_embeddings_;
  Embedding token_type_embeddings_;
  LayerNorm norm_;
  Dropout dropout_;
};

class SelfAttention : public Module {
 public:
  SelfAttention(Net& net, step::ModuleId parent, const BertConfig& c)
      : Module(net, parent, "self", "BertSelfAttention"),
        head_(c.width / c.heads),
        dropout_p_(c.attention_dropout),
        query_(net, id(), "query", c.width, c.width, true),
        key_(net, id(), "key", c.width, c.width, true),
        value_(net, id(), "value", c.width, c.width, true),
        dropout_(net, id(), "dropout", c.attention_dropout) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor query = by_head(query_, x);
      Tensor key = by_head(key_, x);
      Tensor value = by_head(value_, x);
      Tensor y = nn::scaled_dot_product_attention(
          rt(), query, key, value,
          {.dropout = dropout_p_, .is_causal = false, .scale = std::pow(static_cast<double>(head_), -0.5)});
      y = ops::contiguous(rt(), ops::transpose(rt(), y, 1, 2));
      y = ops::contiguous(rt(), ops::reshape(rt(), y, Dims{x.size(0), x.size(1), -1}));
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
  Linear query_;
  Linear key_;
  Linear value_;
  Dropout dropout_;
};

// A linear layer, dropout, and the norm of the sum with what came before.
class Output : public Module {
 public:
  Output(Net& net, step::ModuleId parent, std::string type, std::int64_t in, const BertConfig& c)
      : Module(net, parent, "output", std::move(type)),
        dense_(net, id(), "dense", in, c.width, true),
        norm_(net, id(), "LayerNorm", c.width, c.layer_norm_eps),
        dropout_(net, id(), "dropout", c.dropout) {}

  Tensor operator()(const Tensor& x, const Tensor& input) const {
    return called({&x, &input}, [&] {
      Tensor hidden = dense_(x);
      hidden = dropout_(hidden);
      Tensor sum = ops::add(rt(), hidden, input);
      Tensor result = norm_(sum);
      ops::drop(sum, hidden);
      return result;
    });
  }

 private:
  Linear dense_;
  LayerNorm norm_;
  Dropout dropout_;
};

class Attention : public Module {
 public:
  Attention(Net& net, step::ModuleId parent, const BertConfig& c)
      : Module(net, parent, "attention", "BertAttention"),
        self_(net, id(), c),
        output_(net, id(), "BertSelfOutput", c.width, c) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor y = self_(x);
      y = output_(y, x);
      return y;
    });
  }

 private:
  SelfAttention self_;
  Output output_;
};

class Intermediate : public Module {
 public:
  Intermediate(Net& net, step::ModuleId parent, const BertConfig& c)
      : Module(net, parent, "intermediate", "BertIntermediate"),
        dense_(net, id(), "dense", c.width, c.inner, true),
        act_(net, id(), "intermediate_act_fn", activation_type(c.activation), activation_function(c.activation)) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor y = dense_(x);
      y = act_(y);
      return y;
    });
  }

 private:
  Linear dense_;
  Activation act_;
};

class Layer : public Module {
 public:
  Layer(Net& net, step::ModuleId parent, std::string name, const BertConfig& c)
      : Module(net, parent, std::move(name), "BertLayer"),
        attention_(net, id(), c),
        intermediate_(net, id(), c),
        output_(net, id(), "BertOutput", c.inner, c) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor attended = attention_(x);
      Tensor middle = intermediate_(attended);
      Tensor y = output_(middle, attended);
      ops::drop(middle, attended);
      return y;
    });
  }

 private:
  Attention attention_;
  Intermediate intermediate_;
  Output output_;
};

class Encoder : public Module {
 public:
  Encoder(Net& net, step::ModuleId parent, const BertConfig& c)
      : Module(net, parent, "encoder", "BertEncoder"), list_(net, id(), "layer", "ModuleList") {
    layers_.reserve(static_cast<std::size_t>(c.layers));
    for (std::int64_t i = 0; i < c.layers; ++i) layers_.emplace_back(net, list_.id(), std::to_string(i), c);
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

class Body : public Module {
 public:
  Body(Net& net, step::ModuleId parent, const BertConfig& c)
      : Module(net, parent, "bert", "BertModel"), embeddings_(net, id(), c), encoder_(net, id(), c) {}

  Tensor operator()(const Tensor& ids) const {
    return called({&ids}, [&] {
      Tensor embedded = embeddings_(ids);
      Tensor y = encoder_(embedded);
      embedded.reset();
      return y;
    });
  }
  const Tensor& words() const { return embeddings_.words(); }

 private:
  Embeddings embeddings_;
  Encoder encoder_;
};

class Transform : public Module {
 public:
  Transform(Net& net, step::ModuleId parent, const BertConfig& c)
      : Module(net, parent, "transform", "BertPredictionHeadTransform"),
        dense_(net, id(), "dense", c.width, c.width, true),
        act_(net, id(), "transform_act_fn", activation_type(c.activation), activation_function(c.activation)),
        norm_(net, id(), "LayerNorm", c.width, c.layer_norm_eps) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor y = dense_(x);
      y = act_(y);
      y = norm_(y);
      return y;
    });
  }

 private:
  Linear dense_;
  Activation act_;
  LayerNorm norm_;
};

class Predictions : public Module {
 public:
  Predictions(Net& net, step::ModuleId parent, const BertConfig& c, const Tensor& words)
      : Module(net, parent, "predictions", "BertLMPredictionHead"),
        bias_(net.parameter(id(), "bias", {c.vocabulary})),
        transform_(net, id(), c),
        decoder_(net, id(), "decoder", words, bias_) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor y = transform_(x);
      y = decoder_(y);
      return y;
    });
  }

 private:
  Tensor bias_;
  Transform transform_;
  Linear decoder_;
};

class Head : public Module {
 public:
  Head(Net& net, step::ModuleId parent, const BertConfig& c, const Tensor& words)
      : Module(net, parent, "cls", "BertOnlyMLMHead"), predictions_(net, id(), c, words) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] { return predictions_(x); });
  }

 private:
  Predictions predictions_;
};

class Bert : public Model, public Module {
 public:
  Bert(Net& net, const BertConfig& c, const Batch& batch)
      : Module(net, {}, "", "BertForMaskedLM"),
        config_(c),
        bert_(net, id(), c),
        cls_(net, id(), c, bert_.words()),
        ids_(net.rt.leaf(DType::kInt64, {batch.size, batch.length}, false)) {}

  std::vector<Tensor> inputs() const override { return {ids_}; }

  Tensor loss() const override {
    const std::vector<Tensor> results = called_for_all({&ids_, &ids_}, [&]() -> std::vector<Tensor> {
      Tensor hidden = bert_(ids_);
      Tensor scores = cls_(hidden);
      Tensor loss = class_loss(rt(), scores, ids_, config_.vocabulary);
      hidden.reset();
      return {std::move(loss), std::move(scores)};
    });
    return results[0];
  }

 private:
  BertConfig config_;
  Body bert_;
  Head cls_;
  Tensor ids_;
};

}  // namespace

std::unique_ptr<Model> make_bert(nn::Net& net, const BertConfig& config, const Batch& batch) {
  return std::make_unique<Bert>(net, config, batch);
}

}  // namespace tidemark::zoo
