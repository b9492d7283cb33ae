// What a whole step costs: which op has which price, sums, intervals, what has none.

#include "tidemark/cost/step_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "../support/tiny_program.h"
#include "tidemark/device/catalog.h"
#include "tidemark/step/op_key.h"
#include "tidemark/zoo/catalog.h"
#include "tidemark/zoo/record.h"

namespace tidemark::cost {
namespace {

using namespace step;

device::Device a100() { return device::find_device("a100-40-pcie"); }

Step small_gpt() { return zoo::record(zoo::find_model("gpt2")->config, {.batch = 1, .sequence = 64}); }

TEST(StepCost, EveryOpOfAModelHasAPrice) {
  const Step step = small_gpt();
  const StepCost cost = price_step(step, a100());
  ASSERT_EQ(cost.ops.size(), step.tables().ops.size());
  EXPECT_EQ(cost.all.unpriced_ops, 0);
  EXPECT_TRUE(cost.unpriced.empty());
  for (std::size_t i = 0; i < cost.ops.size(); ++i) {
    const Op& op = step.tables().ops[i];
    if (op.flops > 0) {
      EXPECT_GT(cost.ops[i].compute_ps, 0) << step.text(op.name);
    }
    if (op.written_bytes > 4) {  // counters of the optimizer, a float each, are the host's
      EXPECT_GT(cost.ops[i].total_ps, cost.ops[i].launch_ps) << step.text(op.name);
    }
  }
}

TEST(StepCost, TheSumIsAdditive) {
  const Step step = small_gpt();
  const StepCost cost = price_step(step, a100());
  std::int64_t sum = 0;
  for (const Time& time : cost.ops) sum += time.total_ps;
  EXPECT_EQ(cost.all.time_ps, sum);
  std::int64_t passes = 0;
  for (const Total& total : cost.passes) passes += total.time_ps;
  EXPECT_EQ(passes, sum);
  EXPECT_EQ(cost.all.measured_ps + cost.all.modelled_ps, sum);
  EXPECT_LT(cost.all.low_ps, sum);
  EXPECT_GT(cost.all.high_ps, sum);
  std::vector<OpId> all;
  for (std::uint32_t i = 0; i < cost.ops.size(); ++i) all.push_back(OpId(i));
  EXPECT_EQ(total_of(cost, all).time_ps, sum);
  EXPECT_EQ(total_of(cost, all).high_ps, cost.all.high_ps);
}

// In each pass the slower of host and device decides.
TEST(StepCost, AStepIsNoShorterThanItsHostOrItsDevice) {
  const Step step = small_gpt();
  const StepCost cost = price_step(step, a100());
  EXPECT_GE(cost.step_ps, cost.all.time_ps);
  EXPECT_GE(cost.step_ps, cost.host_ps);
  EXPECT_LE(cost.step_ps, cost.all.time_ps + cost.host_ps);
  EXPECT_EQ(std::accumulate(cost.pass_ps.begin(), cost.pass_ps.end(), std::int64_t{0}), cost.step_ps);
}

TEST(StepCost, TheSameStepCostsTheSame) {
  const Step step = small_gpt();
  EXPECT_EQ(price_step(step, a100()).ops, price_step(step, a100()).ops);
}

TEST(StepCost, OpsNobodyKnowsAreListed) {
  test::TinyProgram p;
  const TensorId x = p.resident(Role::kInput, 1000);
  p.pass(PassKind::kForward);
  const CallId call = p.enter(p.root, {x});
  const TensorId y = p.op("mine.magic.default", {x}, 1000);
  const TensorId z = p.op("mine.magic.default", {y}, 1000);
  p.exit(call, {z});
  const Step step = p.finish();
  const StepCost cost = price_step(step, a100());
  EXPECT_EQ(cost.all.time_ps, 0);
  EXPECT_EQ(cost.all.unpriced_ops, 2);
  EXPECT_GE(cost.all.high_ps, 2 * a100().launch_floor_ns.value * 1000);  // each is launched at least
  ASSERT_EQ(cost.unpriced.size(), 1u);
  EXPECT_EQ(step.text(cost.unpriced[0].name), "mine.magic.default");
  EXPECT_EQ(cost.unpriced[0].count, 2);
  EXPECT_EQ(cost.unpriced[0].bytes, 4000);  // each reads 1,000 and writes 1,000
  const std::vector<OpId> second = {OpId(1)};
  ASSERT_EQ(unpriced_of(step, cost, second).size(), 1u);
  EXPECT_EQ(unpriced_of(step, cost, second)[0].count, 1);
  EXPECT_TRUE(unpriced_of(step, cost, {}).empty());
}

// A record that does not say what an op computes and moves: shapes do.
TEST(StepCost, ShapesStandInForAmounts) {
  test::TinyProgram p;
  const TensorId x = p.resident(Role::kInput, 1000);
  p.pass(PassKind::kForward);
  const CallId call = p.enter(p.root, {x});
  const TensorId y = p.op("aten.relu.default", {x}, 1000);
  p.exit(call, {y});
  const Step step = p.finish();
  ASSERT_EQ(step.tables().ops[0].read_bytes, Op::kUnknown);
  const StepCost cost = price_step(step, a100());
  EXPECT_EQ(cost.all.unpriced_ops, 0);
  EXPECT_EQ(cost.bytes[0], 2000);
}

TEST(StepCost, AMeasuredRowReplacesTheModel) {
  const Step step = small_gpt();
  device::Device device = a100();
  const OpKinds kinds = op_kinds(step);
  const StepCost plain = price_step(step, device);
  std::size_t op = 0;
  while (plain.family[op] != Family::kMatmul) ++op;
  device.measured = {{op_key(step, OpId(static_cast<std::uint32_t>(op))), 123'456, 1'000}};
  const StepCost cost = price_step(step, device);
  for (std::size_t i = 0; i < cost.ops.size(); ++i) {
    const bool is_same = kinds.of_op[i] == kinds.of_op[op];
    EXPECT_EQ(cost.ops[i].source == TimeSource::kMeasured, is_same);
    if (is_same) {
      EXPECT_EQ(cost.ops[i].total_ps, 123'456);
    }
  }
  EXPECT_GT(cost.all.measured_ps, 0);
}

// A device whose table says that everything takes twice as long as the model: so do the ops that are not in it.
TEST(StepCost, TheRestIsFittedToTheTable) {
  const Step step = small_gpt();
  device::Device device = a100();
  device.launch_floor_ns.value = 0;
  const StepCost plain = price_step(step, device);
  const OpKinds kinds = op_kinds(step);
  std::vector<std::uint32_t> left_out;
  int matmuls = 0;
  for (std::uint32_t kind = 0; kind < kinds.first.size(); ++kind) {
    const std::size_t op = kinds.first[kind].index();
    if (plain.ops[op].source != TimeSource::kModelled) continue;
    if (plain.family[op] == Family::kMatmul && ++matmuls == 2) {
      left_out.push_back(static_cast<std::uint32_t>(op));
      continue;
    }
    device.measured.push_back({op_key(step, kinds.first[kind]), 2 * plain.ops[op].total_ps + 1, 0});
  }
  ASSERT_EQ(left_out.size(), 1u);
  ASSERT_GE(matmuls, 4);
  const StepCost cost = price_step(step, device);
  EXPECT_EQ(cost.ops[left_out[0]].source, TimeSource::kModelled);
  EXPECT_NEAR(static_cast<double>(cost.ops[left_out[0]].total_ps),
              2.0 * static_cast<double>(plain.ops[left_out[0]].total_ps),
              0.05 * static_cast<double>(plain.ops[left_out[0]].total_ps));
}

TEST(StepCost, RegionsAreMeasuredToo) {
  const Step step = small_gpt();
  device::Device device = a100();
  EXPECT_EQ(price_step(step, device).region_ps, 300'000'000);     // 300 us
  EXPECT_EQ(price_step(step, device).region_save_ps, 9'000'000);  // 9 us
  device.measured = {
      {"checkpoint region", 7'000, 0}, {"checkpoint random state", 5'000, 0}, {"checkpoint save", 2'000, 0}};
  EXPECT_EQ(price_step(step, device).region_ps, 7'000);
  EXPECT_EQ(price_step(step, device).region_save_ps, 2'000);
  EXPECT_EQ(price_step(step, device).region_rng_ps, 5'000);
}

// 1 ms give or take 0.2 in forward, which the device decides; 1 us give or take 1 in the loss, which the host decides:
// 25 us, that may be 7 or 53. The sum is 1.001 ms from 0.8 to 1.202, and the device's part of the step as far off as
// that: by 0.8 / 1.001 and 1.202 / 1.001.
TEST(StepCost, AStepHasAnInterval) {
  test::TinyProgram p;
  const TensorId x = p.resident(Role::kInput, 1000);
  p.pass(PassKind::kForward);
  const TensorId y = p.op("aten.relu.default", {x}, 1000);
  p.pass(PassKind::kLoss);
  p.op("aten.neg.default", {y}, 1000);
  const Step step = p.finish();
  device::Device device = a100();
  device.measured = {{op_key(step, OpId(0)), 1'000'000'000, 200'000'000},
                     {op_key(step, OpId(1)), 1'000'000, 1'000'000}};
  const StepCost cost = price_step(step, device);
  constexpr std::int64_t kUs = 1'000'000;
  ASSERT_EQ(cost.ops[1].host_ps, 25 * kUs);
  EXPECT_EQ(cost.all.low_ps, 800'000'000);
  EXPECT_EQ(cost.all.high_ps, 1'202'000'000);
  EXPECT_EQ(cost.step_ps, 1025 * kUs);
  EXPECT_EQ(cost.step, (Interval{799'200'799 + 7 * kUs, 1'200'799'201 + 53 * kUs}));
  EXPECT_EQ(cost.pass_interval[static_cast<std::size_t>(PassKind::kForward)], (Interval{800'000'000, 1'200'000'000}));
  EXPECT_EQ(cost.pass_interval[static_cast<std::size_t>(PassKind::kLoss)], (Interval{7 * kUs, 53 * kUs}));
}

// A step of tiny ops is as long as its host takes, which nobody measured: from 7 / 25 to 53 / 25 of what is assumed,
// unless the device takes longer than that; its views are the host's alone.
TEST(StepCost, AStepThatTheHostDecidesIsAsUnsureAsTheHost) {
  test::TinyProgram p;
  TensorId x = p.resident(Role::kInput, 1000);
  p.pass(PassKind::kForward);
  for (int i = 0; i < 100; ++i) x = p.op("aten.relu.default", {x}, 1000);
  const StepCost cost = price_step(p.finish(), a100());
  constexpr std::int64_t kUs = 1'000'000;
  EXPECT_EQ(cost.step_ps, 2500 * kUs);
  EXPECT_EQ(cost.step.high_ps, 5300 * kUs);
  // A hundred launches of 10 us, off by a tenth.
  EXPECT_NEAR(static_cast<double>(cost.step.low_ps), 900e6, 1e6);
}

// Nothing but ops without a price: the host issues them, and they take from nothing to ten times their least.
TEST(StepCost, WhatHasNoPriceIsIssuedAllTheSame) {
  test::TinyProgram p;
  const TensorId x = p.resident(Role::kInput, 1000);
  p.pass(PassKind::kForward);
  p.op("mine.magic.default", {x}, 1000);
  const StepCost cost = price_step(p.finish(), a100());
  EXPECT_EQ(cost.step_ps, 30'000'000);
  EXPECT_EQ(cost.step.low_ps, 8'400'000);     // 30 us * 7 / 25
  EXPECT_GE(cost.step.high_ps, 100'000'000);  // ten launches of 10 us
}

// Without a host beside it, a step is the sum of its ops, and so are its ends.
TEST(StepCost, OnACpuTheStepIsAsSureAsItsOps) {
  const StepCost cost = price_step(small_gpt(), device::find_device("cpu"));
  EXPECT_EQ(cost.step_ps, cost.all.time_ps);
  EXPECT_NEAR(static_cast<double>(cost.step.low_ps), static_cast<double>(cost.all.low_ps), 4);
  EXPECT_NEAR(static_cast<double>(cost.step.high_ps), static_cast<double>(cost.all.high_ps), 4);
}

// Two regions with ten saves and one random state: 2 * 300 + 10 * 9 + 70 us, off by 41 % at most, which is 311.6 us.
// Measured ones: 2 * 7 + 10 * 2 + 5 ns, and the widest of 1/7, 1/2 and 0 of that, 19.5 ns.
TEST(StepCost, RegionsHaveAnInterval) {
  const Step step = small_gpt();
  device::Device device = a100();
  const Total modelled = total_of(price_step(step, device), {}, {2, 10, 1});
  EXPECT_EQ(modelled.time_ps, 760'000'000);
  EXPECT_EQ(modelled.low_ps, 448'400'000);
  EXPECT_EQ(modelled.high_ps, 1'071'600'000);
  EXPECT_EQ(modelled.modelled_ps, 760'000'000);
  device.measured = {
      {"checkpoint region", 7'000, 1'000}, {"checkpoint random state", 5'000, 0}, {"checkpoint save", 2'000, 1'000}};
  const Total measured = total_of(price_step(step, device), {}, {2, 10, 1});
  EXPECT_EQ(measured.measured_ps, 39'000);
  EXPECT_EQ(measured.low_ps, 19'500);
  EXPECT_EQ(measured.high_ps, 58'500);
}

// On a CPU, what Python and autograd cost is part of every op, by the pass it is in.
TEST(StepCost, OverheadIsAddedToEachOp) {
  const Step step = small_gpt();
  device::Device device = device::find_device("cpu");
  device.measured = {{op_key(step, OpId(0)), 10'000, 0}};
  const StepCost before = price_step(step, device);
  device.measured.push_back({"op overhead forward", 3'000, 0});
  device.measured.push_back({"op overhead backward", 200, 0});
  device.measured.push_back({"op overhead optimizer", 10, 0});
  const StepCost after = price_step(step, device);
  EXPECT_EQ(after.ops[0].total_ps, 13'000);
  for (std::size_t i = 0; i < after.ops.size(); ++i) {
    const PassKind kind = step[step.tables().ops[i].pass].kind;
    const std::int64_t more = kind == PassKind::kBackward ? 200 : kind == PassKind::kOptimizer ? 10 : 3'000;
    EXPECT_EQ(after.ops[i].total_ps - before.ops[i].total_ps, more) << i;
  }
  EXPECT_EQ(after.all.measured_ps + after.all.modelled_ps, after.all.time_ps);
}

// Views may have an overhead of their own. Tables of older versions have none.
TEST(StepCost, OverheadOfViewsIsTheirOwn) {
  const Step step = small_gpt();
  device::Device device = device::find_device("cpu");
  device.measured = {{op_key(step, OpId(0)), 10'000, 0}};
  const StepCost before = price_step(step, device);
  device.measured.push_back({"op overhead forward", 3'000, 0});
  device.measured.push_back({"view overhead forward", 40, 0});
  const StepCost after = price_step(step, device);
  int views = 0;
  for (std::size_t i = 0; i < after.ops.size(); ++i) {
    const PassKind kind = step[step.tables().ops[i].pass].kind;
    const bool is_forward = kind != PassKind::kBackward && kind != PassKind::kOptimizer;
    const bool is_view = after.family[i] == Family::kFree;
    EXPECT_EQ(after.ops[i].total_ps - before.ops[i].total_ps, !is_forward ? 0 : is_view ? 40 : 3'000) << i;
    views += is_forward && is_view;
  }
  EXPECT_GT(views, 0);
}

// Overhead is no price: what an op does beside it is still not known.
TEST(StepCost, AnOpWithoutAPriceGetsNoneFromOverhead) {
  test::TinyProgram p;
  const TensorId x = p.resident(Role::kInput, 1000);
  p.pass(PassKind::kForward);
  const CallId call = p.enter(p.root, {x});
  p.exit(call, {p.op("mine.magic.default", {x}, 1000)});
  const Step step = p.finish();
  device::Device device = device::find_device("cpu");
  device.measured = {{"op overhead forward", 3'000, 0}};
  const StepCost cost = price_step(step, device);
  EXPECT_EQ(cost.all.unpriced_ops, 1);
  EXPECT_EQ(cost.all.time_ps, 0);
}

// On an accelerator a view is the host's work, however long a call of it was measured to take.
TEST(StepCost, AViewIsFreeOnADeviceWithAHost) {
  const Step step = small_gpt();
  device::Device device = a100();
  const StepCost plain = price_step(step, device);
  std::uint32_t view = 0;
  while (plain.ops[view].source != TimeSource::kFree) ++view;
  device.measured = {{op_key(step, OpId(view)), 10'000, 0}};
  EXPECT_EQ(price_step(step, device).ops[view].total_ps, 0);
  device.kind = device::DeviceKind::kCpu;
  EXPECT_EQ(price_step(step, device).ops[view].total_ps, 10'000);
}

TEST(Family, NamesDecide) {
  EXPECT_EQ(fact_of("aten.addmm.default").family, Family::kMatmul);
  EXPECT_EQ(fact_of("aten.bmm.default").family, Family::kBatched);
  EXPECT_EQ(fact_of("aten.convolution_backward.default").family, Family::kConvolution);
  EXPECT_EQ(fact_of("aten.add_.Tensor").family, Family::kStream);
  EXPECT_EQ(fact_of("aten.linalg_svd.default").family, Family::kUnpriced);
  EXPECT_EQ(fact_of("mine.magic.default").family, Family::kUnpriced);
}

}  // namespace
}  // namespace tidemark::cost
