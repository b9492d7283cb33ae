#include "tidemark/step/summary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tidemark/step/read_step.h"
#include "tidemark/step/step_builder.h"

namespace tidemark::step {
namespace {

StepSummary example() {
  return summarize(read_step(std::string(TIDEMARK_SOURCE_DIR) + "/examples/steps/two_layer_mlp.step.jsonl"));
}

TEST(Summary, CountsTheExample) {
  const StepSummary s = example();
  EXPECT_EQ(s.modules, 4);  // the root and three layers
  EXPECT_EQ(s.calls, 4);
  // Forward: two linear layers of t + addmm, and relu. Loss: one op.
  // Backward: ones_like, mse_loss_backward; second layer t, mm, t, mm, t, sum, view, t; relu's; first layer without the
  // gradient of its input t, mm, t, sum, view, t. Optimizer: one add_ for each of four parameters.
  ASSERT_EQ(s.passes.size(), 4u);
  EXPECT_EQ(s.passes[0].ops, 5);
  EXPECT_EQ(s.passes[1].ops, 1);
  EXPECT_EQ(s.passes[2].ops, 2 + 8 + 1 + 6);
  EXPECT_EQ(s.passes[3].ops, 4);
  EXPECT_EQ(s.ops, 27);
  EXPECT_EQ(s.op_counts[0].name, "aten.t.default");
  EXPECT_EQ(s.op_counts[0].count, 2 + 4 + 3);
}

TEST(Summary, AddsUpBytesByRole) {
  const StepSummary s = example();
  // Floats: weights 16*8 + 4*16 = 192, biases 16 + 4 = 20; inputs 2*8 + 2*4 = 24.
  ASSERT_EQ(s.roles.size(), 4u);
  EXPECT_EQ(s.roles[0].role, Role::kParameter);
  EXPECT_EQ(s.roles[0].bytes, 4 * 212);
  EXPECT_EQ(s.roles[0].resident_bytes, 4 * 212);
  EXPECT_EQ(s.roles[1].role, Role::kInput);
  EXPECT_EQ(s.roles[1].bytes, 4 * 24);
  // The gradients of the step before, and those of this one.
  EXPECT_EQ(s.roles[2].role, Role::kGradient);
  EXPECT_EQ(s.roles[2].bytes, 2 * 4 * 212);
  EXPECT_EQ(s.roles[2].resident_bytes, 4 * 212);
  // Autograd holds relu's output (2*16 floats) and the model's (2*4); inputs and weights are not counted.
  EXPECT_EQ(s.saved_bytes, 4 * (32 + 8));
}

TEST(Summary, NamesTheLargestStorages) {
  const StepSummary s = example();
  ASSERT_EQ(s.largest.size(), 5u);
  EXPECT_EQ(s.largest[0].bytes, 512);  // 16 * 8 floats: the first weight, its old gradient, its new one
  EXPECT_EQ(s.largest[0].description, "0.weight");
  EXPECT_EQ(s.largest[2].bytes, 512);
  EXPECT_EQ(s.largest[2].description, "aten.mm.default in 0");
}

TEST(Summary, SaysWhatIsMissing) {
  const StepSummary s = summarize(StepBuilder().finish());
  EXPECT_NE(std::find(s.missing.begin(), s.missing.end(), "no backward pass is recorded"), s.missing.end());
  const StepSummary example_summary = example();
  EXPECT_NE(
      std::find(example_summary.missing.begin(), example_summary.missing.end(), "27 of 27 ops have no source line"),
      example_summary.missing.end());
}

}  // namespace
}  // namespace tidemark::step
