// Which price each op of a step has, and why: factors of products, what the host does, collectives, what has none.

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "../support/tiny_program.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/op_time.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/catalog.h"
#include "tidemark/ops/row.h"
#include "tidemark/step/dtype.h"
#include "tidemark/zoo/catalog.h"
#include "tidemark/zoo/record.h"

namespace tidemark::cost {
namespace {

using namespace step;
using device::Precision;

device::Device h100() { return device::find_device("h100-sxm"); }

// A step of single ops on tensors that have shapes.
struct Shaped {
  test::TinyProgram p;

  Shaped() {
    p.device = "cuda";
    p.pass(PassKind::kForward);
  }

  TensorId make(DType dtype, const std::vector<std::int64_t>& sizes, Role role = Role::kInput) {
    std::vector<std::int64_t> strides(sizes.size(), 1);
    for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
    const std::int64_t count = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
    const StorageId storage = p.b.add_storage({count * item_bytes(dtype), p.b.intern(p.device), role, {}});
    return p.b.add_tensor({storage, 0, p.b.add_layout(dtype, sizes, strides), 0, false});
  }

  // Makes a tensor; what it computes is not recorded.
  void run(std::string_view name, const std::vector<TensorId>& inputs, DType dtype,
           const std::vector<std::int64_t>& sizes) {
    p.run(name, inputs, {{make(dtype, sizes, Role::kPlain), AliasKind::kFresh, 0}});
  }

  Work work(std::size_t at = 0) {
    const Step step = p.finish();
    return work_of(step, step.tables().ops[at], facts_of(step));
  }
};

// The tokens of all experts, 512 rows of 64, by eight matrices of 64 x 32; the offsets come last and are int32.
TEST(PricedOps, AGroupedProductRunsAtTheRateOfItsFactors) {
  Shaped s;
  s.run("aten._grouped_mm.default",
        {s.make(DType::kBFloat16, {512, 64}), s.make(DType::kBFloat16, {8, 64, 32}), s.make(DType::kInt32, {8})},
        DType::kBFloat16, {512, 32});
  const Work work = s.work();
  EXPECT_EQ(work.family, Family::kMatmul);
  EXPECT_EQ(work.precision, Precision::kBFloat16);
  EXPECT_EQ(work.item_bytes, 2);
  EXPECT_EQ(work.flops, 2 * 512 * 64 * 32);  // each row with the matrix of its group
  EXPECT_EQ(work.m, 512);
}

// Its gradient for the weights: rows of a group are what is summed over, 512 in all.
TEST(PricedOps, GroupsOfASumShareIt) {
  Shaped s;
  s.run("aten._grouped_mm.default",
        {s.make(DType::kBFloat16, {64, 512}), s.make(DType::kBFloat16, {512, 32}), s.make(DType::kInt32, {8})},
        DType::kBFloat16, {8, 64, 32});
  EXPECT_EQ(s.work().flops, 2 * 64 * 512 * 32);
}

TEST(PricedOps, AScaledProductRunsInEightBits) {
  Shaped s;
  s.run("aten._scaled_mm.default",
        {s.make(DType::kFloat8E4M3Fn, {128, 64}), s.make(DType::kFloat8E4M3Fn, {64, 32}), s.make(DType::kFloat32, {}),
         s.make(DType::kFloat32, {})},
        DType::kBFloat16, {128, 32});
  const Work work = s.work();
  EXPECT_EQ(work.precision, Precision::kFloat8);
  EXPECT_EQ(work.flops, 2 * 128 * 64 * 32);
}

TEST(PricedOps, ProductsOfIntegersAndSumsOfBatchesHaveTheirFlops) {
  Shaped s;
  s.run("aten._int_mm.default", {s.make(DType::kInt8, {128, 64}), s.make(DType::kInt8, {64, 32})}, DType::kInt32,
        {128, 32});
  s.run("aten.addbmm.default",
        {s.make(DType::kFloat32, {16, 8}), s.make(DType::kFloat32, {10, 16, 4}), s.make(DType::kFloat32, {10, 4, 8})},
        DType::kFloat32, {16, 8});
  const Step step = s.p.finish();
  const Work integers = work_of(step, step.tables().ops[0], facts_of(step));
  EXPECT_EQ(integers.precision, Precision::kInt8);
  EXPECT_EQ(integers.flops, 2 * 128 * 64 * 32);
  const Work batches = work_of(step, step.tables().ops[1], facts_of(step));
  EXPECT_EQ(batches.family, Family::kBatched);
  EXPECT_EQ(batches.flops, 2 * 10 * 16 * 4 * 8);
}

TEST(PricedOps, WhatHasNoModelIsListed) {
  for (const char* name :
       {"aten.cholesky_solve.default", "aten.cholesky_inverse.default", "aten.ormqr.default",
        "aten._euclidean_dist.default", "aten.sort.default", "aten.topk.default", "aten._fft_c2c.default",
        "aten.linalg_svd.default", "aten.multinomial.default", "aten.some_new_op.default", "mine.magic.default"})
    EXPECT_EQ(fact_of(name).family, Family::kUnpriced) << name;
  for (const char* name : {"aten.cumsum.default", "aten._foreach_add_.Scalar", "aten.mul_.Tensor",
                           "aten.gather.default", "aten.linalg_vector_norm.default", "aten.view_copy.default"})
    EXPECT_EQ(fact_of(name).family, Family::kStream) << name;
}

// Everything that native models are made of was looked at.
TEST(PricedOps, TheTableKnowsEveryRegisteredOp) {
  const std::vector<std::string> without = {"aten.histc.default", "aten.sort.default", "aten.sort.stable",
                                            "aten.topk.default"};
  for (const ops::Row& row : ops::rows())
    if (std::find(without.begin(), without.end(), row.name) == without.end()) {
      EXPECT_NE(fact_of(row.name).family, Family::kUnpriced) << row.name;
    }
}

// Adding up at indices that may repeat sorts them; writing does not.
TEST(PricedOps, AnArgumentCanMakeAnotherOpOfIt) {
  for (const bool accumulates : {false, true}) {
    Shaped s;
    const TensorId x = s.make(DType::kFloat32, {100});
    const Output out{s.make(DType::kFloat32, {100}, Role::kPlain), AliasKind::kFresh, 0};
    const OpId op = s.p.b.add_op({.name = "aten.index_put.default",
                                  .pass = PassId(0),
                                  .call = {},
                                  .node = {},
                                  .region = {},
                                  .inputs = {&x, 1},
                                  .outputs = {&out, 1},
                                  .args = s.p.b.add_args({{s.p.b.intern("accumulate"), {accumulates}}}),
                                  .source = {},
                                  .group = {},
                                  .flags = {}});
    s.p.b.begin(op);
    s.p.b.alloc(s.p.storage(out.tensor));
    s.p.b.end(op);
    EXPECT_EQ(s.work().family, accumulates ? Family::kUnpriced : Family::kStream);
  }
}

// AdamW reads its counters in each step, so they lie in the host's memory: counting, reading and the one that is added
// keep no device. A fused one leaves them on the device.
TEST(PricedOps, CountersOfOptimizersAreTheHosts) {
  Shaped s;
  s.p.pass(PassKind::kOptimizer);
  const TensorId counter = s.make(DType::kFloat32, {}, Role::kOptimizerState);
  const TensorId moment = s.make(DType::kFloat32, {100}, Role::kOptimizerState);
  const TensorId one = s.make(DType::kFloat32, {}, Role::kPlain);
  s.p.run("aten.lift_fresh.default", {}, {{one, AliasKind::kFresh, 0}});
  s.p.run("aten._foreach_add_.Tensor", {counter, one}, {});
  s.p.run("aten._local_scalar_dense.default", {counter}, {}, OpFlag::kHostCopy);
  s.p.run("aten._foreach_mul_.Scalar", {moment}, {});
  const Step step = s.p.finish();
  const StepCost cost = price_step(step, h100());
  for (const std::size_t op : {0, 1, 2}) {
    EXPECT_EQ(cost.ops[op].source, TimeSource::kFree) << op;
    EXPECT_EQ(cost.ops[op].total_ps, 0) << op;
    EXPECT_GT(cost.ops[op].host_ps, 0) << op;
  }
  EXPECT_GT(cost.ops[3].total_ps, 0);
}

TEST(PricedOps, NativeStepsReadTheirCountersOnTheHost) {
  const Step step =
      zoo::record(zoo::find_model("gpt2")->config, {.batch = 1, .sequence = 64, .target = nn::Target::kCuda});
  const StepCost cost = price_step(step, h100());
  std::int64_t read = 0;
  for (std::size_t i = 0; i < cost.ops.size(); ++i) {
    const Op& op = step.tables().ops[i];
    if (step.text(op.name) != "aten._local_scalar_dense.default" || step[op.pass].kind != PassKind::kOptimizer)
      continue;
    ++read;
    EXPECT_EQ(cost.ops[i].total_ps, 0);
  }
  EXPECT_EQ(read, 2 * 148);  // both bias corrections of GPT-2's 148 parameters
}

// Eight ranks gather 8 MB from 1 MB each: seven times 3 us and 1 MB at 450 GB/s, after a launch of 10 us. In two nodes
// of four: three times 3 us and 2 MB at 450 GB/s, then 10 us and 1 MB at 50 GB/s.
TEST(PricedOps, CollectivesCountTheLargerSide) {
  test::TinyProgram p;
  p.device = "cuda";
  const TensorId part = p.resident(Role::kInput, 1'000'000);
  p.pass(PassKind::kForward);
  const TensorId all = p.op("_c10d_functional.all_gather_into_tensor.default", {part}, 8'000'000, OpFlag::kCollective);
  const TensorId waited = p.op("_c10d_functional.wait_tensor.default", {all}, 8'000'000, OpFlag::kCollective);
  p.op("_c10d_functional.reduce_scatter_tensor.default", {waited}, 1'000'000, OpFlag::kCollective);
  const Step step = p.finish();
  const StepCost one = price_step(step, h100(), {.ranks = 8});
  EXPECT_NEAR(static_cast<double>(one.ops[0].total_ps) * 1e-6, 10 + 7 * (3 + 1e6 / 450e3), 1e-3);
  EXPECT_EQ(one.ops[1].total_ps, 0);
  EXPECT_EQ(one.ops[1].source, TimeSource::kFree);
  EXPECT_EQ(one.ops[2].total_ps, one.ops[0].total_ps);
  const StepCost two = price_step(step, h100(), {.ranks = 8, .ranks_per_node = 4});
  EXPECT_NEAR(static_cast<double>(two.ops[0].total_ps) * 1e-6, 10 + 3 * (3 + 2e6 / 450e3) + 10 + 1e6 / 50e3, 1e-3);
}

// To one rank and from one: a reduce is a broadcast backwards, a gather and a scatter move a piece for each of the
// others, and a barrier nothing, both ways. 8 MB on an H100, 3 us and 450 GB/s; 10 us for the launch.
TEST(PricedOps, CollectivesOfOneRankTakePartners) {
  const auto us = [](const char* name, std::int64_t ranks) {
    test::TinyProgram p;
    p.device = "cuda";
    const TensorId x = p.resident(Role::kInput, 8'000'000);
    p.pass(PassKind::kForward);
    p.op(name, {x}, 8'000'000, OpFlag::kCollective);
    return static_cast<double>(price_step(p.finish(), h100(), {.ranks = ranks}).ops[0].total_ps) * 1e-6;
  };
  EXPECT_NEAR(us("c10d.reduce_.default", 8), 10 + 7 * 3 + 8e6 / 450e3, 1e-3);
  EXPECT_EQ(us("c10d.reduce_.default", 8), us("c10d.broadcast_.default", 8));
  EXPECT_NEAR(us("c10d.gather_.default", 8), 10 + 7 * (3 + 1e6 / 450e3), 1e-3);
  EXPECT_EQ(us("c10d.scatter_.default", 8), us("c10d.gather_.default", 8));
  EXPECT_NEAR(us("c10d.barrier.default", 8), 10 + 2 * 3 * 3, 1e-3);
  EXPECT_NEAR(us("c10d.send.default", 8), 10 + 3 + 8e6 / 450e3, 1e-3);
}

// Checkpoints that the step was recorded with cost what planned ones do: each region and its random state, where its
// recompute begins. It is the host's time, and on a CPU the step's.
TEST(PricedOps, RecordedCheckpointsHaveTheirPrice) {
  for (const std::string name : {"h100-sxm", "cpu"}) {
    const auto priced = [&](int recomputes) {
      test::TinyProgram p;
      p.device = name == "cpu" ? "cpu" : "cuda";
      const TensorId x = p.resident(Role::kInput, 1'000'000);
      p.pass(PassKind::kForward);
      p.op("aten.relu.default", {x}, 1'000'000);
      const PassId backward = p.b.add_pass({PassKind::kBackward, 0, 0, 0});
      const PassId recompute = p.b.add_pass({PassKind::kRecompute, 0, 0, 0});
      for (int i = 0; i < recomputes; ++i) {
        p.b.phase(backward);
        p.b.phase(recompute);
      }
      return price_step(p.finish(), device::find_device(name));
    };
    const StepCost with = priced(2);
    const StepCost without = priced(0);
    const std::int64_t more_ps = 2 * (with.region_ps + with.region_rng_ps);
    EXPECT_GT(more_ps, 0);
    if (name == "cpu") {
      EXPECT_EQ(with.step_ps - without.step_ps, more_ps);
      EXPECT_EQ(with.all.time_ps, with.step_ps);
      EXPECT_EQ(with.pass(PassKind::kRecompute).time_ps, more_ps);
      // Off by 41 % at most.
      EXPECT_NEAR(static_cast<double>(with.pass(PassKind::kRecompute).low_ps), 0.59 * static_cast<double>(more_ps), 2);
    } else {
      EXPECT_EQ(with.host_ps - without.host_ps, more_ps);
      EXPECT_EQ(with.all.time_ps, without.all.time_ps);  // ops alone
    }
  }
}

// Four real products: 4 * 2 * 64 * 32 * 16 FLOPs.
TEST(PricedOps, AComplexProductIsFourRealOnes) {
  for (const auto& [dtype, precision] :
       {std::pair(DType::kComplex64, Precision::kFloat32), std::pair(DType::kComplex128, Precision::kFloat64)}) {
    Shaped s;
    s.run("aten.mm.default", {s.make(dtype, {64, 32}), s.make(dtype, {32, 16})}, dtype, {64, 16});
    const Work work = s.work();
    EXPECT_EQ(work.flops, 262'144);
    EXPECT_EQ(work.m, 64);
    EXPECT_EQ(work.precision, precision);
  }
}

// Attention of 1024 queries over 1024 keys in blocks of 128 queries: block i computes (i + 1) of 8 blocks of keys, 36
// of 64 in all. Of the gradient the same. Where there are twice as many queries, later ones see every key: 36 + 64 of
// 128.
TEST(PricedOps, CausalAttentionSkipsHalf) {
  constexpr std::int64_t kFlops = 64'000'000;
  const auto skipped = [&](const char* name, std::int64_t queries, bool is_causal) {
    Shaped s;
    s.p.flops = kFlops;
    s.p.args = s.p.b.intern_args({{s.p.b.intern("is_causal"), ArgValue{is_causal}}});
    const TensorId query = s.make(DType::kBFloat16, {2, 4, queries, 64});
    const TensorId key = s.make(DType::kBFloat16, {2, 4, 1024, 64});
    const bool is_backward = std::string_view(name).find("backward") != std::string_view::npos;
    s.run(name, is_backward ? std::vector{query, query, key, key} : std::vector{query, key, key}, DType::kBFloat16,
          {2, 4, queries, 64});
    const Work work = s.work();
    EXPECT_EQ(work.flops, kFlops);
    EXPECT_EQ(work.is_backward, is_backward);
    return work.skipped_flops;
  };
  EXPECT_EQ(skipped("aten._scaled_dot_product_flash_attention.default", 1024, true), kFlops * 28 / 64);
  EXPECT_EQ(skipped("aten._scaled_dot_product_flash_attention_backward.default", 1024, true), kFlops * 28 / 64);
  EXPECT_EQ(skipped("aten._scaled_dot_product_flash_attention.default", 2048, true), kFlops * 28 / 128);
  EXPECT_EQ(skipped("aten._scaled_dot_product_flash_attention.default", 1024, false), 0);
  Work work = product_work(Family::kAttention, 0, 0, 0, 0, Precision::kBFloat16, 2);
  work.flops = 1'000'000'000'000;
  const Machine machine = make_machine(h100());
  const std::int64_t all_ps = op_time(work, machine).compute_ps;
  work.skipped_flops = work.flops / 4;
  EXPECT_NEAR(static_cast<double>(op_time(work, machine).compute_ps), 0.75 * static_cast<double>(all_ps), 2);
  EXPECT_EQ(op_time(work, machine).flops, work.flops / 4 * 3);  // what is not computed is not carried out
}

// A convolution over an empty batch launches nothing but itself: no plan is tried, nothing is transformed.
TEST(PricedOps, AConvolutionOverNothingTakesALaunch) {
  Shaped s;
  s.run("aten.convolution.default", {s.make(DType::kFloat32, {0, 3, 8, 8}), s.make(DType::kFloat32, {4, 3, 3, 3})},
        DType::kFloat32, {0, 4, 8, 8});
  const StepCost cost = price_step(s.p.finish(), device::find_device("t4"));
  EXPECT_EQ(cost.ops[0].source, TimeSource::kModelled);
  EXPECT_LT(cost.ops[0].total_ps - cost.ops[0].launch_ps, 10'000'000);
}

// What a caller may want to know: who takes part in collectives, and rates that a device has no figure for.
TEST(PricedOps, WhatIsAssumedIsSaid) {
  test::TinyProgram p;
  p.device = "cuda";
  const TensorId x = p.resident(Role::kInput, 1'000'000);
  p.pass(PassKind::kForward);
  p.op("_c10d_functional.all_reduce.default", {x}, 1'000'000, OpFlag::kCollective);
  const Step step = p.finish();
  ASSERT_EQ(price_step(step, h100()).notes.size(), 1u);
  EXPECT_EQ(price_step(step, h100()).notes[0],
            "1 collective is priced as on one device, where nothing is sent: say how many ranks take part");
  EXPECT_EQ(price_step(step, h100(), {.ranks = 2}).notes,
            std::vector<std::string>{"collectives are priced for 2 ranks; assumed: the latency of nvlink4"});
  EXPECT_EQ(price_step(step, h100(), {.ranks = 16, .ranks_per_node = 8}).notes,
            std::vector<std::string>{
                "collectives are priced for 16 ranks, 8 in a node; assumed: the latency of nvlink4, the rate of "
                "infiniband-ndr, the latency of infiniband-ndr"});
  device::Device mine = h100();  // whose links somebody measured
  for (device::Source& source : mine.sources) source.text = "measured";
  EXPECT_TRUE(price_step(step, mine, {.ranks = 16, .ranks_per_node = 8}).notes.empty());
  for (const auto& [dtype, note] :
       {std::pair(DType::kBFloat16,
                  "products in bfloat16 are priced at the rate of float32: the device has no figure for them"),
        std::pair(DType::kFloat32, "")}) {
    Shaped s;
    s.run("aten.mm.default", {s.make(dtype, {64, 64}), s.make(dtype, {64, 64})}, dtype, {64, 64});
    const StepCost cost = price_step(s.p.finish(), device::find_device("v100"));
    EXPECT_EQ(cost.notes, *note == 0 ? std::vector<std::string>() : std::vector<std::string>{note});
  }
}

// Matrix units of float64: 19.5 TFLOP/s on an A100, of which a large product reaches 0.79 by assumption, and 9.7
// without.
TEST(PricedOps, MatrixUnitsHaveTheirOwnPeak) {
  const device::Device a100 = device::find_device("a100-80-sxm");
  const auto large = [](const device::Device& device) {
    const Work work = product_work(Family::kMatmul, 1, 8192, 8192, 8192, Precision::kFloat64, 8);
    return static_cast<double>(work.flops) /
           (static_cast<double>(op_time(work, make_machine(device)).total_ps) * 1e-12);
  };
  EXPECT_NEAR(large(a100) / (0.79 * 19.5e12), 1, 0.05);
  device::Device plain = a100;
  plain.matrix_flops = {};
  EXPECT_LT(large(plain), 9.7e12);
  StepCost cost;
  cost.step_ps = 1'000'000'000'000;
  cost.flops_by_precision[static_cast<std::size_t>(Precision::kFloat64)] = 19'500'000'000'000 / 2;
  EXPECT_NEAR(model_flops_utilisation(cost, a100), 0.5, 1e-9);
}

TEST(PricedOps, RanksHaveToMakeSense) {
  const Step step = test::TinyProgram().finish();
  EXPECT_THROW(price_step(step, h100(), {.ranks = 0}), Error);
  EXPECT_THROW(price_step(step, h100(), {.ranks = -3}), Error);
  EXPECT_THROW(price_step(step, h100(), {.ranks = 8, .ranks_per_node = 3}), Error);
  device::Device lonely = h100();
  lonely.network.reset();
  EXPECT_NO_THROW(price_step(step, lonely, {.ranks = 8}));
  EXPECT_THROW(price_step(step, lonely, {.ranks = 8, .ranks_per_node = 4}), Error);
}

// A convolution in float32 is priced at the rate of tf32, and so is what it could do at best: 494.7 instead of 66.9
// TFLOP/s on an H100.
TEST(PricedOps, UtilisationIsOfTheRateThatIsPriced) {
  Work work = product_work(Family::kConvolution, 1, 4096, 4096, 4096);
  EXPECT_EQ(priced_precision(work), Precision::kTf32);
  work.family = Family::kMatmul;
  EXPECT_EQ(priced_precision(work), Precision::kFloat32);
  StepCost cost;
  cost.step_ps = 1'000'000'000'000;  // a second
  const auto peak = h100().peak(Precision::kTf32)->value;
  cost.flops_by_precision[static_cast<std::size_t>(Precision::kTf32)] = peak / 2;
  EXPECT_NEAR(model_flops_utilisation(cost, h100()), 0.5, 1e-9);
  cost.flops_by_precision[static_cast<std::size_t>(Precision::kFloat32)] = h100().peak(Precision::kFloat32)->value / 4;
  EXPECT_NEAR(model_flops_utilisation(cost, h100()), 0.75, 1e-9);
}

// A 3 x 3 convolution of 64 channels over 64 images of 56 x 56 on a V100 in float32: Winograd's 36 products over 14 x
// 14 patches instead of 9 multiplications for each pixel of the result, 36 / (9 * 16) of the FLOPs. It can be above 100
// % of the peak by the model's FLOPs, never by those carried out.
TEST(PricedOps, HardwareUtilisationIsOfWhatIsCarriedOut) {
  Work work;
  work.family = Family::kConvolution;
  work.m = 64LL * 56 * 56;
  work.n = 64;
  work.k = 64LL * 9;
  work.flops = 2 * work.m * work.n * work.k;
  work.bytes = 4 * (2 * work.m * 64 + work.n * work.k);
  work.winograd_tiles = 64LL * 14 * 14;
  const Time time = op_time(work, make_machine(device::find_device("v100")));
  EXPECT_EQ(time.flops, work.flops / 4);
  StepCost cost;
  cost.step_ps = 1'000'000'000'000;
  const device::Device device = h100();
  cost.flops_by_precision[static_cast<std::size_t>(Precision::kBFloat16)] = 989'400'000'000'000;
  cost.executed_by_precision[static_cast<std::size_t>(Precision::kBFloat16)] = 989'400'000'000'000 / 4;
  EXPECT_NEAR(model_flops_utilisation(cost, device), 1, 1e-9);
  EXPECT_NEAR(hardware_flops_utilisation(cost, device), 0.25, 1e-9);
}

// Ten ops of 1e18 ps each are more than 2^63: refused, never wrapped.
TEST(PricedOps, SumsThatDoNotFitAreRefused) {
  device::Device slow = h100();
  slow.bandwidth_bytes_per_s.value = 1;
  Shaped s;
  const TensorId x = s.make(DType::kUInt8, {4'000'000});
  for (int i = 0; i < 10; ++i) s.run("aten.neg.default", {x}, DType::kUInt8, {4'000'000});
  const Step step = s.p.finish();
  try {
    price_step(step, slow);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("units of the device file"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tidemark::cost
