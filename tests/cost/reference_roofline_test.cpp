#include "tidemark/cost/reference_roofline.h"

#include <gtest/gtest.h>

#include <map>

#include "../support/published_gpt.h"
#include "tidemark/base/error.h"
#include "tidemark/device/catalog.h"
#include "tidemark/step/op_name.h"
#include "tidemark/zoo/catalog.h"
#include "tidemark/zoo/record.h"

namespace tidemark::cost {
namespace {

// PyTorch's own regression test: a product of two 64 x 64 matrices at 1000 TFLOPS.
TEST(ReferenceRoofline, CountsAMultiplyAddOnce) {
  EXPECT_NEAR(reference_compute_ns(2.0 * 64 * 64 * 64, {1000, 0.75}), 0.34953, 1e-5);
}

TEST(ReferenceRoofline, KnowsTheFamilyOfAnOp) {
  EXPECT_EQ(step::op_family("aten.addmm.default"), "addmm");
  EXPECT_EQ(step::op_family("aten._unsafe_view.default"), "_unsafe_view");
  EXPECT_EQ(step::op_family("addmm"), "addmm");
}

// Published for one block of the toy GPT on an A100 with 19.49184 TFLOPS and 1935.36 GB/s, in ms. By hand for w1: its
// product has 2 x 8192 x 768 x 3072 FLOPs, half of it at 0.75 x 19.49184e12 a second is 1.32208 ms.
TEST(ReferenceRoofline, GivesThePublishedTimesOfABlock) {
  const step::Step step = test::published_gpt_step();
  const auto times = reference_times_ms(step, find_reference_hardware(ReferenceLine::kM, "a100-80-pcie"));
  std::map<std::string, std::vector<double>> by_op;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const step::Op& op = step.tables().ops[i];
    if (step[op.pass].kind != step::PassKind::kForward || op.call.is_none()) continue;
    if (!step.fqn(step[op.call].module).starts_with("layers.0")) continue;
    if (times[i] > 0) by_op[std::string(step::op_family(step.text(op.name)))].push_back(times[i]);
  }
  const std::map<std::string, std::vector<double>> published = {
      {"native_layer_norm", {0.02604, 0.02604}},
      {"mm", {0.33052, 0.33052, 0.33052, 0.33052}},
      {"_scaled_dot_product_efficient_attention", {0.88139}},
      {"native_dropout", {0.02926, 0.02926}},
      {"add", {0.03901, 0.03901}},
      {"addmm", {1.32208, 1.32208}},
      {"gelu", {0.10403}},  // reads and writes 100,663,296 B
  };
  for (const auto& [name, expected] : published) {
    ASSERT_EQ(by_op[name].size(), expected.size()) << name;
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(by_op[name][i], expected[i], 1e-5) << name;
  }
}

// On 1935.36 GB/s: 1000 B are two blocks of 512 in line m, as they are elsewhere.
TEST(ReferenceRoofline, TimesOneOpWithoutAStep) {
  const ReferenceHardware m = find_reference_hardware(ReferenceLine::kM, "a100-80-pcie");
  const ReferenceTensor tensors[] = {{1000, 1000}, {1000, 500}};
  EXPECT_DOUBLE_EQ(reference_op_ms({.family = "add", .tensors = tensors, .flops = 0, .dtype = {}}, m),
                   2048 / 1935.36 / 1e6);
  EXPECT_EQ(reference_op_ms({.family = "view", .tensors = tensors, .flops = 0, .dtype = {}}, m), 0);
  const ReferenceWork product = {.family = "mm", .tensors = tensors, .flops = 2e9, .dtype = step::DType::kFloat32};
  EXPECT_DOUBLE_EQ(reference_op_ms(product, m), 1e9 / (0.75 * 19.49184e12) * 1e3);
  const ReferenceHardware n = find_reference_hardware(ReferenceLine::kN, "a100-80-sxm");
  EXPECT_DOUBLE_EQ(reference_op_ms({.family = "add", .tensors = tensors, .flops = 0, .dtype = {}}, n),
                   1500 / 2039.0 / 1e6);
  EXPECT_THROW(reference_op_ms({.family = "mm", .tensors = tensors, .flops = 1, .dtype = step::DType::kFloat64}, m),
               Error);
}

// A device that is in no table: 2 TFLOP/s and 100 GB/s, of which line b takes 55 %, as of an A100: its
// rule for what it does not know, whatever was measured.
TEST(ReferenceRoofline, TakesTheFiguresOfAnyDevice) {
  device::Device mine = device::find_device("t4");
  mine.bandwidth_bytes_per_s.value = 100'000'000'000;
  mine.peak_flops = {};
  mine.achieved_permille = {};
  mine.peak_flops[static_cast<std::size_t>(device::Precision::kFloat32)] = {2'000'000'000'000, "t4"};
  mine.achieved_permille[static_cast<std::size_t>(device::Precision::kFloat32)] = {600, "t4"};
  const ReferenceHardware m = reference_hardware_of(ReferenceLine::kM, mine);
  EXPECT_DOUBLE_EQ(m.bandwidth_gb_per_s, 100);
  EXPECT_DOUBLE_EQ(reference_compute_ns(3e9, *m.float32), 1e6);  // 3e9 / 2 / (0.75 * 2e12) s
  EXPECT_DOUBLE_EQ(reference_compute_ns(3.3e9, *reference_hardware_of(ReferenceLine::kB, mine).float32), 1.5e6);
  EXPECT_FALSE(m.half.has_value());
}

// Line b lists the h100-sxm; h100 is one of its aliases.
TEST(ReferenceRoofline, KnowsDevicesByTheirAliases) {
  const step::Step step = zoo::record(zoo::find_model("toy-gpt")->config, {.batch = 1});
  const auto listed = reference_times_ms(step, find_reference_hardware(ReferenceLine::kB, "h100-sxm"));
  EXPECT_EQ(reference_times_ms(step, ReferenceLine::kB, "h100"), listed);
  EXPECT_NE(reference_times_ms(step, ReferenceLine::kB, "a100"), listed);
  EXPECT_THROW(reference_times_ms(step, ReferenceLine::kB, "h1000"), Error);
}

TEST(ReferenceRoofline, NamesTheDevicesItKnows) {
  try {
    find_reference_hardware(ReferenceLine::kM, "h100-sxm");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "[device] reference-m has no such device; expected a100-80-pcie, m60, got \"h100-sxm\"; try: take one of "
              "these, or the model without a name for any device");
  }
}

}  // namespace
}  // namespace tidemark::cost
