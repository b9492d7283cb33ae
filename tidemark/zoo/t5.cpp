#include "tidemark/zoo/t5.h"

#include <cmath>
#include <limits>
#include <optional>

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"
#include "tidemark/zoo/hf_parts.h"

namespace tidemark::zoo {

namespace {

using nn::Activation;
using nn::Dropout;
using nn::Embedding;
using nn::Linear;
using nn::Module;
using ops::Op;

// What attention hands on besides its result: the bias, which the layers that follow use again.
struct Biased {
  Tensor hidden;
  Tensor bias;
};

std::vector<Tensor> listed(Biased& b) { return {std::move(b.hidden), std::move(b.bias)}; }

// An RMS norm whose variance alone is computed in single precision.
class Norm : public Module {
 public:
  Norm(Net& net, step::ModuleId parent, std::string name, const T5Config& c)
      : Module(net, parent, std::move(name), "T5LayerNorm"),
        eps_(c.layer_norm_eps),
        weight_(net.parameter(id(), "weight", {c.width})) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor variance = x.dtype() == DType::kFloat32 ? x : ops::to_dtype(rt(), x, DType::kFloat32);
      variance = ops::pow(rt(), variance, std::int64_t{2});
      variance = ops::mean(rt(), variance, Dims{-1}, true);
      Tensor hidden;
      {
        Tensor scale = ops::add(rt(), variance, eps_);
        scale = ops::rsqrt(rt(), scale);
        hidden = ops::mul(rt(), x, scale);
      }
      if (weight_.dtype() != DType::kFloat32 && hidden.dtype() != weight_.dtype())
        hidden = ops::to_dtype(rt(), hidden, weight_.dtype());
      Tensor result = ops::mul(rt(), weight_, hidden);
      ops::drop(hidden, variance);
      return result;
    });
  }

 private:
  double eps_;
  Tensor weight_;
};

// The names of the children differ with the gate; their order is that of the Python class.
class Mlp : public Module {
 public:
  Mlp(Net& net, step::ModuleId parent, const T5Config& c)
      : Module(net, parent, "DenseReluDense", c.gated ? "T5DenseGatedActDense" : "T5DenseActDense"),
        wi_(net, id(), c.gated ? "wi_0" : "wi", c.width, c.inner, false),
        wi_1_(c.gated ? std::optional<Linear>(std::in_place, net, id(), "wi_1", c.width, c.inner, false)
                      : std::nullopt),
        wo_(net, id(), "wo", c.inner, c.width, false),
        dropout_(net, id(), "dropout", c.dropout),
        act_(net, id(), "act", activation_type(c.activation), activation_function(c.activation)) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor hidden = wi_(x);
      hidden = act_(hidden);
      if (wi_1_) {
        Tensor gate = std::move(hidden);
        Tensor linear = (*wi_1_)(x);
        hidden = ops::mul(rt(), gate, linear);
        hidden = dropout_(hidden);
        hidden = in_weights_type(hidden);
        Tensor result = wo_(hidden);
        ops::drop(hidden, gate, linear);
        return result;
      }
      hidden = dropout_(hidden);
      hidden = in_weights_type(hidden);
      hidden = wo_(hidden);
      return hidden;
    });
  }

 private:
  // Which autocast undoes.
  Tensor in_weights_type(const Tensor& hidden) const {
    const DType type = wo_.weight().dtype();
    return hidden.dtype() == type ? hidden : ops::to_dtype(rt(), hidden, type);
  }

  Linear wi_;
  std::optional<Linear> wi_1_;
  Linear wo_;
  Dropout dropout_;
  Activation act_;
};

class LayerFF : public Module {
 public:
  LayerFF(Net& net, step::ModuleId parent, std::string name, const T5Config& c)
      : Module(net, parent, std::move(name), "T5LayerFF"),
        mlp_(net, id(), c),
        layer_norm_(net, id(), "layer_norm", c),
        dropout_(net, id(), "dropout", c.dropout) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor forwarded = layer_norm_(x);
      forwarded = mlp_(forwarded);
      Tensor hidden = ops::add(rt(), x, dropout_(forwarded));
      forwarded.reset();
      return hidden;
    });
  }

 private:
  Mlp mlp_;
  Norm layer_norm_;
  Dropout dropout_;
};

enum class Kind { kEncoder, kDecoder, kCross };

// What attention adds to its scores, as one contiguous tensor: the bias, and the future blocked out.
Tensor mask_of(Runtime& rt, const Tensor& bias, bool is_causal, DType dtype) {
  static const Op arange("aten.arange.default");
  static const Op ge("aten.ge.Tensor");
  static const Op scalar("aten.scalar_tensor.default");
  if (!is_causal) return ops::contiguous(rt, bias);
  const std::int64_t rows = bias.size(2);
  const std::int64_t columns = bias.size(3);
  const auto line = [&](std::int64_t count, std::int64_t dim) {
    return ops::unsqueeze(rt, arange(rt, {{"end", count}, {"device", "cpu"}, {"pin_memory", false}}), dim);
  };
  Tensor seen;
  {
    Tensor query = line(rows, 1);
    Tensor key = line(columns, 0);
    seen = ge(rt, {{"self", query}, {"other", key}});
    ops::drop(query, key);
  }
  seen = ops::view(rt, seen, Dims{1, 1, rows, columns});
  Tensor joined;
  {
    const Tensor least = scalar(rt, {{"s", ops::least_number(dtype)},
                                     {"dtype", ops::dtype_word(bias.dtype())},
                                     {"layout", "torch.strided"},
                                     {"device", "cpu"}});
    joined = ops::where(rt, seen, bias, least);
  }
  Tensor result = ops::contiguous(rt, joined);
  ops::drop(seen, joined);
  return result;
}

class Attention : public Module {
 public:
  Attention(Net& net, step::ModuleId parent, const T5Config& c, Kind kind, bool has_bias)
      : Module(net, parent, kind == Kind::kCross ? "EncDecAttention" : "SelfAttention", "T5Attention"),
        config_(c),
        kind_(kind),
        q_(net, id(), "q", c.width, c.heads * c.head, false),
        k_(net, id(), "k", c.width, c.heads * c.head, false),
        v_(net, id(), "v", c.width, c.heads * c.head, false),
        o_(net, id(), "o", c.heads * c.head, c.width, false),
        bias_(has_bias
                  ? std::optional<Embedding>(std::in_place, net, id(), "relative_attention_bias", c.buckets, c.heads)
                  : std::nullopt) {}

  // `source` is what keys and values are made of when it is not x; `bias` is empty in the first layer.
  Biased operator()(const Tensor& x, const Tensor& source, const Tensor& bias) const {
    std::vector<Tensor> results =
        called_with({&x, &source, &bias}, [&] { return forward(x, source ? source : x, bias); });
    return {std::move(results[0]), std::move(results[1])};
  }

 private:
  Tensor by_head(const Linear& projection, const Tensor& x) const {
    const Tensor y = projection(x);
    return ops::transpose(rt(), ops::view(rt(), y, Dims{x.size(0), x.size(1), -1, config_.head}), 1, 2);
  }

  std::vector<Tensor> forward(const Tensor& x, const Tensor& source, Tensor bias) const {
    static const Op zeros("aten.zeros.default");
    Tensor query = by_head(q_, x);
    Tensor key = by_head(k_, source);
    Tensor value = by_head(v_, source);
    if (!bias && bias_) bias = computed_bias(x.size(1), source.size(1));
    if (!bias)
      bias = zeros(rt(), {{"size", Dims{1, config_.heads, x.size(1), source.size(1)}},
                          {"dtype", ops::dtype_word(query.dtype())},
                          {"device", "cpu"},
                          {"pin_memory", false}});
    Tensor y;
    {
      const bool is_causal = kind_ == Kind::kDecoder && x.size(1) > 1;
      const Tensor mask = mask_of(rt(), bias, is_causal, key.dtype());
      y = nn::scaled_dot_product_attention(rt(), query, key, value,
                                           {.mask = mask, .dropout = config_.dropout, .scale = 1.0});
      y = ops::contiguous(rt(), ops::transpose(rt(), y, 1, 2));
    }
    y = ops::contiguous(rt(), ops::reshape(rt(), y, Dims{x.size(0), x.size(1), -1}));
    y = o_(y);
    ops::drop(query, key, value);
    return {std::move(y), std::move(bias)};
  }

  // The number of the bucket for every distance: small ones have their own, large ones share.
  Tensor buckets(const Tensor& distance) const {
    static const Op gt("aten.gt.Scalar");
    static const Op lt("aten.lt.Scalar");
    static const Op abs("aten.abs.default");
    static const Op minimum("aten.minimum.default");
    static const Op zeros_like("aten.zeros_like.default");
    static const Op full_like("aten.full_like.default");
    static const Op log("aten.log.default");
    static const Op div("aten.div.Tensor");
    const bool both_ways = kind_ == Kind::kEncoder;
    std::int64_t count = config_.buckets;
    Tensor result;
    Tensor position;
    if (both_ways) {
      count /= 2;
      Tensor after = gt(rt(), {{"self", distance}, {"other", 0}});
      after = ops::to_dtype(rt(), after, DType::kInt64);
      after = ops::mul(rt(), after, count);
      result = ops::add(rt(), after, std::int64_t{0});
      after.reset();
      position = abs(rt(), {{"self", distance}});
    } else {
      Tensor none = zeros_like(rt(), {{"self", distance}, {"pin_memory", false}});
      const Tensor before = minimum(rt(), {{"self", distance}, {"other", none}});
      none.reset();
      position = ops::neg(rt(), before);
    }
    const std::int64_t exact = count / 2;
    Tensor is_small = lt(rt(), {{"self", position}, {"other", exact}});
    Tensor large = ops::to_dtype(rt(), position, DType::kFloat32);
    large = div(rt(), {{"self", large}, {"other", exact}});
    large = log(rt(), {{"self", large}});
    large = ops::div(rt(), large, std::log(static_cast<double>(config_.max_distance) / static_cast<double>(exact)));
    large = ops::mul(rt(), large, count - exact);
    large = ops::to_dtype(rt(), large, DType::kInt64);
    large = ops::add(rt(), large, exact);
    {
      Tensor last = full_like(rt(), {{"self", large}, {"fill_value", count - 1}, {"pin_memory", false}});
      Tensor bounded = minimum(rt(), {{"self", large}, {"other", last}});
      last.reset();
      large = std::move(bounded);
    }
    {
      const Tensor chosen = ops::where(rt(), is_small, position, large);
      if (both_ways)
        ops::add_(rt(), result, chosen);
      else
        result = ops::add(rt(), chosen, std::int64_t{0});
    }
    ops::drop(position, is_small, large);
    return result;
  }

  Tensor computed_bias(std::int64_t rows, std::int64_t columns) const {
    static const Op arange("aten.arange.default");
    const auto line = [&](std::int64_t count, std::int64_t dim) {
      return ops::unsqueeze(
          rt(), arange(rt(), {{"end", count}, {"dtype", "torch.int64"}, {"device", "cpu"}, {"pin_memory", false}}),
          dim);
    };
    Tensor context = line(rows, 1);
    context = ops::add(rt(), context, std::int64_t{0});
    Tensor memory = line(columns, 0);
    Tensor distance = ops::sub(rt(), memory, context);
    Tensor bucket = buckets(distance);
    Tensor values = (*bias_)(bucket);
    values = ops::unsqueeze(rt(), ops::permute(rt(), values, Dims{2, 0, 1}), 0);
    ops::drop(context, memory, distance, bucket);
    return values;
  }

  T5Config config_;
  Kind kind_;
  Linear q_;
  Linear k_;
  Linear v_;
  Linear o_;
  std::optional<Embedding> bias_;
};

class SelfLayer : public Module {
 public:
  SelfLayer(Net& net, step::ModuleId parent, const T5Config& c, Kind kind, bool has_bias)
      : Module(net, parent, "0", "T5LayerSelfAttention"),
        attention_(net, id(), c, kind, has_bias),
        layer_norm_(net, id(), "layer_norm", c),
        dropout_(net, id(), "dropout", c.dropout) {}

  Biased operator()(const Tensor& x, const Tensor& bias) const {
    std::vector<Tensor> results = called_with({&x, &bias}, [&] {
      Tensor normed = layer_norm_(x);
      Biased attended = attention_(normed, {}, bias);
      Tensor sum = ops::add(rt(), x, dropout_(attended.hidden));
      attended.hidden = std::move(sum);
      normed.reset();
      return listed(attended);
    });
    return {std::move(results[0]), std::move(results[1])};
  }

 private:
  Attention attention_;
  Norm layer_norm_;
  Dropout dropout_;
};

class CrossLayer : public Module {
 public:
  CrossLayer(Net& net, step::ModuleId parent, const T5Config& c)
      : Module(net, parent, "1", "T5LayerCrossAttention"),
        attention_(net, id(), c, Kind::kCross, false),
        layer_norm_(net, id(), "layer_norm", c),
        dropout_(net, id(), "dropout", c.dropout) {}

  Biased operator()(const Tensor& x, const Tensor& source, const Tensor& bias) const {
    std::vector<Tensor> results = called_with({&x, &source, &bias}, [&] {
      Tensor normed = layer_norm_(x);
      Biased attended = attention_(normed, source, bias);
      Biased output{ops::add(rt(), x, dropout_(attended.hidden)), attended.bias};
      ops::drop(normed, attended.hidden, attended.bias);
      return listed(output);
    });
    return {std::move(results[0]), std::move(results[1])};
  }

 private:
  Attention attention_;
  Norm layer_norm_;
  Dropout dropout_;
};

// In float16, transformers keeps what a layer returns from becoming infinite; elsewhere nothing happens.
void clamp_half(nn::Runtime& rt, Tensor& hidden, Tensor& bound) {
  static const Op isinf("aten.isinf.default");
  static const Op any("aten.any.default");
  static const Op scalar("aten.scalar_tensor.default");
  static const Op clamp("aten.clamp.Tensor");
  if (hidden.dtype() != DType::kFloat16) return;
  const double largest = -ops::least_number(DType::kFloat16);
  const auto number = [&](double value) {
    return scalar(rt, {{"s", value}, {"dtype", "torch.float32"}, {"layout", "torch.strided"}, {"device", "cpu"}});
  };
  bound = [&] {
    const Tensor is_infinite = any(rt, {{"self", isinf(rt, {{"self", hidden}})}});
    const Tensor high = number(largest);
    const Tensor low = number(largest - 1000);
    return ops::where(rt, is_infinite, low, high);
  }();
  Tensor clamped;
  {
    const Tensor least = ops::neg(rt, bound);
    clamped = clamp(rt, {{"self", hidden}, {"min", least}, {"max", bound}});
  }
  hidden = std::move(clamped);
}

class Block : public Module {
 public:
  Block(Net& net, step::ModuleId parent, std::string name, const T5Config& c, Kind kind, bool is_first)
      : Module(net, parent, std::move(name), "T5Block"),
        list_(net, id(), "layer", "ModuleList"),
        self_(net, list_.id(), c, kind, is_first),
        cross_(kind == Kind::kDecoder ? std::optional<CrossLayer>(std::in_place, net, list_.id(), c) : std::nullopt),
        last_(net, list_.id(), kind == Kind::kDecoder ? "2" : "1", c) {}

  // {hidden, the bias of attention to itself, that of attention to the source}.
  std::vector<Tensor> operator()(const Tensor& x, const Tensor& bias, const Tensor& source,
                                 const Tensor& source_bias) const {
    return called_with({&x, &bias, &source, &source_bias}, [&] {
      Biased own = self_(x, bias);
      Tensor hidden = std::move(own.hidden);
      Tensor bound;
      clamp_half(rt(), hidden, bound);
      Biased crossed;
      if (cross_) {
        crossed = (*cross_)(hidden, source, source_bias);
        hidden = std::move(crossed.hidden);
        clamp_half(rt(), hidden, bound);
      }
      hidden = last_(hidden);
      clamp_half(rt(), hidden, bound);
      std::vector<Tensor> results = {std::move(hidden), std::move(own.bias)};
      if (crossed.bias) results.push_back(std::move(crossed.bias));
      return results;
    });
  }

 private:
  Module list_;
  SelfLayer self_;
  std::optional<CrossLayer> cross_;
  LayerFF last_;
};

class Stack : public Module {
 public:
  Stack(Net& net, step::ModuleId parent, std::string name, const T5Config& c, Kind kind, const Tensor& shared)
      : Module(net, parent, std::move(name), "T5Stack"),
        embed_tokens_(net, id(), "embed_tokens", shared),
        list_(net, id(), "block", "ModuleList"),
        blocks_(make_blocks(net, list_.id(), c, kind)),
        final_layer_norm_(net, id(), "final_layer_norm", c),
        dropout_(net, id(), "dropout", c.dropout) {}

  Tensor operator()(const Tensor& ids, const Tensor& source) const {
    std::vector<Tensor> results = called_with({&ids, &source}, [&]() -> std::vector<Tensor> {
      Tensor embedded = embed_tokens_(ids);
      Tensor bias;
      Tensor source_bias;
      Tensor hidden = dropout_(embedded);
      for (const Block& block : blocks_) {
        std::vector<Tensor> made = block(hidden, bias, source, source_bias);
        hidden = std::move(made[0]);
        bias = std::move(made[1]);
        if (made.size() > 2) source_bias = std::move(made[2]);
      }
      hidden = final_layer_norm_(hidden);
      hidden = dropout_(hidden);
      ops::drop(embedded, bias, source_bias);
      return {std::move(hidden)};
    });
    return std::move(results[0]);
  }

 private:
  static std::vector<Block> make_blocks(Net& net, step::ModuleId list, const T5Config& c, Kind kind) {
    std::vector<Block> blocks;
    const std::int64_t count = kind == Kind::kDecoder ? c.decoders() : c.layers;
    blocks.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) blocks.emplace_back(net, list, std::to_string(i), c, kind, i == 0);
    return blocks;
  }

  Embedding embed_tokens_;
  Module list_;
  std::vector<Block> blocks_;
  Norm final_layer_norm_;
  Dropout dropout_;
};

class T5 : public Model, public Module {
 public:
  T5(Net& net, const T5Config& c, const Batch& batch)
      : Module(net, {}, "", "T5ForConditionalGeneration"),
        config_(c),
        shared_(net, id(), "shared", c.vocabulary, c.width),
        encoder_(net, id(), "encoder", c, Kind::kEncoder, shared_.weight()),
        decoder_(net, id(), "decoder", c, Kind::kDecoder, shared_.weight()),
        lm_head_(net, id(), "lm_head", shared_.weight()),
        ids_(net.rt.leaf(DType::kInt64, {batch.size, batch.length}, false)) {}

  std::vector<Tensor> inputs() const override { return {ids_}; }

  Tensor loss() const override {
    const std::vector<Tensor> results = called_for_all({&ids_, &ids_}, [&]() -> std::vector<Tensor> {
      Tensor source = encoder_(ids_, {});
      Tensor shifted = shifted_right(ids_);
      Tensor decoded = decoder_(shifted, source);
      Tensor sequence =
          config_.scales_output ? ops::mul(rt(), decoded, std::pow(static_cast<double>(config_.width), -0.5)) : decoded;
      Tensor logits = lm_head_(sequence);
      Tensor loss = class_loss(rt(), logits, ids_, config_.vocabulary);
      ops::drop(shifted, decoded, sequence);
      return {std::move(loss), std::move(logits), std::move(source)};
    });
    return results[0];
  }

 private:
  // What the decoder is given: the labels, one place later.
  Tensor shifted_right(const Tensor& ids) const {
    static const Op new_zeros("aten.new_zeros.default");
    static const Op copy("aten.copy_.default");
    static const Op lift("aten.lift_fresh.default");
    static const Op fill("aten.fill_.Tensor");
    static const Op masked_fill("aten.masked_fill_.Scalar");
    Tensor shifted = new_zeros(rt(), {{"self", ids}, {"size", ids.sizes()}, {"pin_memory", false}});
    {
      const Tensor before = ops::clone(rt(), ops::slice(rt(), ids, 1, 0, -1));
      const Tensor after = ops::slice(rt(), shifted, 1, 1, std::numeric_limits<std::int64_t>::max());
      copy.none(rt(), {{"self", after}, {"src", before}});
    }
    {
      const Tensor start = lift(rt(), {{"lifted", "torch.int64"}});
      const Tensor first = ops::select(rt(), shifted, 1, 0);
      fill.none(rt(), {{"self", first}, {"value", start}});
    }
    const Tensor is_ignored = ops::eq(rt(), shifted, -100);
    masked_fill.none(rt(), {{"self", shifted}, {"mask", is_ignored}, {"value", config_.padding}});
    return shifted;
  }

  T5Config config_;
  Embedding shared_;
  Stack encoder_;
  Stack decoder_;
  Linear lm_head_;
  Tensor ids_;
};

}  // namespace

std::unique_ptr<Model> make_t5(nn::Net& net, const T5Config& config, const Batch& batch) {
  return std::make_unique<T5>(net, config, batch);
}

}  // namespace tidemark::zoo
