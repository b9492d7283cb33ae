#include "tidemark/zoo/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

#include "tidemark/base/byte_source.h"
#include "tidemark/base/strict_json.h"

namespace tidemark::zoo {

namespace {

using Json = nlohmann::json;

constexpr JsonLimits kLimits = {.max_bytes = std::size_t{1} << 20, .max_depth = 32};

[[noreturn]] void refuse(const std::string& place, std::string problem, std::string expected, std::string got,
                         std::string remedy = {}) {
  throw Error({.kind = ErrorKind::kInput,
               .place = place,
               .problem = std::move(problem),
               .expected = std::move(expected),
               .got = std::move(got),
               .remedy = std::move(remedy)});
}

std::string shown(const Json& value) { return shown_in_error(value); }

// The keys of a config, with the file's name in every complaint. A key that is there must have the right type; null
// counts as not there, as it does in Python.
class Keys {
 public:
  Keys(const Json& object, std::string place) : object_(object), place_(std::move(place)) {}

  std::int64_t integer(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) refuse(at(key), "the key is missing", "a whole number", {});
    return whole(key, *value);
  }
  std::int64_t integer(const char* key, std::int64_t otherwise) const {
    const Json* value = find(key);
    return value == nullptr ? otherwise : whole(key, *value);
  }
  // A size that may be left out: `otherwise` stands for that, and cannot be said.
  std::int64_t size_or(const char* key, std::int64_t otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    const std::int64_t size = whole(key, *value);
    if (size < 1) refuse(at(key), "there is no such model", "a whole number from 1 on, or null", shown(*value));
    return size;
  }
  std::vector<std::int64_t> integers(const char* key, std::vector<std::int64_t> otherwise) const {
    constexpr std::size_t kMost = 1000;
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_array() || value->size() > kMost)
      refuse(at(key), "the value has the wrong type", fmt::format("a list of at most {} whole numbers", kMost),
             shown(*value));
    std::vector<std::int64_t> numbers;
    for (const Json& item : *value) numbers.push_back(whole(key, item));
    return numbers;
  }
  // The side of a square: a number, or the same one twice.
  std::int64_t side(const char* key, std::int64_t otherwise) const {
    const Json* value = find(key);
    if (value == nullptr || !value->is_array()) return integer(key, otherwise);
    const std::vector<std::int64_t> sides = integers(key, {});
    if (sides.size() != 2) refuse(at(key), "the value has the wrong type", "height and width", shown(*value));
    if (sides[0] != sides[1])
      refuse(at(key), "native models take square images", "the same height and width", shown(*value),
             "record the model with the PyTorch capture instead");
    return sides[0];
  }
  double number(const char* key, double otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number()) refuse(at(key), "the value has the wrong type", "a number", shown(*value));
    return value->get<double>();
  }
  bool flag(const char* key, bool otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(at(key), "the value has the wrong type", "true or false", shown(*value));
    return value->get<bool>();
  }
  std::string text(const char* key, std::string otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) refuse(at(key), "the value has the wrong type", "a text", shown(*value));
    return value->get<std::string>();
  }
  // Refuses a value that this reader's models do not have.
  void expect_text(const char* key, std::initializer_list<const char*> allowed) const {
    const std::string value = text(key, *allowed.begin());
    for (const char* one : allowed)
      if (value == one) return;
    refuse(at(key), "native models do not have this", fmt::format("{}", fmt::join(allowed, " or ")), quoted(value),
           "record the model with the PyTorch capture instead");
  }
  ActivationKind activation(const char* key, const char* otherwise) const {
    return activation(key, text(key, otherwise), "");
  }
  // Of an activation's name that is part of the key's text, after `prefix`.
  ActivationKind activation(const char* key, std::string_view name, std::string_view prefix) const {
    const std::optional<ActivationKind> kind = activation_named(name);
    if (!kind)
      refuse(at(key), "native models do not have this",
             fmt::format("{}{}", prefix, fmt::join(activation_names(), fmt::format(", {}", prefix))),
             quoted(fmt::format("{}{}", prefix, name)), "record the model with the PyTorch capture instead");
    return *kind;
  }
  void expect_flag(const char* key, bool expected) const {
    if (flag(key, expected) != expected)
      refuse(at(key), "native models do not have this", expected ? "true" : "false", expected ? "false" : "true",
             "record the model with the PyTorch capture instead");
  }
  // A list of which every item says the same.
  void expect_each(const char* key, const char* allowed) const {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_array()) refuse(at(key), "the value has the wrong type", "a list of texts", shown(*value));
    for (const Json& item : *value)
      if (item != Json(allowed))
        refuse(at(key), "native models do not have this", allowed, shown(item),
               "record the model with the PyTorch capture instead");
  }
  // Whether the key is there, be it null.
  bool has(const char* key) const { return object_.contains(key); }
  // The row of an embedding that padding has, counted from its start; -1 for none, `otherwise` when nothing is said.
  std::int64_t padding(std::int64_t vocabulary, std::int64_t otherwise) const {
    if (!has("pad_token_id")) return otherwise;
    if (find("pad_token_id") == nullptr) return -1;
    const std::int64_t row = integer("pad_token_id");
    if (row < -vocabulary || row >= vocabulary)
      refuse(at("pad_token_id"), "the embedding has no such row", fmt::format("a token from 0 to {}", vocabulary - 1),
             std::to_string(row));
    return row < 0 ? row + vocabulary : row;
  }
  // Refuses a key that the library takes for another one.
  void refuse_other_name(const char* key, const char* name) const {
    const Json* value = find(key);
    if (value == nullptr || (find(name) != nullptr && *find(name) == *value)) return;
    refuse(at(key), "native models read this under its other name", name, {});
  }
  // Refuses any value but nothing, false, zero and an empty list or object.
  void expect_nothing(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr || *value == Json(false) || (value->is_number() && value->get<double>() == 0)) return;
    if ((value->is_array() || value->is_object()) && value->empty()) return;
    refuse(at(key), "native models do not have this", "none", shown(*value),
           "record the model with the PyTorch capture instead");
  }
  const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string at(const char* key) const { return fmt::format("{}: {}", place_, key); }

 private:
  static std::string quoted(const std::string& text) { return shown(Json(text)); }
  std::int64_t whole(const char* key, const Json& value) const {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{1} << 62)
      refuse(at(key), "the number is too large", "a size below 2^62", shown(value));
    if (!value.is_number_integer()) refuse(at(key), "the value has the wrong type", "a whole number", shown(value));
    return value.get<std::int64_t>();
  }

  const Json& object_;
  std::string place_;
};

// How positions are turned: as they are, or by one factor for each frequency that is known beforehand.
void expect_plain_rope(const Keys& k) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* rope = k.find(key);
    if (rope == nullptr) continue;
    if (!rope->is_object()) refuse(k.at(key), "the value has the wrong type", "an object", shown(*rope));
    Keys(*rope, k.at(key))
        .expect_text(rope->contains("rope_type") ? "rope_type" : "type", {"default", "linear", "llama3"});
  }
}

// How many heads keys have: said; as many as queries, for null; or what the library takes when nothing is said.
std::int64_t kv_heads_of(const Keys& k, std::int64_t heads, std::int64_t otherwise) {
  return k.integer("num_key_value_heads", k.has("num_key_value_heads") ? heads : otherwise);
}

// Tokens that attention looks back; 0 for all.
std::int64_t window_of(const Keys& k, std::int64_t otherwise) {
  if (k.find("sliding_window") == nullptr) return k.has("sliding_window") ? 0 : otherwise;
  const std::int64_t window = k.integer("sliding_window");
  if (window < 1)
    refuse(k.at("sliding_window"), "there is no such window", "a whole number from 1 on, or null",
           std::to_string(window));
  return window;
}

Config read_gpt2(const Keys& k) {
  Gpt2Config c;
  k.refuse_other_name("max_position_embeddings", "n_positions");
  k.refuse_other_name("num_hidden_layers", "n_layer");
  k.refuse_other_name("num_attention_heads", "n_head");
  k.refuse_other_name("hidden_size", "n_embd");
  c.layers = k.integer("n_layer");
  c.width = k.integer("n_embd");
  c.heads = k.integer("n_head");
  c.vocabulary = k.integer("vocab_size");
  c.positions = k.integer("n_positions", 1024);
  c.inner = k.size_or("n_inner", 0);
  c.embedding_dropout = k.number("embd_pdrop", c.embedding_dropout);
  c.attention_dropout = k.number("attn_pdrop", c.attention_dropout);
  c.residual_dropout = k.number("resid_pdrop", c.residual_dropout);
  c.layer_norm_eps = k.number("layer_norm_epsilon", c.layer_norm_eps);
  c.activation = k.activation("activation_function", "gelu_new");
  k.expect_flag("scale_attn_weights", true);
  k.expect_flag("scale_attn_by_inverse_layer_idx", false);
  k.expect_flag("reorder_and_upcast_attn", false);
  k.expect_flag("add_cross_attention", false);
  k.expect_flag("tie_word_embeddings", true);
  if (k.padding(c.vocabulary, -1) >= 0) c.padding = k.integer("pad_token_id");
  return c;
}

LlamaConfig read_decoder(const Keys& k, const char* family) {
  LlamaConfig c;
  c.family = family;
  c.layers = k.integer("num_hidden_layers");
  c.width = k.integer("hidden_size");
  c.inner = k.integer("intermediate_size");
  c.heads = k.integer("num_attention_heads");
  c.kv_heads = kv_heads_of(k, c.heads, c.heads);
  c.head = k.size_or("head_dim", 0);
  c.vocabulary = k.integer("vocab_size");
  c.positions = k.integer("max_position_embeddings", 2048);
  c.tied = k.flag("tie_word_embeddings", false);
  c.rms_eps = k.number("rms_norm_eps", 1e-6);
  c.attention_dropout = k.number("attention_dropout", 0);
  c.padding = k.padding(c.vocabulary, -1);
  expect_plain_rope(k);
  return c;
}

LlamaConfig read_silu_decoder(const Keys& k, const char* family) {
  LlamaConfig c = read_decoder(k, family);
  c.activation = k.activation("hidden_act", "silu");
  return c;
}

Config read_gemma(const Keys& k) {
  LlamaConfig c = read_decoder(k, "Gemma");
  if (c.head == 0) c.head = 256;
  c.tied = k.flag("tie_word_embeddings", true);
  c.padding = k.padding(c.vocabulary, 0);
  c.kv_heads = kv_heads_of(k, c.heads, 16);
  c.qkv_bias = c.output_bias = k.flag("attention_bias", false);
  // Older files have hidden_act: gelu and are run with the approximation all the same.
  k.expect_flag("use_bidirectional_attention", false);
  k.expect_text("hidden_activation", {"gelu_pytorch_tanh"});
  c.activation = k.activation("hidden_act", "gelu_pytorch_tanh");
  if (c.activation == ActivationKind::kGelu) c.activation = ActivationKind::kTanhGelu;
  return c;
}

Config read_t5(const Keys& k) {
  T5Config c;
  c.layers = k.integer("num_layers");
  c.decoder_layers = k.integer("num_decoder_layers", c.layers);
  c.width = k.integer("d_model");
  c.inner = k.integer("d_ff");
  c.heads = k.integer("num_heads");
  c.head = k.integer("d_kv");
  c.vocabulary = k.integer("vocab_size");
  c.positions = k.integer("n_positions", 512);
  c.buckets = k.integer("relative_attention_num_buckets", 32);
  c.max_distance = k.integer("relative_attention_max_distance", 128);
  c.dropout = k.number("dropout_rate", 0.1);
  c.layer_norm_eps = k.number("layer_norm_epsilon", 1e-6);
  const std::string projection = k.text("feed_forward_proj", "relu");
  constexpr std::string_view kGated = "gated-";
  c.gated = projection.starts_with(kGated);
  c.activation = k.activation("feed_forward_proj", std::string_view(projection).substr(c.gated ? kGated.size() : 0),
                              c.gated ? kGated : "");
  if (projection == "gated-gelu") c.activation = ActivationKind::kNewGelu;
  // What the library writes beside it, and takes from there.
  c.gated = k.flag("is_gated_act", c.gated);
  if (k.find("dense_act_fn") != nullptr) c.activation = k.activation("dense_act_fn", "relu");
  c.scales_output = k.flag("scale_decoder_outputs", k.flag("tie_word_embeddings", true));
  k.expect_flag("is_encoder_decoder", true);
  if (k.padding(c.vocabulary, 0) < 0)
    refuse(k.at("pad_token_id"), "the decoder is given this token in place of labels that do not count", "a token",
           "null");
  c.padding = k.integer("pad_token_id", 0);
  if (c.decoder_layers < 1)
    refuse(k.at("num_decoder_layers"), "there is no such model", "a whole number from 1 on", {});
  return c;
}

Config read_llama(const Keys& k) {
  LlamaConfig c = read_silu_decoder(k, "Llama");
  c.qkv_bias = c.output_bias = k.flag("attention_bias", false);
  c.mlp_bias = k.flag("mlp_bias", false);
  return c;
}

Config read_mistral(const Keys& k) {
  LlamaConfig c = read_silu_decoder(k, "Mistral");
  c.window = window_of(k, 4096);
  c.kv_heads = kv_heads_of(k, c.heads, 8);
  return c;
}

Config read_mixtral(const Keys& k) {
  LlamaConfig c = read_silu_decoder(k, "Mixtral");
  c.rms_eps = k.number("rms_norm_eps", 1e-5);
  c.window = window_of(k, 0);
  c.kv_heads = kv_heads_of(k, c.heads, 8);
  k.expect_nothing("router_jitter_noise");
  k.expect_flag("output_router_logits", false);
  k.refuse_other_name("num_experts", "num_local_experts");
  c.experts = k.integer("num_local_experts", 8);
  c.chosen = k.integer("num_experts_per_tok", 2);
  if (c.experts < 1) refuse(k.at("num_local_experts"), "there is no such model", "a whole number from 1 on", {});
  return c;
}

Config read_qwen2(const Keys& k) {
  LlamaConfig c = read_silu_decoder(k, "Qwen2");
  c.qkv_bias = true;
  c.kv_heads = kv_heads_of(k, c.heads, 32);
  k.expect_flag("use_sliding_window", false);
  k.expect_each("layer_types", "full_attention");
  return c;
}

Config read_bert(const Keys& k) {
  BertConfig c;
  c.layers = k.integer("num_hidden_layers");
  c.width = k.integer("hidden_size");
  c.inner = k.integer("intermediate_size");
  c.heads = k.integer("num_attention_heads");
  c.vocabulary = k.integer("vocab_size");
  c.positions = k.integer("max_position_embeddings", 512);
  c.token_types = k.integer("type_vocab_size", 2);
  c.padding = k.padding(c.vocabulary, 0);
  c.dropout = k.number("hidden_dropout_prob", c.dropout);
  c.attention_dropout = k.number("attention_probs_dropout_prob", c.attention_dropout);
  c.layer_norm_eps = k.number("layer_norm_eps", c.layer_norm_eps);
  c.activation = k.activation("hidden_act", "gelu");
  k.expect_flag("is_decoder", false);
  k.expect_flag("tie_word_embeddings", true);
  k.expect_flag("add_cross_attention", false);
  k.expect_nothing("chunk_size_feed_forward");
  return c;
}

// How many classes a model of images tells apart: said, or counted.
std::int64_t classes_of(const Keys& k) {
  const Json* labels = k.find("id2label");
  if (labels != nullptr && !labels->is_object())
    refuse(k.at("id2label"), "the value has the wrong type", "an object", shown(*labels));
  k.expect_text("problem_type", {"single_label_classification"});
  const std::int64_t classes =
      k.integer("num_labels", labels != nullptr ? static_cast<std::int64_t>(labels->size()) : 2);
  if (classes == 1)
    refuse(k.at("num_labels"), "one label means another loss, which native models do not have", "2 or more", "1",
           "record the model with the PyTorch capture instead");
  return classes;
}

Config read_resnet(const Keys& k) {
  HfResNetConfig c;
  c.channels = k.integer("num_channels", c.channels);
  c.embedding = k.integer("embedding_size", c.embedding);
  c.widths = k.integers("hidden_sizes", c.widths);
  c.depths = k.integers("depths", c.depths);
  k.expect_text("layer_type", {"bottleneck", "basic"});
  c.bottleneck = k.text("layer_type", "bottleneck") == "bottleneck";
  c.downsamples_first_stage = k.flag("downsample_in_first_stage", false);
  c.downsamples_first_convolution = k.flag("downsample_in_bottleneck", false);
  c.classes = classes_of(k);
  k.expect_text("hidden_act", {"relu"});
  return c;
}

// No library's: the keys are those of docs/native_models.md.
Config read_unet(const Keys& k) {
  UNetConfig c;
  c.channels = k.integer("channels", c.channels);
  c.depth = k.integer("depth", c.depth);
  c.width = k.integer("width", c.width);
  c.groups = k.integer("groups", c.groups);
  return c;
}

Config read_vit(const Keys& k) {
  ViTConfig c;
  c.layers = k.integer("num_hidden_layers");
  c.width = k.integer("hidden_size");
  c.inner = k.integer("intermediate_size");
  c.heads = k.integer("num_attention_heads");
  c.image = k.side("image_size", 224);
  c.patch = k.side("patch_size", 16);
  c.channels = k.integer("num_channels", 3);
  c.classes = classes_of(k);
  c.qkv_bias = k.flag("qkv_bias", true);
  c.dropout = k.number("hidden_dropout_prob", 0);
  c.attention_dropout = k.number("attention_probs_dropout_prob", 0);
  c.layer_norm_eps = k.number("layer_norm_eps", c.layer_norm_eps);
  c.activation = k.activation("hidden_act", "gelu");
  return c;
}

struct Type {
  std::string_view name;
  Config (*read)(const Keys&);
};
constexpr Type kTypes[] = {{"bert", read_bert},   {"gemma", read_gemma},     {"gpt2", read_gpt2},
                           {"llama", read_llama}, {"mistral", read_mistral}, {"mixtral", read_mixtral},
                           {"qwen2", read_qwen2}, {"resnet", read_resnet},   {"t5", read_t5},
                           {"unet", read_unet},   {"vit", read_vit}};

Json parse(std::string_view text, const std::string& place) {
  Json json = parse_strict_json(text, place, "a Hugging Face config.json", {}, kLimits);
  if (!json.is_object()) refuse(place, "this is no config", "a JSON object", shown(json));
  return json;
}

}  // namespace

std::vector<std::string_view> model_types() {
  std::vector<std::string_view> names;
  for (const Type& type : kTypes) names.push_back(type.name);
  return names;
}

Config parse_config(std::string_view text, const std::string& place) {
  const Json json = parse(text, place);
  const Keys keys(json, place);
  const std::string name = keys.text("model_type", "");
  if (name.empty())
    refuse(keys.at("model_type"), "the key is missing", fmt::format("{}", fmt::join(model_types(), ", ")), {});
  for (const Type& type : kTypes) {
    if (type.name != name) continue;
    keys.expect_nothing("quantization_config");
    keys.expect_flag("output_hidden_states", false);  // they would live longer
    Config config = type.read(keys);
    try {
      check(config);
    } catch (const Error& error) {
      ErrorInfo info = error.info();
      info.place = keys.at(info.place.c_str());
      throw Error(info);
    }
    return config;
  }
  refuse(keys.at("model_type"), "native models of this type do not exist",
         fmt::format("{}", fmt::join(model_types(), ", ")), shown(Json(name)),
         "record the model with the PyTorch capture (tidemark.capture) instead");
}

Config read_config(const std::string& path) { return parse_config(read_small_file(path, kLimits.max_bytes), path); }

}  // namespace tidemark::zoo
