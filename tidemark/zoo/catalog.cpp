#include "tidemark/zoo/catalog.h"

#include <fmt/format.h>

#include <algorithm>

#include "tidemark/base/edit_distance.h"

namespace tidemark::zoo {

namespace {

constexpr std::string_view kHub = "huggingface.co";
constexpr std::string_view kPaper = "arxiv.org/abs/1512.03385";
constexpr std::string_view kTorch = "PyTorch's tests of its planner";

Gpt2Config gpt2(std::int64_t layers, std::int64_t width, std::int64_t heads) {
  Gpt2Config c;
  c.layers = layers;
  c.width = width;
  c.heads = heads;
  return c;
}

struct LlamaShape {
  std::int64_t layers;
  std::int64_t width;
  std::int64_t inner;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t vocabulary = 32000;
  std::int64_t positions = 4096;
  bool tied = false;
  std::int64_t head = 0;
};

LlamaConfig llama(const LlamaShape& s) {
  LlamaConfig c;
  c.layers = s.layers;
  c.width = s.width;
  c.inner = s.inner;
  c.heads = s.heads;
  c.kv_heads = s.kv_heads;
  c.vocabulary = s.vocabulary;
  c.positions = s.positions;
  c.tied = s.tied;
  c.head = s.head;
  c.rms_eps = 1e-5;
  return c;
}

LlamaConfig mistral(const LlamaShape& s) {
  LlamaConfig c = llama(s);
  c.family = "Mistral";
  return c;
}

LlamaConfig mixtral(const LlamaShape& s) {
  LlamaConfig c = llama(s);
  c.family = "Mixtral";
  c.experts = 8;
  return c;
}

LlamaConfig qwen2(const LlamaShape& s) {
  LlamaConfig c = llama(s);
  c.family = "Qwen2";
  c.qkv_bias = true;
  c.rms_eps = 1e-6;
  return c;
}

LlamaConfig gemma(const LlamaShape& s) {
  LlamaConfig c = llama(s);
  c.family = "Gemma";
  c.activation = ActivationKind::kTanhGelu;
  c.tied = true;
  c.padding = 0;
  c.rms_eps = 1e-6;
  return c;
}

T5Config t5(std::int64_t layers, std::int64_t width, std::int64_t inner, std::int64_t heads, std::int64_t head) {
  T5Config c;
  c.layers = layers;
  c.width = width;
  c.inner = inner;
  c.heads = heads;
  c.head = head;
  return c;
}

BertConfig bert(std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t vocabulary = 30522) {
  BertConfig c;
  c.layers = layers;
  c.width = width;
  c.inner = 4 * width;
  c.heads = heads;
  c.vocabulary = vocabulary;
  return c;
}

ViTConfig vit(std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t patch) {
  ViTConfig c;
  c.layers = layers;
  c.width = width;
  c.inner = 4 * width;
  c.heads = heads;
  c.patch = patch;
  return c;
}

ResNetConfig resnet(std::array<std::int64_t, 4> blocks, bool bottleneck) {
  ResNetConfig c;
  c.blocks = blocks;
  c.bottleneck = bottleneck;
  return c;
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> kEntries = {
      {"gpt2", gpt2(12, 768, 12), kHub},
      {"gpt2-medium", gpt2(24, 1024, 16), kHub},
      {"gpt2-large", gpt2(36, 1280, 20), kHub},
      {"gpt2-xl", gpt2(48, 1600, 25), kHub},
      {"distilgpt2", gpt2(6, 768, 12), kHub},
      {"llama-7b", llama({32, 4096, 11008, 32, 32, 32000, 2048}), kHub},
      {"llama-13b", llama({40, 5120, 13824, 40, 40, 32000, 2048}), kHub},
      {"llama-30b", llama({60, 6656, 17920, 52, 52, 32000, 2048}), kHub},
      {"llama-65b", llama({80, 8192, 22016, 64, 64, 32000, 2048}), kHub},
      {"llama2-7b", llama({32, 4096, 11008, 32, 32}), kHub},
      {"llama2-13b", llama({40, 5120, 13824, 40, 40}), kHub},
      {"llama2-70b", llama({80, 8192, 28672, 64, 8}), kHub},
      {"llama3-8b", llama({32, 4096, 14336, 32, 8, 128256, 8192}), kHub},
      {"llama3-70b", llama({80, 8192, 28672, 64, 8, 128256, 8192}), kHub},
      {"llama3.1-8b", llama({32, 4096, 14336, 32, 8, 128256, 131072}), kHub},
      {"llama3.1-70b", llama({80, 8192, 28672, 64, 8, 128256, 131072}), kHub},
      {"llama3.1-405b", llama({126, 16384, 53248, 128, 8, 128256, 131072}), kHub},
      {"llama3.2-1b", llama({16, 2048, 8192, 32, 8, 128256, 131072, true, 64}), kHub},
      {"llama3.2-3b", llama({28, 3072, 8192, 24, 8, 128256, 131072, true, 128}), kHub},
      {"llama3.3-70b", llama({80, 8192, 28672, 64, 8, 128256, 131072}), kHub},
      {"tinyllama-1.1b", llama({22, 2048, 5632, 32, 4, 32000, 2048}), kHub},
      {"codellama-7b", llama({32, 4096, 11008, 32, 32, 32016, 16384}), kHub},
      {"codellama-34b", llama({48, 8192, 22016, 64, 8, 32000, 16384}), kHub},
      {"mistral-7b", mistral({32, 4096, 14336, 32, 8, 32000, 32768}), kHub},
      {"mistral-7b-v0.3", mistral({32, 4096, 14336, 32, 8, 32768, 32768}), kHub},
      {"mistral-nemo-12b", mistral({40, 5120, 14336, 32, 8, 131072, 131072, false, 128}), kHub},
      {"qwen2-0.5b", qwen2({24, 896, 4864, 14, 2, 151936, 131072, true}), kHub},
      {"qwen2-1.5b", qwen2({28, 1536, 8960, 12, 2, 151936, 131072, true}), kHub},
      {"qwen2-7b", qwen2({28, 3584, 18944, 28, 4, 152064, 131072}), kHub},
      {"qwen2-72b", qwen2({80, 8192, 29568, 64, 8, 152064, 131072}), kHub},
      {"qwen2.5-0.5b", qwen2({24, 896, 4864, 14, 2, 151936, 32768, true}), kHub},
      {"qwen2.5-1.5b", qwen2({28, 1536, 8960, 12, 2, 151936, 131072, true}), kHub},
      {"qwen2.5-3b", qwen2({36, 2048, 11008, 16, 2, 151936, 32768, true}), kHub},
      {"qwen2.5-7b", qwen2({28, 3584, 18944, 28, 4, 152064, 131072}), kHub},
      {"qwen2.5-14b", qwen2({48, 5120, 13824, 40, 8, 152064, 131072}), kHub},
      {"qwen2.5-32b", qwen2({64, 5120, 27648, 40, 8, 152064, 131072}), kHub},
      {"qwen2.5-72b", qwen2({80, 8192, 29568, 64, 8, 152064, 131072}), kHub},
      {"gemma-2b", gemma({18, 2048, 16384, 8, 1, 256000, 8192, true, 256}), kHub},
      {"gemma-7b", gemma({28, 3072, 24576, 16, 16, 256000, 8192, true, 256}), kHub},
      {"bert-base", bert(12, 768, 12), kHub},
      {"bert-base-cased", bert(12, 768, 12, 28996), kHub},
      {"bert-large", bert(24, 1024, 16), kHub},
      {"bert-large-cased", bert(24, 1024, 16, 28996), kHub},
      {"t5-small", t5(6, 512, 2048, 8, 64), kHub},
      {"t5-base", t5(12, 768, 3072, 12, 64), kHub},
      {"t5-large", t5(24, 1024, 4096, 16, 64), kHub},
      {"t5-3b", t5(24, 1024, 16384, 32, 128), kHub},
      {"t5-11b", t5(24, 1024, 65536, 128, 128), kHub},
      {"vit-ti-16", vit(12, 192, 3, 16), kHub},
      {"vit-s-16", vit(12, 384, 6, 16), kHub},
      {"vit-b-16", vit(12, 768, 12, 16), kHub},
      {"vit-b-32", vit(12, 768, 12, 32), kHub},
      {"vit-l-16", vit(24, 1024, 16, 16), kHub},
      {"vit-l-32", vit(24, 1024, 16, 32), kHub},
      {"vit-h-14", vit(32, 1280, 16, 14), kHub},
      {"resnet18", resnet({2, 2, 2, 2}, false), kPaper},
      {"resnet34", resnet({3, 4, 6, 3}, false), kPaper},
      {"resnet50", resnet({3, 4, 6, 3}, true), kPaper},
      {"resnet101", resnet({3, 4, 23, 3}, true), kPaper},
      {"resnet152", resnet({3, 8, 36, 3}, true), kPaper},
      {"mixtral-8x7b", mixtral({32, 4096, 14336, 32, 8, 32000, 32768}), kHub},
      {"mixtral-8x22b", mixtral({56, 6144, 16384, 48, 8, 32000, 65536}), kHub},
      {"unet", UNetConfig{}, "arxiv.org/abs/1505.04597"},
      {"toy-gpt", ToyGptConfig{}, kTorch},
  };
  return kEntries;
}

// -- checks --

constexpr std::int64_t kMostLayers = 10000;
constexpr std::int64_t kLargestSize = std::int64_t{1} << 31;

[[noreturn]] void refuse(const char* field, std::string expected, std::string got) {
  throw Error({.kind = ErrorKind::kInput,
               .place = field,
               .problem = "there is no such model",
               .expected = std::move(expected),
               .got = std::move(got),
               .remedy = {}});
}

void require_size(const char* field, std::int64_t value, std::int64_t least = 1, std::int64_t most = kLargestSize) {
  if (value < least || value > most)
    refuse(field, fmt::format("a whole number from {} to {}", least, most), fmt::format("{}", value));
}

void require_probability(const char* field, double value) {
  if (!(value >= 0 && value < 1)) refuse(field, "a probability from 0 to below 1", fmt::format("{}", value));
}

void require_eps(const char* field, double value) {
  if (!(value >= 0 && value <= 1)) refuse(field, "a small positive number", fmt::format("{}", value));
}

void require_divides(const char* field, std::int64_t heads, std::int64_t width, const char* of) {
  if (width % heads != 0) refuse(field, fmt::format("a divisor of {} ({})", of, width), fmt::format("{}", heads));
}

void check_family(const Gpt2Config& c) {
  require_size("n_layer", c.layers, 1, kMostLayers);
  require_size("n_embd", c.width);
  require_size("n_head", c.heads);
  require_size("vocab_size", c.vocabulary);
  require_size("n_positions", c.positions);
  require_size("n_inner", c.inner, 0);
  require_divides("n_head", c.heads, c.width, "n_embd");
  require_probability("embd_pdrop", c.embedding_dropout);
  require_probability("attn_pdrop", c.attention_dropout);
  require_probability("resid_pdrop", c.residual_dropout);
  require_eps("layer_norm_epsilon", c.layer_norm_eps);
}

void check_family(const LlamaConfig& c) {
  require_size("num_hidden_layers", c.layers, 1, kMostLayers);
  require_size("hidden_size", c.width);
  require_size("intermediate_size", c.inner);
  require_size("num_attention_heads", c.heads);
  require_size("num_key_value_heads", c.kv_heads);
  require_size("vocab_size", c.vocabulary);
  require_size("max_position_embeddings", c.positions);
  require_size("head_dim", c.head, 0);
  require_size("pad_token_id", c.padding, -1, c.vocabulary - 1);
  if (c.head == 0) require_divides("num_attention_heads", c.heads, c.width, "hidden_size");
  require_divides("num_key_value_heads", c.kv_heads, c.heads, "num_attention_heads");
  if (c.head_width() % 2 != 0)
    refuse("head_dim", "an even number: rotary positions pair its elements", fmt::format("{}", c.head_width()));
  constexpr std::int64_t kMostShared = 256;  // wider ones are repeated by the library before attention
  if (c.kv_heads != c.heads && c.head_width() > kMostShared)
    refuse("head_dim", "at most 256 where queries share key heads, in native models",
           fmt::format("{}", c.head_width()));
  require_probability("attention_dropout", c.attention_dropout);
  require_eps("rms_norm_eps", c.rms_eps);
  require_size("num_local_experts", c.experts, 0, 1 << 16);
  if (c.experts != 0) require_size("num_experts_per_tok", c.chosen, 1, c.experts);
}

void check_family(const BertConfig& c) {
  require_size("num_hidden_layers", c.layers, 1, kMostLayers);
  require_size("hidden_size", c.width);
  require_size("intermediate_size", c.inner);
  require_size("num_attention_heads", c.heads);
  require_size("vocab_size", c.vocabulary);
  require_size("max_position_embeddings", c.positions);
  require_size("type_vocab_size", c.token_types);
  require_size("pad_token_id", c.padding, -1, c.vocabulary - 1);
  require_divides("num_attention_heads", c.heads, c.width, "hidden_size");
  require_probability("hidden_dropout_prob", c.dropout);
  require_probability("attention_probs_dropout_prob", c.attention_dropout);
  require_eps("layer_norm_eps", c.layer_norm_eps);
}

void check_family(const T5Config& c) {
  require_size("num_layers", c.layers, 1, kMostLayers);
  require_size("num_decoder_layers", c.decoders(), 1, kMostLayers);
  require_size("d_model", c.width);
  require_size("d_ff", c.inner);
  require_size("num_heads", c.heads, 1, 1 << 16);
  require_size("d_kv", c.head, 1, 1 << 20);
  require_size("vocab_size", c.vocabulary);
  require_size("n_positions", c.positions);
  require_size("relative_attention_num_buckets", c.buckets, 4, 1 << 20);
  // The encoder halves the buckets twice, and takes the logarithm of what the distance is over the rest.
  require_size("relative_attention_max_distance", c.max_distance, c.buckets / 2 + 1);
  require_probability("dropout_rate", c.dropout);
  require_eps("layer_norm_epsilon", c.layer_norm_eps);
}

void check_family(const ViTConfig& c) {
  require_size("num_hidden_layers", c.layers, 1, kMostLayers);
  require_size("hidden_size", c.width);
  require_size("intermediate_size", c.inner);
  require_size("num_attention_heads", c.heads);
  require_size("image_size", c.image, 1, 1 << 20);
  require_size("patch_size", c.patch, 1, c.image);
  require_size("num_channels", c.channels);
  require_size("num_labels", c.classes);
  require_divides("num_attention_heads", c.heads, c.width, "hidden_size");
  require_divides("patch_size", c.patch, c.image, "image_size");
  require_probability("hidden_dropout_prob", c.dropout);
  require_probability("attention_probs_dropout_prob", c.attention_dropout);
  require_eps("layer_norm_eps", c.layer_norm_eps);
}

void check_family(const ResNetConfig& c) {
  for (const std::int64_t blocks : c.blocks) require_size("depths", blocks, 1, kMostLayers);
  require_size("embedding_size", c.width, 1, 1 << 20);
  require_size("num_labels", c.classes);
}

void check_family(const HfResNetConfig& c) {
  constexpr std::size_t kMostStages = 16;
  require_size("num_channels", c.channels, 1, 1 << 20);
  require_size("embedding_size", c.embedding, 1, 1 << 20);
  require_size("num_labels", c.classes);
  if (c.depths.empty() || c.depths.size() > kMostStages || c.depths.size() != c.widths.size())
    refuse("depths", fmt::format("as many as hidden_sizes, 1 to {}", kMostStages), fmt::format("{}", c.depths.size()));
  for (const std::int64_t depth : c.depths) require_size("depths", depth, 1, kMostLayers);
  for (const std::int64_t width : c.widths) {
    require_size("hidden_sizes", width, 1, 1 << 20);
    if (c.bottleneck && width % 4 != 0) refuse("hidden_sizes", "multiples of 4", fmt::format("{}", width));
  }
}

void check_family(const ToyGptConfig& c) {
  require_size("n_layers", c.layers, 1, kMostLayers);
  require_size("vocab_size", c.vocabulary);
  require_size("max_seq_len", c.positions);
  require_size("dim", c.width);
  require_size("n_heads", c.heads);
  require_divides("n_heads", c.heads, c.width, "dim");
  require_probability("dropout_p", c.dropout);
}

void check_family(const UNetConfig& c) {
  require_size("channels", c.channels, 1, 1 << 20);
  require_size("depth", c.depth, 1, 16);
  require_size("width", c.width, 1, 1 << 16);
  require_size("groups", c.groups);
  require_divides("groups", c.groups, c.width, "width");
}

// -- building --

std::unique_ptr<Model> make(nn::Net& net, const Gpt2Config& c, const Batch& b) { return make_gpt2(net, c, b); }
std::unique_ptr<Model> make(nn::Net& net, const LlamaConfig& c, const Batch& b) { return make_llama(net, c, b); }
std::unique_ptr<Model> make(nn::Net& net, const BertConfig& c, const Batch& b) { return make_bert(net, c, b); }
std::unique_ptr<Model> make(nn::Net& net, const T5Config& c, const Batch& b) { return make_t5(net, c, b); }
std::unique_ptr<Model> make(nn::Net& net, const ViTConfig& c, const Batch& b) { return make_vit(net, c, b); }
std::unique_ptr<Model> make(nn::Net& net, const ResNetConfig& c, const Batch& b) { return make_resnet(net, c, b); }
std::unique_ptr<Model> make(nn::Net& net, const HfResNetConfig& c, const Batch& b) { return make_hf_resnet(net, c, b); }
std::unique_ptr<Model> make(nn::Net& net, const ToyGptConfig& c, const Batch& b) { return make_toy_gpt(net, c, b); }
std::unique_ptr<Model> make(nn::Net& net, const UNetConfig& c, const Batch& b) { return make_unet(net, c, b); }

struct Describe {
  ModelFacts operator()(const Gpt2Config& c) const { return {0, 0, c.layers, "language model"}; }
  ModelFacts operator()(const LlamaConfig& c) const { return {0, 0, c.layers, "language model"}; }
  // Published without the language-model head, but with a pooler that this head has no use for.
  ModelFacts operator()(const BertConfig& c) const {
    const std::int64_t pooler = c.width * c.width + c.width;
    const std::int64_t head = c.width * c.width + c.width + 2 * c.width + c.vocabulary;
    return {pooler - head, 0, c.layers, "masked language model"};
  }
  ModelFacts operator()(const T5Config& c) const { return {0, 0, c.layers + c.decoders(), "text to text"}; }
  ModelFacts operator()(const ViTConfig& c) const { return {0, 0, c.layers, "image classes"}; }
  ModelFacts operator()(const ResNetConfig& c) const {
    const std::int64_t per_block = c.bottleneck ? 3 : 2;
    std::int64_t layers = 2;
    for (const std::int64_t blocks : c.blocks) layers += per_block * blocks;
    return {0, 0, layers, "image classes"};
  }
  ModelFacts operator()(const HfResNetConfig& c) const {
    std::int64_t layers = 2;
    for (const std::int64_t depth : c.depths) layers += (c.bottleneck ? 3 : 2) * depth;
    return {0, 0, layers, "image classes"};
  }
  ModelFacts operator()(const ToyGptConfig& c) const { return {0, 0, c.layers, "sum of logits"}; }
  ModelFacts operator()(const UNetConfig& c) const { return {0, 0, 5 * c.depth + 3, "images"}; }
};

}  // namespace

std::span<const Entry> models() { return entries(); }

const Entry* find_model(std::string_view name) {
  for (const Entry& entry : entries())
    if (entry.name == name) return &entry;
  return nullptr;
}

std::string nearest_model(std::string_view name) {
  constexpr std::size_t kTooFar = 4;
  std::string_view best;
  std::size_t least = kTooFar;
  if (name.size() > 64) return {};
  for (const Entry& entry : entries()) {
    const std::size_t d = edit_distance(name, entry.name);
    if (d < least) {
      least = d;
      best = entry.name;
    }
  }
  return std::string(best);
}

ModelFacts facts_of(const Config& config) {
  check(config);
  ModelFacts facts = std::visit(Describe(), config);
  nn::Runtime rt(nn::Target::kCpu);
  nn::Net net(rt, nn::DType::kFloat32);
  const std::unique_ptr<Model> model = build(net, config, {.size = 1, .length = 1});
  for (const nn::Tensor& p : net.parameters()) facts.step_parameters += ops::count_of(p.sizes());
  facts.parameters += facts.step_parameters;
  return facts;
}

std::int64_t positions_of(const Config& config) {
  if (const auto* c = std::get_if<Gpt2Config>(&config)) return c->positions;
  if (const auto* c = std::get_if<LlamaConfig>(&config)) return c->positions;
  if (const auto* c = std::get_if<BertConfig>(&config)) return c->positions;
  if (const auto* c = std::get_if<T5Config>(&config)) return c->positions;
  if (const auto* c = std::get_if<ToyGptConfig>(&config)) return c->positions;
  return 0;
}

std::int64_t layers_of(const Config& config) { return std::visit(Describe(), config).layers; }

std::optional<Config> with_layers(const Config& config, std::int64_t layers) {
  return std::visit(
      [layers](auto c) -> std::optional<Config> {
        if constexpr (requires { c.layers; }) {
          c.layers = layers;
          if constexpr (requires { c.decoder_layers; }) c.decoder_layers = layers;
          return c;
        } else {
          return std::nullopt;
        }
      },
      config);
}

std::int64_t longest_sequence_of(const Config& config) {
  const bool is_limited = std::holds_alternative<Gpt2Config>(config) || std::holds_alternative<BertConfig>(config) ||
                          std::holds_alternative<ToyGptConfig>(config);
  if (is_limited) return positions_of(config);
  const auto* llama = std::get_if<LlamaConfig>(&config);
  return llama != nullptr && llama->window > 0 ? llama->window - 1 : 0;
}

bool takes_images(const Config& config) {
  return std::holds_alternative<ViTConfig>(config) || std::holds_alternative<ResNetConfig>(config) ||
         std::holds_alternative<HfResNetConfig>(config) || std::holds_alternative<UNetConfig>(config);
}

void check(const Config& config) {
  std::visit([](const auto& c) { check_family(c); }, config);
}

std::unique_ptr<Model> build(nn::Net& net, const Config& config, const Batch& batch) {
  return std::visit([&](const auto& c) { return make(net, c, batch); }, config);
}

}  // namespace tidemark::zoo
