#include "tidemark/step/dump.h"

#include <gtest/gtest.h>

#include "../support/golden.h"
#include "../support/random_step.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/step_builder.h"

namespace tidemark::step {
namespace {

TEST(Dump, TheExampleReadsFromTopToBottom) {
  const Step step = read_step(std::string(TIDEMARK_SOURCE_DIR) + "/examples/steps/two_layer_mlp.step.jsonl");
  test::expect_golden("step/two_layer_mlp.dump.txt", dump(step));
}

TEST(Dump, EveryKindOfRecordCanBeShown) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) EXPECT_FALSE(dump(test::random_step(seed)).empty());
}

TEST(Dump, LongNamesAndListsAreCut) {
  // Without the cut, 1,000 ops that share a name of 60,000 bytes and 60,000 arguments would make 180 MB.
  StepBuilder b;
  const PassId pass = b.add_pass({PassKind::kForward, 0, 0, 0});
  const ArgsId args = b.intern_args({{b.intern("dims"), {ArgValue::List(60000, ArgValue{std::int64_t{1}})}}});
  const std::string name(60000, 'x');
  b.phase(pass);
  for (int i = 0; i < 1000; ++i) {
    const OpId op = b.add_op({.name = name,
                              .pass = pass,
                              .call = {},
                              .node = {},
                              .region = {},
                              .inputs = {},
                              .outputs = {},
                              .args = args,
                              .source = {},
                              .group = {},
                              .flags = {}});
    b.begin(op);
    b.end(op);
  }
  const std::string text = dump(std::move(b).finish());
  EXPECT_LT(text.size(), 1000000u);
  EXPECT_NE(text.find("1,1,and 59936 more]"), std::string::npos);  // 64 are shown
}

TEST(Dump, StridesShowOnlyWhenTheyMatter) {
  const Step step = read_step(std::string(TIDEMARK_SOURCE_DIR) + "/examples/steps/two_layer_mlp.step.jsonl");
  EXPECT_EQ(describe_layout(step, LayoutId(0)), "float32[16,8]");
  EXPECT_EQ(describe_layout(step, LayoutId(6)), "float32[8,16]:[1,8]");
  EXPECT_EQ(describe_layout(step, LayoutId(9)), "float32[]");
}

}  // namespace
}  // namespace tidemark::step
