// What a table of measured ops says about the ops that are not in it.

#include "tidemark/cost/measured.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "../support/tiny_program.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/catalog.h"

namespace tidemark::cost {
namespace {

using namespace step;
using testing::HasSubstr;

// Streams through exactly 1 GB/s, so that a byte takes a nanosecond, and launches for nothing.
device::Device slow_cpu() {
  device::Device device = device::find_device("cpu");
  device.bandwidth_bytes_per_s.value = 1'000'000'000;
  device.stream_permille = device::Figure{1000, device.bandwidth_bytes_per_s.source};
  device.launch_floor_ns.value = 0;
  device.measured_place = "card.json: measured: ops";
  return device;
}

// Two ops that read 1,000 bytes and write 1,000: 2 us each by the model.
Step relu_and_neg() {
  test::TinyProgram p;
  const TensorId x = p.resident(Role::kInput, 1000);
  p.pass(PassKind::kForward);
  const TensorId y = p.op("aten.relu.default", {x}, 1000);
  p.op("aten.neg.default", {y}, 1000);
  return p.finish();
}

constexpr std::int64_t kUs = 1'000'000;

// Rows of shapes that the step does not have. The launch is what the only one with next to no work took beyond that: 1
// us, where 4 ns are modelled. What is left of the others over what is modelled: 2000 / 1000 us, 3000 / 1000 us and
// 20000 / 4000 us, which are 2, 3 and 5 with the weights 1, 1 and 4: half of the weight is reached at 5. The relu has a
// row of its own name, which says 2.
std::vector<device::MeasuredOp> rows_of_other_shapes() {
  return {{"aten.mul.Tensor(a){}", 1 * kUs + 4 * kUs / 1000, 0, "stream float32 bytes4"},
          {"aten.relu.default(a){}", 2001 * kUs, 0, "stream float32 bytes1000000"},
          {"aten.exp.default(a){}", 3001 * kUs, 0, "stream float32 bytes1000000"},
          {"aten.log.default(a){}", 20001 * kUs, 0, "stream float32 bytes4000000"},
          {"mine.magic.default(a){}", kUs / 100, 0, "unpriced float32 bytes4"},
          {"aten.view.default(a){}", kUs / 10, 0, "free float32"}};
}

TEST(Measured, RowsOfOtherShapesTeachLaunchAndRate) {
  const Step step = relu_and_neg();
  device::Device device = slow_cpu();
  EXPECT_EQ(price_step(step, device).ops[1].total_ps, 2 * kUs);
  device.measured = rows_of_other_shapes();
  const StepCost cost = price_step(step, device);
  EXPECT_EQ(cost.ops[0].total_ps, 5 * kUs);   // 1 + 2 * 2
  EXPECT_EQ(cost.ops[1].total_ps, 11 * kUs);  // 1 + 5 * 2
  EXPECT_EQ(cost.ops[1].launch_ps, 1 * kUs);
  EXPECT_EQ(cost.ops[0].source, TimeSource::kModelled);
  EXPECT_EQ(cost.ops[1].source, TimeSource::kModelled);
  EXPECT_EQ(cost.all.measured_ps, 0);
  // A quarter of the weight is reached at 3, three quarters at 5: half of that is a fifth. But a CPU's times are off by
  // half without a table, and that is not done away with by few rows: one of the relu's own; of the family as much as
  // two, by weights of 1, 1 and 4, which are 6 * 6 / (1 + 1 + 16).
  EXPECT_EQ(cost.ops[0].spread_ps, 5 * kUs / 2);
  EXPECT_NEAR(static_cast<double>(cost.ops[1].spread_ps), 11e6 * 0.5 / std::sqrt(2.0), 1);
}

TEST(Measured, TwoRowsSayNothingAboutAFamily) {
  const Step step = relu_and_neg();
  device::Device device = slow_cpu();
  device.measured = rows_of_other_shapes();
  device.measured.erase(device.measured.begin() + 2);
  const StepCost cost = price_step(step, device);
  EXPECT_EQ(cost.ops[0].total_ps, 5 * kUs);
  EXPECT_EQ(cost.ops[1].total_ps, 3 * kUs);  // 1 + 2
  EXPECT_EQ(cost.ops[1].spread_ps, 3 * kUs / 2);
}

// Rows of a kilobyte say what a launch is and nothing about a rate: 2 us for most beside their own 0.1, and 8 for a
// sum. An op that is no kernel does not decide.
TEST(Measured, TinyOpsSayNothingAboutLargeOnes) {
  test::TinyProgram p;
  const TensorId x = p.resident(Role::kInput, 64'000'000);
  p.pass(PassKind::kForward);
  p.op("aten.sum.default", {x}, 0);
  const Step step = p.finish();
  device::Device device = slow_cpu();
  device.measured = {{"aten._local_scalar_dense.default(a){}", kUs / 10, 0, "stream float32 bytes4"},
                     {"aten.sum.default(a){}", 9 * kUs, 0, "stream float32 bytes1000"}};
  for (int i = 0; i < 10; ++i)
    device.measured.push_back({fmt::format("aten.mul.Tensor({}){{}}", i), 21 * kUs / 10, 0, "stream float32 bytes100"});
  const StepCost cost = price_step(step, device);
  EXPECT_EQ(cost.ops[0].total_ps, 64'008 * kUs);  // 64 MB at 1 GB/s, and what a sum takes beside its 1,000 bytes
  EXPECT_EQ(cost.ops[0].launch_ps, 8 * kUs);
  EXPECT_EQ(cost.ops[0].spread_ps, 32'004 * kUs);
}

// A table of large ops says nothing about launches: they stay what the file says, however far off the model is.
TEST(Measured, LargeOpsSayNothingAboutLaunches) {
  const Step step = relu_and_neg();
  device::Device device = slow_cpu();
  device.launch_floor_ns.value = 3000;
  device.measured = {{"aten.exp.default(a){}", 1500 * kUs, 0, "stream float32 bytes1000000"}};
  EXPECT_EQ(price_step(step, device).ops[1].total_ps, 5 * kUs);  // 3 + 2
  device.kind = device::DeviceKind::kCuda;
  EXPECT_EQ(price_step(step, device).ops[1].spread_ps, kUs / 2);  // a tenth, as without a table
}

// What was learned at 1 MB, twice what is modelled, is a guess at 64 MB, where no cache may hold it, and none at 2 MB.
TEST(Measured, FarAboveItsRowsATableIsAGuess) {
  for (const auto& [bytes, error] :
       {std::pair(std::int64_t{64'000'000}, 0.5), std::pair(std::int64_t{2'000'000}, 0.1)}) {
    test::TinyProgram p;
    const TensorId x = p.resident(Role::kInput, bytes);
    p.pass(PassKind::kForward);
    p.op("aten.relu.default", {x}, 0);
    device::Device device = slow_cpu();
    device.measured = {{"aten.mul.Tensor(a){}", 0, 0, "stream float32 bytes0"}};
    for (int i = 0; i < 25; ++i)  // as many as make a tenth of a half
      device.measured.push_back(
          {fmt::format("aten.relu.default({}){{}}", i), 2000 * kUs, 0, "stream float32 bytes1000000"});
    const StepCost cost = price_step(p.finish(), device);
    EXPECT_EQ(cost.ops[0].total_ps, 2 * bytes * kUs / 1000);
    EXPECT_NEAR(static_cast<double>(cost.ops[0].spread_ps), error * static_cast<double>(cost.ops[0].total_ps), 1);
  }
}

// What is around ops is as far off as its rows say, and so is what is around a pass; a loss is part of its forward.
TEST(Measured, WhatIsAroundOpsAndPassesHasASpread) {
  test::TinyProgram p;
  const TensorId x = p.resident(Role::kInput, 1000);
  p.pass(PassKind::kForward);
  const TensorId y = p.op("aten.relu.default", {x}, 1000);
  p.pass(PassKind::kLoss);
  p.op("aten.neg.default", {y}, 1000);
  const Step step = p.finish();
  device::Device device = slow_cpu();
  device.measured = {{op_key(step, OpId(0)), 7 * kUs, kUs},
                     {op_key(step, OpId(1)), 7 * kUs, kUs},
                     {"op overhead forward", 2 * kUs, kUs / 2},
                     {"pass overhead forward", 30 * kUs, 4 * kUs}};
  const StepCost cost = price_step(step, device);
  EXPECT_EQ(cost.ops[0].total_ps, 9 * kUs);
  EXPECT_EQ(cost.ops[0].spread_ps, 3 * kUs / 2);
  EXPECT_EQ(cost.all.time_ps, 48 * kUs);  // twice 9 and once 30
  EXPECT_EQ(cost.all.measured_ps, 48 * kUs);
  EXPECT_EQ(cost.step_ps, 48 * kUs);
  EXPECT_EQ(cost.all.low_ps, 41 * kUs);  // twice 1.5 and once 4
  EXPECT_EQ(cost.pass(PassKind::kForward).time_ps, 39 * kUs);
  EXPECT_EQ(cost.pass(PassKind::kLoss).time_ps, 9 * kUs);
}

// An optimizer goes through its parameters: two here, one of them in two ops. 7 us for each op, 5 for each parameter
// and 30 for the pass; off by 1, 2 and 4.
TEST(Measured, AnOptimizerTakesTimeForEachParameter) {
  test::TinyProgram p;
  const TensorId first = p.resident(Role::kParameter, 1000);
  const TensorId second = p.resident(Role::kParameter, 1000);
  p.pass(PassKind::kOptimizer);
  p.op("aten.relu.default", {first}, 1000);
  p.op("aten.neg.default", {first}, 1000);
  p.op("aten.neg.default", {second}, 1000);
  const Step step = p.finish();
  device::Device device = slow_cpu();
  device.measured = {{op_key(step, OpId(0)), 7 * kUs, kUs},
                     {op_key(step, OpId(1)), 7 * kUs, kUs},
                     {"pass overhead optimizer", 30 * kUs, 4 * kUs},
                     {"parameter overhead optimizer", 5 * kUs, 2 * kUs}};
  const StepCost cost = price_step(step, device);
  EXPECT_EQ(cost.ops[2].total_ps, 7 * kUs);
  EXPECT_EQ(cost.all.time_ps, (3 * 7 + 30 + 2 * 5) * kUs);
  EXPECT_EQ(cost.step_ps, cost.all.time_ps);
  EXPECT_EQ(cost.all.low_ps, cost.all.time_ps - (3 + 4 + 2 * 2) * kUs);
  device.kind = device::DeviceKind::kCuda;  // whose host has its own time
  EXPECT_EQ(price_step(step, device).all.time_ps, 3 * 7 * kUs);
}

// Rows that agree are a table of their own run: in another, all of them may be off, by 11 % at the most that was seen.
TEST(Measured, WhatWasMeasuredMayBeOffInAnotherRun) {
  const Step step = relu_and_neg();
  device::Device device = slow_cpu();
  device.measured = {{op_key(step, OpId(0)), 40 * kUs, 0}, {op_key(step, OpId(1)), 60 * kUs, 0}};
  const StepCost cost = price_step(step, device);
  EXPECT_EQ(cost.all.low_ps, 89 * kUs);
  EXPECT_EQ(cost.all.high_ps, 111 * kUs);
  const std::vector<OpId> second = {OpId(1)};
  EXPECT_EQ(total_of(cost, second).high_ps, 66'600'000);
}

// One row leaves a CPU's half open, four equal ones half of that: 2 us each by the model and four times that measured.
TEST(Measured, FewRowsSayLittle) {
  test::TinyProgram p;
  const TensorId x = p.resident(Role::kInput, 1'000'000);
  p.pass(PassKind::kForward);
  p.op("aten.relu.default", {x}, 1'000'000);
  const Step step = p.finish();
  for (const auto& [count, error] : {std::pair(1, 0.5), std::pair(4, 0.25), std::pair(64, 0.10)}) {
    device::Device device = slow_cpu();
    device.measured = {{"aten.mul.Tensor(a){}", 0, 0, "stream float32 bytes0"}};
    for (int i = 0; i < count; ++i)
      device.measured.push_back(
          {fmt::format("aten.relu.default({}){{}}", i), 4000 * kUs, 0, "stream float32 bytes1000000"});
    const StepCost cost = price_step(step, device);
    EXPECT_EQ(cost.ops[0].total_ps, 8000 * kUs);
    EXPECT_NEAR(static_cast<double>(cost.ops[0].spread_ps), error * 8e9, 2);
  }
}

// Views of a step that the table does not have take what its views took, and are as far off as those are apart.
TEST(Measured, ViewsHaveASpread) {
  test::TinyProgram p;
  const TensorId x = p.resident(Role::kInput, 1000);
  p.pass(PassKind::kForward);
  p.view(x);
  const Step step = p.finish();
  device::Device device = slow_cpu();
  device.measured = {{"aten.t.default(a){}", 2 * kUs, 0, "free float32"}};
  EXPECT_EQ(price_step(step, device).ops[0].total_ps, 2 * kUs);
  EXPECT_EQ(price_step(step, device).ops[0].spread_ps, kUs);  // half of it, with one row
}

// Adam's factors differ in each step; an exponent decides how a power is computed.
TEST(Measured, FactorsMakeNoOtherRow) {
  for (const auto& [name, is_found] : {std::pair("value", true), std::pair("exponent", false)}) {
    const auto step_with = [&](double number) {
      test::TinyProgram p;
      const TensorId x = p.resident(Role::kInput, 1000);
      p.pass(PassKind::kForward);
      p.args = p.b.intern_args({{p.b.intern(name), ArgValue{number}}});
      p.op("aten.relu.default", {x}, 1000);
      return p.finish();
    };
    device::Device device = slow_cpu();
    device.measured = {{op_key(step_with(0.25), OpId(0)), 7 * kUs, 0}};
    EXPECT_EQ(price_step(step_with(0.125), device).ops[0].source == TimeSource::kMeasured, is_found) << name;
    EXPECT_EQ(price_step(step_with(0.25), device).ops[0].source, TimeSource::kMeasured);
  }
}

// Without their work, rows teach only where the step has such an op: here none does.
TEST(Measured, RowsWithoutWorkTeachWhatTheStepShares) {
  const Step step = relu_and_neg();
  device::Device device = slow_cpu();
  device.measured = rows_of_other_shapes();
  for (device::MeasuredOp& row : device.measured) row.work.clear();
  EXPECT_EQ(price_step(step, device).ops[1].total_ps, 2 * kUs);
  device.measured.push_back({op_key(step, OpId(0)), 7 * kUs, 0});
  const StepCost cost = price_step(step, device);
  EXPECT_EQ(cost.ops[0].source, TimeSource::kMeasured);
  EXPECT_EQ(cost.ops[0].total_ps, 7 * kUs);
  EXPECT_EQ(cost.ops[1].total_ps, 2 * kUs);  // that one has too much work to say what a launch is
}

// A row of the step's own says how long its op takes, whatever words stand in it.
TEST(Measured, ARowIsBelievedBeforeTheFit) {
  const Step step = relu_and_neg();
  device::Device device = slow_cpu();
  device.measured = rows_of_other_shapes();
  device.measured.push_back({op_key(step, OpId(1)), 4 * kUs, 0, "stream float32 bytes2000"});
  EXPECT_EQ(price_step(step, device).ops[1].total_ps, 4 * kUs);
  EXPECT_EQ(price_step(step, device).ops[1].source, TimeSource::kMeasured);
}

// Where host and device are one, a view takes what views took: the middle of 100, 200 and 900 ns.
TEST(Measured, ViewsTakeWhatViewsTook) {
  test::TinyProgram p;
  const TensorId x = p.resident(Role::kInput, 1000);
  p.pass(PassKind::kForward);
  p.view(x);
  const Step step = p.finish();
  device::Device device = slow_cpu();
  device.measured = rows_of_other_shapes();
  device.measured.push_back({"aten.t.default(a){}", 9 * kUs / 10, 0, "free float32"});
  device.measured.push_back({"aten.slice.Tensor(a){}", 2 * kUs / 10, 0, "free float32"});
  EXPECT_EQ(price_step(step, device).ops[0].total_ps, 2 * kUs / 10);
  EXPECT_EQ(price_step(step, device).ops[0].source, TimeSource::kModelled);
  device.kind = device::DeviceKind::kCuda;
  EXPECT_EQ(price_step(step, device).ops[0].total_ps, 0);
}

TEST(Measured, ARowWhoseWorkCannotBeReadIsNamed) {
  const Step step = relu_and_neg();
  device::Device device = slow_cpu();
  device.measured = rows_of_other_shapes();
  device.measured[2].work = "stream float32 bytes-1";
  try {
    price_step(step, device);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[card.json: measured: ops[2]] the work of the op cannot be read"));
    EXPECT_THAT(error.what(), HasSubstr("bytes-1"));
  }
}

}  // namespace
}  // namespace tidemark::cost
