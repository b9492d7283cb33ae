// The reference's memory tracker from a record: its published bytes, and its attribution on a step worked out by hand.

#include "tidemark/memory/reference_tracker.h"

#include <gtest/gtest.h>

#include "../support/tiny_program.h"
#include "tidemark/memory/replay.h"
#include "tidemark/plan/policies.h"
#include "tidemark/step/read_step.h"

namespace tidemark::memory {
namespace {

using namespace step;
using test::TinyProgram;

// The forward of the reference's test model: four blocks, 12 heads, vocabulary 8,192, sequence 1,024, width 768, batch
// 8, float32, dropout, attention by a flash kernel, tied output weight; as a CUDA device runs and saves it.
constexpr std::int64_t kHidden = 8 * 1024 * 768 * 4;  // 25,165,824
constexpr std::int64_t kWide = 4 * kHidden;           // the feed-forward's inner width
constexpr std::int64_t kLogits = std::int64_t{8} * 1024 * 8192 * 4;
constexpr std::int64_t kMask = 8 * 1024 * 768;     // one byte each
constexpr std::int64_t kStatistic = 8 * 1024 * 4;  // mean, or rstd, of a norm
constexpr std::int64_t kLogSumExp = 8 * 12 * 1024 * 4;
constexpr int kBlocks = 4;

class ToyGpt {
 public:
  ToyGpt() {
    p.device = "cuda:0";
    const ModuleId list = p.module(p.root, "layers", "ModuleList");
    for (int i = 0; i < kBlocks; ++i) blocks.push_back(p.module(list, std::to_string(i), "TransformerBlock"));
    bind(p.root, "tokens", 8192 * 768);
    bind(p.root, "positions", 1024 * 768);
    for (const char* name : {"norm_weight", "norm_bias"}) bind(p.root, name, 768);
    for (const ModuleId block : blocks) {
      for (const char* name : {"n1w", "n1b", "n2w", "n2b", "w2_bias"}) bind(block, name, 768);
      for (const char* name : {"wq", "wk", "wv", "wo"}) bind(block, name, 768 * 768);
      for (const char* name : {"w1", "w2"}) bind(block, name, 768 * 3072);
      bind(block, "w1_bias", 3072);
    }
  }

  Step forward() {
    const TensorId tokens = p.resident(Role::kInput, 8 * 1024 * 8);
    p.pass(PassKind::kForward);
    const CallId root = p.enter(p.root, {tokens});
    const TensorId ids = p.op("aten.arange.start", {}, 1024 * 8);
    const TensorId word = p.op("aten.embedding.default", {tokens}, kHidden);
    const TensorId position = p.op("aten.embedding.default", {ids}, 1024 * 768 * 4);
    p.pack(tokens);
    p.pack(ids);
    p.free(ids);
    const TensorId sum = p.op("aten.add.Tensor", {word, position}, kHidden);
    p.free(word);
    p.free(position);
    TensorId x = dropout(sum);
    for (const ModuleId block : blocks) x = run_block(block, x);
    const TensorId last = norm(x);
    p.free(x);
    p.pack(last);
    const TensorId logits = p.op("aten.mm.default", {last}, kLogits);
    p.free(last);
    p.exit(root, {logits});
    return p.finish();
  }

  TinyProgram p;
  std::vector<ModuleId> blocks;

 private:
  void bind(ModuleId module, std::string_view name, std::int64_t count) {
    p.b.add_binding({module, p.b.intern(name), p.resident(Role::kParameter, 4 * count), BindingKind::kParameter, true});
  }

  // The mask is saved; the input goes.
  TensorId dropout(TensorId input) {
    const TensorId out = p.fresh(kHidden);
    const TensorId mask = p.fresh(kMask);
    p.run("aten.native_dropout.default", {input}, {{out, AliasKind::kFresh, 0}, {mask, AliasKind::kFresh, 0}},
          OpFlag::kRandom);
    p.pack(mask);
    p.free(mask);
    p.free(input);
    return out;
  }

  TensorId norm(TensorId input) {
    p.pack(input);
    const TensorId out = p.fresh(kHidden);
    const TensorId mean = p.fresh(kStatistic);
    const TensorId rstd = p.fresh(kStatistic);
    p.run("aten.native_layer_norm.default", {input},
          {{out, AliasKind::kFresh, 0}, {mean, AliasKind::kFresh, 0}, {rstd, AliasKind::kFresh, 0}});
    for (const TensorId statistic : {mean, rstd}) {
      p.pack(statistic);
      p.free(statistic);
    }
    return out;
  }

  // A linear layer saves its input.
  TensorId linear(TensorId input, std::int64_t bytes) {
    p.pack(input);
    return p.op("aten.mm.default", {input}, bytes);
  }

  TensorId attention(TensorId q, TensorId k, TensorId v) {
    std::vector<TensorId> made = {p.fresh(kHidden), p.fresh(kLogSumExp), p.fresh(8), p.fresh(8)};
    for (const TensorId input : {q, k, v}) p.pack(input);
    std::vector<Output> outputs;
    for (const TensorId out : made) outputs.push_back({out, AliasKind::kFresh, 0});
    p.run("aten._scaled_dot_product_flash_attention.default", {q, k, v}, outputs, OpFlag::kRandom);
    for (const TensorId out : made) p.pack(out);
    for (std::size_t i = 1; i < made.size(); ++i) p.free(made[i]);
    for (const TensorId input : {q, k, v}) p.free(input);
    return made[0];
  }

  TensorId run_block(ModuleId block, TensorId x) {
    const CallId call = p.enter(block, {x});
    const TensorId n1 = norm(x);
    const TensorId q = linear(n1, kHidden);
    const TensorId k = linear(n1, kHidden);
    const TensorId v = linear(n1, kHidden);
    p.free(n1);
    const TensorId attended = attention(q, k, v);
    const TensorId projected = linear(attended, kHidden);
    p.free(attended);
    const TensorId d1 = dropout(projected);
    const TensorId h = p.op("aten.add.Tensor", {x, d1}, kHidden);
    p.free(d1);
    const TensorId n2 = norm(h);
    const TensorId w1 = linear(n2, kWide);
    p.free(n2);
    p.pack(w1);
    const TensorId active = p.op("aten.gelu.default", {w1}, kWide);
    p.free(w1);
    const TensorId w2 = linear(active, kHidden);
    p.free(active);
    const TensorId d2 = dropout(w2);
    const TensorId out = p.op("aten.add.Tensor", {h, d2}, kHidden);
    p.free(d2);
    p.free(h);
    p.exit(call, {out});
    p.free(x);
    return out;
  }
};

TEST(ReferenceTracker, GivesThePublishedBytesOfTheReferencesTest) {
  ToyGpt model;
  const Step step = model.forward();
  const ReferenceRecord record = track_like_reference(step);
  ASSERT_EQ(record.modules.size(), 1u + kBlocks);
  EXPECT_EQ(record.modules[0].parameter_bytes, 141674496);
  EXPECT_EQ(record.modules[0].input_bytes, 0);  // no op returns a view of the tokens: they are never seen
  EXPECT_EQ(record.modules[0].output_bytes, kLogits);
  const ReferenceSnapshot after = record.modules[0][ReferenceState::kPostForward].back();
  EXPECT_EQ(after[ReferenceCategory::kActivation], 1988177920);
  EXPECT_EQ(after[ReferenceCategory::kParameter], 141674496);
  EXPECT_EQ(after.total_bytes, 141674496 + 1988177920);
  // What every block adds: 8 hidden and 2 wide tensors, 2 masks, 4 statistics, logsumexp, and two scalars of 512 B.
  for (int i = 1; i <= kBlocks; ++i) {
    EXPECT_EQ(record.modules[static_cast<std::size_t>(i)].parameter_bytes, 28339200);
    const ReferenceModule& block = record.modules[static_cast<std::size_t>(i)];
    EXPECT_EQ(
        block[ReferenceState::kPostForward].back().total_bytes - block[ReferenceState::kPreForward].back().total_bytes,
        415761408);
  }
}

TEST(ReferenceTracker, TheReplayKeepsThePublishedBytesToo) {
  ToyGpt model;
  const Step step = model.forward();
  EXPECT_EQ(replay(step, {}, {.round_to_bytes = 512}).end_bytes, 141674496 + 1988177920 + 65536);
  // Fully checkpointed, a block keeps its input only: 390,595,584 less for each (what it keeps, less its output).
  // Nothing is ever released here, so what is left at the end is what is kept: every frame's input is some block's
  // output.
  const plan::Plan plan = plan::make_plan(step, {plan::PolicyKind::kFull}, {.preserve_rng = false});
  ASSERT_EQ(plan.units.size(), static_cast<std::size_t>(kBlocks));
  EXPECT_EQ(replay(step, plan, {.round_to_bytes = 512}).end_bytes,
            141674496 + 1988177920 + 65536 - kBlocks * std::int64_t{390595584});
}

TEST(ReferenceTracker, AttributesTheExampleAsTheReferenceDoes) {
  const Step step = read_step(std::string(TIDEMARK_SOURCE_DIR) + "/examples/steps/two_layer_mlp.step.jsonl");
  const ReferenceRecord record = track_like_reference(step);
  // The peak, after the sum that makes the first bias's gradient (see docs/how_memory_is_counted.md). The second
  // layer's gradients, 256 + 16 B, are accumulated. The first layer's, 512 + 64 B, are not yet, and count as temporary
  // with the one of 4 B and the gradient of 128 B they come from. The loss of 32 B is an activation; the
  // batch of 96 B, of which no op returns a view, is not seen at all.
  EXPECT_EQ(record.peak.total_bytes, 1860);
  EXPECT_EQ(record.peak[ReferenceCategory::kParameter], 848);
  EXPECT_EQ(record.peak[ReferenceCategory::kGradient], 256 + 16);
  EXPECT_EQ(record.peak[ReferenceCategory::kTemp], 512 + 64 + 4 + 128);
  EXPECT_EQ(record.peak[ReferenceCategory::kActivation], 32);
  // At the end only parameters and their gradients are left.
  EXPECT_EQ(record.current[ReferenceCategory::kGradient], 848);
  EXPECT_EQ(record.current[ReferenceCategory::kTemp], 0);
  EXPECT_EQ(record.current.total_bytes, 848 + 848);
  // Root, first layer, relu, second layer; each entered once.
  ASSERT_EQ(record.modules.size(), 4u);
  const ReferenceModule& root = record.modules[0];
  EXPECT_EQ(root[ReferenceState::kPreForward].back().total_bytes, 848);
  EXPECT_EQ(root[ReferenceState::kPeakForward].back().total_bytes, 1104);  // after relu
  EXPECT_EQ(root[ReferenceState::kPostForward].back().total_bytes, 1008);
  EXPECT_EQ(root[ReferenceState::kPreBackward].back().total_bytes, 1044);   // the loss's node is no module's
  EXPECT_EQ(root[ReferenceState::kPeakBackward].back().total_bytes, 1796);  // the sum comes after the last node
  EXPECT_EQ(root[ReferenceState::kPostBackward].back().total_bytes, 1796);
  EXPECT_TRUE(root[ReferenceState::kPreForwardAc].empty());
  EXPECT_EQ(record.modules[1].parameter_bytes, 512 + 64);
  EXPECT_EQ(record.modules[1].input_bytes, 0);
  EXPECT_EQ(record.modules[1].output_bytes, 128);
}

TEST(ReferenceTracker, CountsAForwardThatRunsAgainAsActivation) {
  TinyProgram p;
  p.pass(PassKind::kForward);
  const CallId call = p.enter(p.root, {});
  const SaveId save = p.pack(p.op("aten.mm.default", {}, 10));
  p.exit(call, {});
  p.pass(PassKind::kRecompute);
  const CallId again = p.enter(p.root, {});
  p.op("aten.mm.default", {}, 20);
  p.exit(again, {});
  p.pass(PassKind::kBackward);
  p.backward({save}, 40);
  p.pass(PassKind::kOptimizer);
  p.op("aten.add.Tensor", {}, 80);
  const ReferenceRecord record = track_like_reference(p.finish());
  EXPECT_EQ(record.current[ReferenceCategory::kActivation], 30);
  EXPECT_EQ(record.current[ReferenceCategory::kTemp], 40);
  EXPECT_EQ(record.current[ReferenceCategory::kOptState], 80);
  ASSERT_EQ(record.modules.size(), 1u);
  EXPECT_EQ(record.modules[0][ReferenceState::kPreForwardAc].back().total_bytes, 10);
  EXPECT_EQ(record.modules[0][ReferenceState::kPostForwardAc].back().total_bytes, 30);
  EXPECT_EQ(record.modules[0][ReferenceState::kPreForward].size(), 1u);
}

TEST(ReferenceTracker, MeetsOutsideTensorsWhenAnOpReturnsThem) {
  TinyProgram p;
  const TensorId batch = p.resident(Role::kInput, 10);
  p.resident(Role::kPlain, 20);  // left from the step before
  p.pass(PassKind::kForward);
  const CallId call = p.enter(p.root, {batch});
  p.op("aten.mm.default", {batch}, 40);
  p.view(batch);
  p.exit(call, {});
  const Step step = p.finish();
  const ReferenceRecord record = track_like_reference(step);
  EXPECT_EQ(record.modules[0].input_bytes, 0);
  EXPECT_EQ(record.modules[0][ReferenceState::kPreForward].back().total_bytes, 0);
  EXPECT_EQ(record.current[ReferenceCategory::kActivation], 40 + 10);
  EXPECT_EQ(record.current.total_bytes, 50);
  const ReferenceRecord with_stale = track_like_reference(step, {.device = "", .counts_stale = true});
  EXPECT_EQ(with_stale.modules[0][ReferenceState::kPreForward].back()[ReferenceCategory::kActivation], 20);
  EXPECT_EQ(with_stale.current.total_bytes, 70);
}

TEST(ReferenceTracker, RoundsOnCudaOnlyAndCountsOneDeviceIfAsked) {
  TinyProgram p;
  p.resident(Role::kParameter, 10);
  p.device = "cuda:0";
  p.resident(Role::kBuffer, 10);
  const Step step = p.finish();
  EXPECT_EQ(track_like_reference(step).current.total_bytes, 522);
  EXPECT_EQ(track_like_reference(step, {.device = "cuda:0"}).current.total_bytes, 512);
}

}  // namespace
}  // namespace tidemark::memory
