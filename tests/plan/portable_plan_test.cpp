#include "tidemark/plan/portable_plan.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "../support/random_plan.h"
#include "../support/random_training.h"
#include "../support/tiny_program.h"
#include "tidemark/base/error.h"
#include "tidemark/plan/plan_file.h"

namespace tidemark::plan {
namespace {

// Two calls of one block, in two micro-batches. The block runs mm, then changes its buffer, then mm; the input of the
// second mm is the last tensor saved, so that a recompute with early stop gets to two of the three ops.
struct Example {
  test::TinyProgram p;
  step::ModuleId block = p.module(p.root, "block", "Block");
  step::TensorId buffer = p.resident(step::Role::kBuffer, 4);
  std::vector<step::CallId> calls;
  std::vector<step::OpId> last;

  step::Step make() {
    p.b.add_binding({.module = block,
                     .name = p.b.intern("count"),
                     .tensor = buffer,
                     .kind = step::BindingKind::kBuffer,
                     .trainable = false});
    const step::TensorId x = p.resident(step::Role::kInput, 10);
    for (std::uint32_t i = 0; i < 2; ++i) {
      p.pass(step::PassKind::kForward, i);
      calls.push_back(p.enter(block, {x}));
      const step::TensorId a = p.op("aten.mm.default", {x}, 20);
      buffer = p.change(buffer);
      const step::SaveId save = p.pack(a);
      const step::TensorId c = p.op("aten.mm.default", {a}, 30);
      last.push_back(p.last_op());
      p.exit(calls.back(), {c});
      p.pass(step::PassKind::kBackward, i);
      p.backward({save}, 5);
    }
    return p.finish();
  }
};

TEST(PortablePlan, SaysWhatApplyingNeeds) {
  Example example;
  const step::Step step = example.make();
  const Plan plan{{Unit{.call = example.calls[0], .saved_ops = {}},
                   Unit{.call = example.calls[1], .saved_ops = {example.last[1]}, .early_stop = false}}};
  const PortablePlan words = describe(step, plan, {});
  ASSERT_EQ(words.bodies.size(), 1u);  // both calls run the same
  EXPECT_EQ(words.bodies[0].ops.size(), 3u);
  EXPECT_EQ(words.bodies[0].inputs, (std::vector<Shape>{{"uint8", {10}}}));
  ASSERT_EQ(words.units.size(), 2u);
  EXPECT_EQ(words.units[0].micro_batch, 0u);
  EXPECT_EQ(words.units[1].micro_batch, 1u);
  EXPECT_EQ(words.units[0].reach, 2u);
  EXPECT_EQ(words.units[1].reach, 3u);  // without early stop, all
  EXPECT_EQ(words.units[1].saved, (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(words.units[0].buffers, (std::vector<std::string>{"block.count"}));
  EXPECT_EQ(words.calls, (std::vector<CallCounts>{{"block", {1, 1}}}));
  EXPECT_EQ(find_in(step, words, "the plan"), plan);
}

// Pseudo labels before, an evaluation after the optimizer: a call of the block without gradients each. The plan's unit
// is the first call that counts, the optimizer's step is the last, and there is one micro-batch.
TEST(PortablePlan, DoesNotCountCallsWithoutGradients) {
  test::TinyProgram p;
  const step::ModuleId block = p.module(p.root, "block", "Block");
  const step::TensorId x = p.resident(step::Role::kInput, 10);
  const auto call = [&](bool has_gradients) {
    const step::CallId id = p.enter(block, {x});
    const step::TensorId y = p.op("aten.mm.default", {x}, 20);
    std::optional<step::SaveId> save;
    if (has_gradients) save = p.pack(y);
    p.exit(id, {y});
    return std::pair(id, save);
  };
  p.pass(step::PassKind::kForward);
  call(false);
  const auto [unit, save] = call(true);
  p.pass(step::PassKind::kBackward);
  p.backward({*save}, 5);
  p.pass(step::PassKind::kOptimizer);
  p.pass(step::PassKind::kForward, 1);
  call(false);
  const step::Step step = p.finish();
  const Plan plan{{Unit{.call = unit, .saved_ops = {}}}};
  const PortablePlan words = describe(step, plan, {});
  EXPECT_EQ(words.calls, (std::vector<CallCounts>{{"block", {1}}}));
  EXPECT_EQ(words.units[0].call, 0u);
  EXPECT_TRUE(words.early_steps.empty());
  EXPECT_EQ(find_in(step, words, "the plan"), plan);
}

// Of two calls of the model, the largest of each size; a file that does not say is of the step all the same.
TEST(PortablePlan, KnowsWhatTheModelIsGiven) {
  test::TinyProgram p;
  for (std::uint32_t i = 0; i < 2; ++i) {
    const step::TensorId x = p.resident(step::Role::kInput, 10 + i);
    p.pass(step::PassKind::kForward, i);
    const step::CallId call = p.enter(p.root, {x});
    p.pack(x);
    p.exit(call, {});
  }
  const step::Step step = p.finish();
  PortablePlan words = describe(step, {}, {});
  EXPECT_EQ(words.inputs, (std::vector<Shape>{{"uint8", {11}}}));
  EXPECT_EQ(read_portable_plan_text(write_plan(words), "the plan"), words);
  words.inputs.clear();
  EXPECT_EQ(find_in(step, words, "the plan"), Plan{});
  words.inputs = {{"uint8", {12}}};
  EXPECT_THROW(find_in(step, words, "the plan"), Error);
}

// Of the optimizer steps after micro-batches 0, 1 and 2, the last ends the step; the others are its own.
TEST(PortablePlan, KnowsOptimizersThatStepInBetween) {
  for (const std::uint32_t first : {0u, 2u}) {
    test::TinyProgram p;
    for (std::uint32_t i = 0; i < 3; ++i) {
      p.pass(step::PassKind::kForward, i);
      p.pass(step::PassKind::kBackward, i);
      if (i >= first) p.pass(step::PassKind::kOptimizer, i);
    }
    const step::Step step = p.finish();
    PortablePlan words = describe(step, {}, {});
    EXPECT_EQ(words.early_steps, first == 0 ? std::vector<std::uint32_t>({0, 1}) : std::vector<std::uint32_t>());
    EXPECT_EQ(read_portable_plan_text(write_plan(words), "the plan"), words);
    words.early_steps = {1};
    EXPECT_THROW(find_in(step, words, "the plan"), Error);
  }
}

TEST(PortablePlan, NamesModulesUnderCheckpointsOfTheModelsOwn) {
  Example example;
  for (const step::RegionKind kind :
       {step::RegionKind::kNoGrad, step::RegionKind::kCheckpoint, step::RegionKind::kCheckpoint}) {
    example.p.pass(step::PassKind::kForward);
    const step::CallId call = example.p.enter(example.block, {});
    example.p.b.add_region({.kind = kind, .parent = {}, .call = call, .args = {}, .held = {}});
    example.p.exit(call, {});
  }
  const step::Step step = example.p.finish();
  PortablePlan words = describe(step, {}, {});
  EXPECT_EQ(words.checkpointed, std::vector<std::string>{"block"});
  EXPECT_EQ(read_portable_plan_text(write_plan(words), "the plan"), words);
  words.checkpointed.clear();
  EXPECT_THROW(find_in(step, words, "the plan"), Error);
}

TEST(PortablePlan, IsFoundAgainInItsStepOnly) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const step::Step step = test::random_training(seed).step;
    const Plan plan = test::random_plan(step, seed);
    const PortablePlan words = describe(step, plan, {});
    EXPECT_EQ(find_in(step, words, "the plan"), plan) << seed;
    EXPECT_EQ(read_portable_plan_text(write_plan(words), "the plan"), words) << seed;
    EXPECT_EQ(hash_of(words), hash_of(describe(step, plan, {}))) << seed;
    const step::Step other = test::random_training(seed + 1000).step;
    EXPECT_THROW(find_in(other, words, "the plan"), Error) << seed;
  }
}

// Whatever it claims about the step that is not so is refused, whoever wrote it.
TEST(PortablePlan, DoesNotLie) {
  Example example;
  const step::Step step = example.make();
  const PortablePlan good = describe(step, {{Unit{.call = example.calls[0], .saved_ops = {}}}}, {});
  const auto lies = [&](auto change) {
    PortablePlan bad = good;
    change(bad);
    EXPECT_THROW(find_in(step, bad, "the plan"), Error);
  };
  lies([](PortablePlan& p) { p.units[0].module = "other"; });
  lies([](PortablePlan& p) { p.units[0].call = 7; });
  lies([](PortablePlan& p) { p.units[0].saved = {3}; });
  lies([](PortablePlan& p) { p.units[0].reach = 3; });
  lies([](PortablePlan& p) { p.units[0].buffers.clear(); });
  lies([](PortablePlan& p) { p.bodies[0].ops[0] = "aten.add.Tensor"; });
  lies([](PortablePlan& p) { p.bodies[0].inputs.clear(); });
  lies([](PortablePlan& p) { p.modules.pop_back(); });
  lies([](PortablePlan& p) { p.calls[0].by_micro_batch[0] = 2; });
}

}  // namespace
}  // namespace tidemark::plan
