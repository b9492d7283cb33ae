// Hugging Face configs: what is read, and what is refused in one sentence.

#include "tidemark/zoo/config_file.h"

#include <gtest/gtest.h>

#include "tidemark/base/error.h"
#include "tidemark/zoo/record.h"

namespace tidemark::zoo {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_config(text, "config.json");
  } catch (const Error& error) {
    EXPECT_TRUE(error.info().kind == ErrorKind::kInput || error.info().kind == ErrorKind::kLimit) << error.what();
    return error.what();
  }
  return {};
}

constexpr const char* kSmall =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48,
        "num_attention_heads": 4, "vocab_size": 64})";

TEST(ConfigFile, ReadsALlama) {
  const auto config = std::get<LlamaConfig>(parse_config(kSmall, "config.json"));
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.kv_heads, 4);  // as many as heads, when it is not said
  EXPECT_EQ(config.head_width(), 8);
}

TEST(ConfigFile, NamesFileAndKey) {
  EXPECT_EQ(refusal(R"({"model_type": "gpt2", "n_layer": "two"})"),
            "[config.json: n_layer] the value has the wrong type; expected a whole number, got \"two\"");
  EXPECT_EQ(refusal(R"({"model_type": "gpt2"})"), "[config.json: n_layer] the key is missing; expected a whole number");
}

TEST(ConfigFile, NamesTheTypesThatItKnows) {
  const std::string text = refusal(R"({"model_type": "perceptron"})");
  for (const std::string_view type : model_types()) EXPECT_NE(text.find(type), text.npos) << type;
  EXPECT_NE(text.find("\"perceptron\""), text.npos);
}

TEST(ConfigFile, RefusesWhatIsNoConfig) {
  for (const char* text : {"", "[]", "{", "null", "3", "\"llama\"", "{\"model_type\": 3}", "{}", "\xff\xfe",
                           R"({"model_type": "vit", "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 8,
                               "num_attention_heads": 1, "id2label": 3})"})
    EXPECT_FALSE(refusal(text).empty()) << text;
  EXPECT_FALSE(refusal(std::string(100, '[')).empty());
  EXPECT_FALSE(refusal(std::string(2 << 20, ' ')).empty());
}

TEST(ConfigFile, RefusesSizesThatNoModelHas) {
  const auto changed = [](const char* from, const char* to) {
    std::string text = kSmall;
    return text.replace(text.find(from), std::string_view(from).size(), to);
  };
  EXPECT_NE(refusal(changed("\"num_attention_heads\": 4", "\"num_attention_heads\": 3")).find("divisor"),
            std::string::npos);
  EXPECT_NE(refusal(changed("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 0")).find("num_hidden_layers"),
            std::string::npos);
  EXPECT_NE(refusal(changed("\"num_hidden_layers\": 2", "\"num_hidden_layers\": -1")).find("num_hidden_layers"),
            std::string::npos);
  EXPECT_NE(refusal(changed("\"vocab_size\": 64", "\"vocab_size\": 18446744073709551615")).find("too large"),
            std::string::npos);
}

TEST(ConfigFile, RefusesAProductThatOverflows) {
  LlamaConfig config;
  config.width = std::int64_t{1} << 31;
  config.vocabulary = std::int64_t{1} << 31;
  config.heads = config.kv_heads = 1;
  EXPECT_THROW(record(config, {}), Error);
}

}  // namespace
}  // namespace tidemark::zoo
