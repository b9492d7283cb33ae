#include "tidemark/step/step_builder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../support/small_step.h"
#include "tidemark/base/error.h"
#include "tidemark/step/write_step.h"

namespace tidemark::step {
namespace {

TEST(StepBuilder, EqualStringsLayoutsAndArgumentsShareAnId) {
  StepBuilder b;
  EXPECT_EQ(b.intern("a"), b.intern("a"));
  EXPECT_NE(b.intern("a"), b.intern("b"));
  const std::int64_t sizes[] = {2, 3};
  const std::int64_t rows[] = {3, 1};
  const std::int64_t columns[] = {1, 2};
  EXPECT_EQ(b.intern_layout(DType::kFloat32, sizes, rows), b.intern_layout(DType::kFloat32, sizes, rows));
  EXPECT_NE(b.intern_layout(DType::kFloat32, sizes, rows), b.intern_layout(DType::kFloat32, sizes, columns));
  EXPECT_NE(b.intern_layout(DType::kFloat32, sizes, rows), b.intern_layout(DType::kInt32, sizes, rows));
  const StringId p = b.intern("p");
  const auto args = [&](ArgValue value) { return b.intern_args({{p, std::move(value)}}); };
  EXPECT_EQ(args({0.5}), args({0.5}));
  EXPECT_NE(args({1.0}), args({std::int64_t{1}}));
  EXPECT_NE(args({0.0}), args({-0.0}));
  EXPECT_NE(args({true}), args({std::int64_t{1}}));
  EXPECT_EQ(args({std::nan("")}), args({std::nan("")}));
  EXPECT_NE(args({ArgValue::List{{std::int64_t{1}}, {std::int64_t{2}}}}), args({ArgValue::List{{std::int64_t{12}}}}));
  EXPECT_TRUE(b.intern_args({}).is_none());
}

TEST(StepBuilder, SizesAndStridesMustPair) {
  StepBuilder b;
  const std::int64_t two[] = {2, 3};
  const std::int64_t one[] = {1};
  EXPECT_THROW(b.intern_layout(DType::kFloat32, two, one), Error);
  const std::vector<std::int64_t> many(65, 1);
  EXPECT_THROW(b.add_layout(DType::kFloat32, many, many), Error);
}

TEST(StepBuilder, AnInputWithoutMeaningIsNotKept) {
  test::SmallStep s;
  const Output outputs[] = {{s.made, AliasKind::kFresh, 5}};
  const OpId op = s.b.add_op({.name = "x",
                              .pass = s.forward,
                              .call = {},
                              .node = {},
                              .region = {},
                              .inputs = {},
                              .outputs = outputs,
                              .args = {},
                              .source = {},
                              .group = {},
                              .flags = {}});
  const StepTables& t = s.b.tables();
  EXPECT_EQ(t.output_pool[t.ops[op.index()].outputs.begin].input, 0u);
}

TEST(StepBuilder, SectionsOfOthersMustReadBack) {
  for (const ExtraSection& bad :
       {ExtraSection{"", {}}, ExtraSection{"ops", {}}, ExtraSection{"end", {}}, ExtraSection{"x", {"1\n2"}},
        ExtraSection{"x", {"{bad"}}, ExtraSection{"x", {""}}, ExtraSection{"x", {"1e400"}},
        ExtraSection{"x", {std::string(20, '[') + std::string(20, ']')}}})
    EXPECT_THROW(StepBuilder().add_extra(bad), Error) << bad.name;
  StepBuilder b;
  b.add_extra({"x", {"1"}});
  EXPECT_THROW(b.add_extra({"x", {"2"}}), Error);
}

TEST(Step, FullyQualifiedNamesFollowTheParents) {
  test::SmallStep s;
  const ModuleId layers = s.b.add_module({s.root, s.b.intern("layers"), s.b.intern("ModuleList")});
  const ModuleId first = s.b.add_module({layers, s.b.intern("0"), s.b.intern("Block")});
  s.add_events();
  const Step step = std::move(s.b).finish();
  EXPECT_EQ(step.fqn(s.root), "");
  EXPECT_EQ(step.fqn(layers), "layers");
  EXPECT_EQ(step.fqn(first), "layers.0");
}

TEST(Step, AnEmptyStepIsAStep) {
  const Step step = StepBuilder().finish();
  EXPECT_EQ(step.tables().ops.size(), 0u);
  EXPECT_EQ(step_text(step).substr(0, 36), "{\"tidemark\":\"step\",\"version\":[1,0]}\n");
}

// The stride of a dimension with one element means nothing: fake and real tensors often differ there.
TEST(StepBuilder, StridesOfSingleElementsArePlain) {
  StepBuilder b;
  const std::vector<std::int64_t> sizes = {2, 1, 16, 16};
  const LayoutId plain = b.intern_layout(DType::kFloat32, sizes, std::vector<std::int64_t>{256, 256, 16, 1});
  EXPECT_EQ(b.intern_layout(DType::kFloat32, sizes, std::vector<std::int64_t>{256, 16, 16, 1}), plain);
  EXPECT_EQ(b.intern_layout(DType::kFloat32, sizes, std::vector<std::int64_t>{256, 0, 16, 1}), plain);
  EXPECT_NE(b.intern_layout(DType::kFloat32, sizes, std::vector<std::int64_t>{256, 256, 1, 16}), plain);
  // One pixel, channels last or first.
  const std::vector<std::int64_t> pixel = {2, 8, 1, 1};
  EXPECT_EQ(b.intern_layout(DType::kFloat32, pixel, std::vector<std::int64_t>{8, 1, 8, 8}),
            b.intern_layout(DType::kFloat32, pixel, std::vector<std::int64_t>{8, 1, 1, 1}));
}

}  // namespace
}  // namespace tidemark::step
