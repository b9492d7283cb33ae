// Every file of tests/hostile/configs is refused with the message that stands here, and cheaply. The files are written
// by make_hostile_configs.py.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "cost.h"
#include "tidemark/base/error.h"
#include "tidemark/zoo/config_file.h"

namespace tidemark::test {

namespace {

const std::string kFolder = std::string(TIDEMARK_SOURCE_DIR) + "/tests/hostile/configs";

// What the reader answers to <file>.json: "[<file>: <key>] <message>". A message that ends in "..." goes on.
struct Row {
  std::string_view file;
  std::string_view key;  // empty when there is none but the file
  std::string_view message;
};

constexpr std::string_view kNotJson =
    "the file is not valid JSON; expected a Hugging Face config.json, got something else at byte ...";
constexpr std::string_view kSize = "there is no such model; expected a whole number from 1 to 2147483648, got ...";
constexpr std::string_view kLayers = "there is no such model; expected a whole number from 1 to 10000, got ...";
constexpr std::string_view kWhole = "the value has the wrong type; expected a whole number, got ...";

// clang-format off: one file, one line, whatever its length
constexpr Row kRows[] = {
    {"heads_not_dividing", "num_attention_heads",
     "there is no such model; expected a divisor of hidden_size (32), got 3"},
    {"heads_not_dividing_gpt2", "n_head", "there is no such model; expected a divisor of n_embd (32), got 5"},
    {"heads_not_dividing_vit", "num_attention_heads",
     "there is no such model; expected a divisor of hidden_size (32), got 5"},
    {"key_heads_not_dividing", "num_key_value_heads",
     "there is no such model; expected a divisor of num_attention_heads (4), got 3"},
    {"head_odd", "head_dim",
     "there is no such model; expected an even number: rotary positions pair its elements, got 7"},
    {"head_zero", "head_dim", "there is no such model; expected a whole number from 1 on, or null, got 0"},
    {"head_wide_and_shared", "head_dim",
     "there is no such model; expected at most 256 where queries share key heads, in native models, got 320"},
    {"inner_zero", "n_inner", "there is no such model; expected a whole number from 1 on, or null, got 0"},
    {"positions_by_another_name", "max_position_embeddings",
     "native models read this under its other name; expected n_positions"},
    {"experts_by_another_name", "num_experts",
     "native models read this under its other name; expected num_local_experts"},
    {"hidden_states_kept", "output_hidden_states", "native models do not have this; expected false, got true..."},
    {"attention_both_ways", "use_bidirectional_attention",
     "native models do not have this; expected false, got true..."},
    {"heads_zero", "num_attention_heads", kSize},
    {"width_zero", "hidden_size", kSize},
    {"width_zero_t5", "d_model", kSize},
    {"vocabulary_zero", "vocab_size", kSize},
    {"vocabulary_negative", "vocab_size", kSize},
    {"layers_negative", "num_hidden_layers", kLayers},
    {"layers_zero", "n_layer", kLayers},
    {"layers_a_billion", "num_hidden_layers", kLayers},
    {"decoder_layers_negative", "num_decoder_layers", "there is no such model; expected a whole number from 1 on"},
    {"buckets_too_few", "relative_attention_num_buckets",
     "there is no such model; expected a whole number from 4 to 1048576, got 2"},
    {"distance_below_buckets", "relative_attention_max_distance",
     "there is no such model; expected a whole number from 17 to 2147483648, got 16"},
    {"patch_not_dividing", "patch_size", "there is no such model; expected a divisor of image_size (32), got 7"},
    {"image_zero", "image_size", "there is no such model; expected a whole number from 1 to 1048576, got 0"},
    {"labels_not_an_object", "id2label", "the value has the wrong type; expected an object, got [1,2]"},
    {"stages_uneven", "depths", "there is no such model; expected as many as hidden_sizes, 1 to 16, got 3"},
    {"stages_none", "depths", "there is no such model; expected as many as hidden_sizes, 1 to 16, got 0"},
    {"stages_a_number", "depths", "the value has the wrong type; expected a list of at most 1000 whole numbers, got 3"},
    {"stages_with_text", "depths", "the value has the wrong type; expected a whole number, got \"two\""},
    {"bottleneck_not_dividing", "hidden_sizes", "there is no such model; expected multiples of 4, got 18"},
    {"groups_not_dividing", "groups", "there is no such model; expected a divisor of width (64), got 7"},
    {"depth_endless", "depth", "there is no such model; expected a whole number from 1 to 16, got 63"},
    {"experts_zero", "num_local_experts", "there is no such model; expected a whole number from 1 on"},
    {"experts_chosen_too_many", "num_experts_per_tok",
     "there is no such model; expected a whole number from 1 to 4, got 5"},
    {"dropout_one", "attention_dropout", "there is no such model; expected a probability from 0 to below 1, got 1"},
    {"dropout_negative", "resid_pdrop", "there is no such model; expected a probability from 0 to below 1, got -0.1"},
    {"eps_negative", "rms_norm_eps", "there is no such model; expected a small positive number, got -1e-06"},
    {"padding_outside", "pad_token_id", "the embedding has no such row; expected a token from 0 to 63, got 64"},
    {"padding_gpt2", "pad_token_id", "the embedding has no such row; expected a token from 0 to 63, got 64"},
    {"padding_t5", "pad_token_id",
     "the decoder is given this token in place of labels that do not count; expected a token, got null"},
    {"rope_yarn", "rope_scaling: rope_type",
     "native models do not have this; expected default or linear or llama3, got \"yarn\"; try: ..."},
    {"rope_dynamic", "rope_parameters: type",
     "native models do not have this; expected default or linear or llama3, got \"dynamic\"; try: ..."},
    {"rope_a_text", "rope_scaling", "the value has the wrong type; expected an object, got \"xx\""},
    {"window_zero", "sliding_window", "there is no such window; expected a whole number from 1 on, or null, got 0"},
    {"window_negative", "sliding_window",
     "there is no such window; expected a whole number from 1 on, or null, got -5"},
    {"quantized", "quantization_config", "native models do not have this; expected none, got ..."},
    {"untied_bert", "tie_word_embeddings", "native models do not have this; expected true, got false; try: ..."},
    {"chunked_bert", "chunk_size_feed_forward", "native models do not have this; expected none, got 8; try: ..."},
    {"one_label", "num_labels",
     "one label means another loss, which native models do not have; expected 2 or more, got 1; try: ..."},
    {"many_labels", "problem_type", "native models do not have this; expected single_label_classification, got ..."},
    {"router_noise", "router_jitter_noise", "native models do not have this; expected none, got 0.1; try: ..."},
    {"router_loss", "output_router_logits", "native models do not have this; expected false, got true; try: ..."},
    {"activation_unknown", "hidden_act", "native models do not have this; expected gelu, gelu_new, ..."},
    {"cross_attention", "add_cross_attention", "native models do not have this; expected false, got true; try: ..."},
    {"layers_sliding", "layer_types",
     "native models do not have this; expected full_attention, got \"sliding_attention\"; try: ..."},
    {"proj_unknown", "feed_forward_proj", "native models do not have this; expected gated-gelu, gated-gelu_new, ..."},
    {"type_missing", "model_type", "the key is missing; expected bert, gemma, gpt2, ..."},
    {"type_unknown", "model_type", "native models of this type do not exist; expected bert, gemma, gpt2, ..."},
    {"type_a_number", "model_type", "the value has the wrong type; expected a text, got 3"},
    {"width_missing", "hidden_size", "the key is missing; expected a whole number"},
    {"width_null", "hidden_size", "the key is missing; expected a whole number"},
    {"layers_missing_t5", "num_layers", "the key is missing; expected a whole number"},
    {"layers_a_text", "num_hidden_layers", kWhole},
    {"layers_a_fraction", "num_hidden_layers", kWhole},
    {"layers_true", "num_hidden_layers", kWhole},
    {"layers_a_list", "num_hidden_layers", kWhole},
    {"tied_a_text", "tie_word_embeddings", "the value has the wrong type; expected true or false, got \"yes\""},
    {"eps_a_text", "rms_norm_eps", "the value has the wrong type; expected a number, got \"1e-6\""},
    {"size_2_to_64", "vocab_size", "the number is too large; expected a size below 2^62, got 18446744073709551615"},
    {"size_2_to_62", "vocab_size", kSize},
    {"size_nan", "", kNotJson},
    {"size_infinity", "", kNotJson},
    {"size_1e400", "", "a number is too large; expected numbers that a double can hold"},
    {"key_twice", "", "a key stands twice; expected each key once, got \"vocab_size\""},
    {"key_twice_inside", "", "a key stands twice; expected each key once, got \"0\""},
    {"nested_deep", "", "the file is nested too deeply; expected at most 32 levels"},
    {"nested_endless", "", "the file is nested too deeply; expected at most 32 levels"},
    {"not_closed", "", kNotJson},
    {"comment", "", kNotJson},
    {"empty", "", kNotJson},
    {"only_spaces", "", kNotJson},
    {"a_list", "", "this is no config; expected a JSON object, got []"},
    {"a_text", "", "this is no config; expected a JSON object, got \"llama\""},
    {"two_objects", "", kNotJson},
    {"zero_byte", "", kNotJson},
    {"text_not_utf8", "", kNotJson},
    {"surrogate_alone", "", kNotJson},
    {"byte_order_mark_16", "", kNotJson},
};
// clang-format on

std::string refusal_of(const std::string& path) {
  try {
    zoo::read_config(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HostileConfigs, AreRefusedWithTheirMessageAndCheaply) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.file);
    const std::string path = fmt::format("{}/{}.json", kFolder, row.file);
    std::string refusal;
    const Cost cost = measure([&] { refusal = refusal_of(path); });
    const std::string place = row.key.empty() ? path : fmt::format("{}: {}", path, row.key);
    if (row.message.ends_with("...")) {
      const std::string_view start = row.message.substr(0, row.message.size() - 3);
      EXPECT_THAT(refusal, testing::StartsWith(fmt::format("[{}] {}", place, start)));
    } else {
      EXPECT_EQ(refusal, fmt::format("[{}] {}", place, row.message));
    }
    expect_cheap(cost);
  }
}

TEST(HostileConfigs, AllHaveARowAndAllRowsHaveAFile) {
  std::set<std::string> rows;
  for (const Row& row : kRows) EXPECT_TRUE(rows.insert(fmt::format("{}.json", row.file)).second) << row.file;
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) files.insert(entry.path().filename());
  EXPECT_THAT(files, testing::ContainerEq(rows));
}

}  // namespace

}  // namespace tidemark::test
