// Native steps of built-in models.

#include "tidemark/zoo/record.h"

#include <gtest/gtest.h>

#include <set>

#include "tidemark/base/error.h"
#include "tidemark/memory/replay.h"
#include "tidemark/step/fingerprint.h"

namespace tidemark::zoo {
namespace {

TEST(Catalog, HasAtLeastFortyNames) {
  std::set<std::string_view> names;
  for (const Entry& entry : models()) EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
  EXPECT_GE(names.size(), 40u);
}

// https://huggingface.co/openai-community/gpt2: 50257 x 768 + 1024 x 768 for the embeddings, 12 blocks of
// 12 x 768 x 768 + 13 x 768, and the last norm's 2 x 768.
TEST(Catalog, CountsParametersExactly) {
  constexpr std::int64_t d = 768;
  const std::int64_t expected = 50257 * d + 1024 * d + 12 * (12 * d * d + 13 * d) + 2 * d;
  EXPECT_EQ(expected, 124'439'808);
  EXPECT_EQ(facts_of(find_model("gpt2")->config).parameters, expected);
  EXPECT_EQ(facts_of(find_model("llama3.1-405b")->config).parameters, 405'853'388'800);
  EXPECT_EQ(facts_of(find_model("resnet50")->config).parameters, 25'557'032);
}

TEST(Catalog, SuggestsTheNearestName) {
  EXPECT_EQ(nearest_model("llama3-8B"), "llama3-8b");
  EXPECT_EQ(nearest_model("something else entirely"), "");
}

TEST(Record, IsTheSameEveryTime) {
  const Config config = ToyGptConfig{};
  EXPECT_EQ(record(config, {}), record(config, {}));
}

TEST(Record, RefusesOptionsThatAModelCannotTake) {
  const Config gpt2 = find_model("gpt2")->config;
  EXPECT_THROW(record(gpt2, {.batch = 0}), Error);
  EXPECT_THROW(record(gpt2, {.sequence = 1025}), Error);
  EXPECT_THROW(record(gpt2, {.sequence = -1}), Error);
  EXPECT_THROW(record(find_model("vit-b-16")->config, {.image = 225}), Error);
}

// Every family replays, and its parameters are there from the start.
TEST(Record, ReplaysForEveryFamily) {
  for (const char* name : {"distilgpt2", "bert-base", "vit-ti-16", "resnet18", "toy-gpt"}) {
    const Config config = find_model(name)->config;
    const step::Step step = record(config, {.sequence = takes_images(config) ? 0 : 16});
    const memory::Timeline timeline = memory::replay(step, {}, {});
    EXPECT_GE(timeline.peak.total_bytes, 4 * facts_of(config).step_parameters * 4) << name;  // with gradients and Adam
  }
}

}  // namespace
}  // namespace tidemark::zoo
