#include "tidemark/step/dump.h"

#include <gtest/gtest.h>

#include "../support/golden.h"
#include "../support/random_step.h"
#include "tidemark/step/read_step.h"

namespace tidemark::step {
namespace {

TEST(Dump, TheExampleReadsFromTopToBottom) {
  const Step step = read_step(std::string(TIDEMARK_SOURCE_DIR) + "/examples/steps/two_layer_mlp.step.jsonl");
  test::expect_golden("step/two_layer_mlp.dump.txt", dump(step));
}

TEST(Dump, EveryKindOfRecordCanBeShown) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) EXPECT_FALSE(dump(test::random_step(seed)).empty());
}

TEST(Dump, StridesShowOnlyWhenTheyMatter) {
  const Step step = read_step(std::string(TIDEMARK_SOURCE_DIR) + "/examples/steps/two_layer_mlp.step.jsonl");
  EXPECT_EQ(describe_layout(step, LayoutId(0)), "float32[16,8]");
  EXPECT_EQ(describe_layout(step, LayoutId(6)), "float32[8,16]:[1,8]");
  EXPECT_EQ(describe_layout(step, LayoutId(9)), "float32[]");
}

}  // namespace
}  // namespace tidemark::step
