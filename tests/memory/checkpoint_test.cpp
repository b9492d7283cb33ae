// Replay of checkpointed units: figures worked out by hand from docs/how_memory_is_counted.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/tiny_program.h"
#include "tidemark/base/error.h"
#include "tidemark/memory/replay.h"
#include "tidemark/plan/plan.h"
#include "tidemark/plan/policies.h"

namespace tidemark::memory {
namespace {

using namespace step;
using plan::Plan;
using test::TinyProgram;
using ::testing::ElementsAre;

constexpr std::int64_t kRng = kRngStateBytes;

std::vector<std::int64_t> totals(const Timeline& timeline) {
  std::vector<std::int64_t> list;
  for (const Change& change : timeline.changes) list.push_back(change.total_bytes);
  return list;
}

// An input of 10 B; h of 100 B is made and given to a block, which makes a of 200, b of 300 and out of 400 B, each from
// the one before. Autograd saves h, a and b, each before the op that reads it. Nothing but autograd keeps h, a, b and
// out. Backward makes gradients of 50, 60 and 70 B, each from the one before.
struct Chain {
  TinyProgram p;
  CallId block;
  OpId op_a, op_b, op_out;
  TensorId h, out;
  SaveId save_h, save_a, save_b;

  Chain() {
    const TensorId x = p.resident(Role::kInput, 10);
    const ModuleId module = p.module(p.root, "block", "Block");
    p.pass(PassKind::kForward);
    const CallId net = p.enter(p.root, {x});
    h = p.op("aten.embedding.default", {x}, 100);
    block = p.enter(module, {h});
    save_h = p.pack(h);
    const TensorId a = p.op("aten.mm.default", {h}, 200);
    op_a = p.last_op();
    save_a = p.pack(a);
    const TensorId b = p.op("aten.gelu.default", {a}, 300);
    op_b = p.last_op();
    p.free(a);
    save_b = p.pack(b);
    out = p.op("aten.mm.default", {b}, 400);
    op_out = p.last_op();
    p.free(b);
    p.exit(block, {out});
    p.free(h);
    p.exit(net, {out});
  }

  void backward() {
    p.pass(PassKind::kBackward);
    const TensorId grad_b = p.backward({save_b}, 50);
    const TensorId grad_a = p.backward({save_a}, 60);
    p.free(grad_b);
    p.backward({save_h}, 70);
    p.free(grad_a);
  }

  Step finish() {
    p.free(out);
    backward();
    return p.finish();
  }

  Plan plan(std::vector<OpId> saved, bool preserve_rng = false, bool early_stop = true) const {
    return {{{block, std::move(saved), preserve_rng, early_stop}}};
  }
};

TEST(Checkpoint, WithoutAPlanEverythingSavedIsKept) {
  Chain chain;
  const Timeline timeline = replay(chain.finish(), {}, {.keep_changes = true});
  // h 110, a 310, b 610, out 1010; out goes 610. Gradients: +50 = 660, b goes 360; +60 = 420, a goes 220, first
  // gradient goes 170; +70 = 240, h goes 140, second gradient goes 80.
  EXPECT_THAT(totals(timeline), ElementsAre(110, 310, 610, 1010, 610, 660, 360, 420, 220, 170, 240, 140, 80));
  EXPECT_EQ(timeline.peak.total_bytes, 1010);
  EXPECT_EQ(timeline.peak.op, chain.op_out);
}

TEST(Checkpoint, AFullCheckpointKeepsOnlyTheInputs) {
  Chain chain;
  const Plan plan = chain.plan({});
  const Timeline timeline = replay(chain.finish(), plan, {.keep_changes = true});
  // Forward: h 110, a 310, b 610, a goes 410, out 810, b goes 510; h is held by the frame; out goes 110.
  // Backward: the recompute makes a 310 and b 610 and stops at the save of b, before the last op.
  // +50 = 660, b goes with its drop 360; +60 = 420, a goes 220, gradient 170; +70 = 240; with the last release the
  // frame lets go of h 140; gradient 80.
  EXPECT_THAT(totals(timeline),
              ElementsAre(110, 310, 610, 410, 810, 510, 110, 310, 610, 660, 360, 420, 220, 170, 240, 140, 80));
  EXPECT_EQ(timeline.peak.total_bytes, 810);
  EXPECT_EQ(timeline.peak.unit, kNoUnit);
  EXPECT_EQ(timeline.changes[8].block.kind, BlockKind::kCopy);
  EXPECT_EQ(timeline.changes[8].category, Category::kRecomputed);
  EXPECT_EQ(timeline.changes[8].op, chain.op_b);
  EXPECT_EQ(timeline.changes[8].unit, 0u);
  EXPECT_EQ(timeline.changes[9].unit, kNoUnit);
}

TEST(Checkpoint, WithoutEarlyStopTheWholeBlockRunsAgain) {
  Chain chain;
  const Plan plan = chain.plan({}, false, false);
  const Step step = chain.finish();
  const Timeline timeline = replay(step, plan, {.keep_changes = true});
  // As above, but the last op runs too: 610 + 400 = 1010, and goes when the recompute ends.
  EXPECT_THAT(totals(timeline), ElementsAre(110, 310, 610, 410, 810, 510, 110, 310, 610, 1010, 610, 660, 360, 420, 220,
                                            170, 240, 140, 80));
  EXPECT_EQ(timeline.peak.total_bytes, 1010);
  EXPECT_EQ(timeline.peak.op, chain.op_out);
  EXPECT_EQ(timeline.peak.unit, 0u);
  EXPECT_EQ(timeline.peak.pass, PassId(1));
  EXPECT_EQ(timeline.peak.call, chain.block);
  // The option turns it off for every unit.
  EXPECT_EQ(replay(step, chain.plan({}), {.early_stop = false}).peak.total_bytes, 1010);
}

TEST(Checkpoint, KeepsTheRngStateInTheFrameAndAnotherDuringRecompute) {
  Chain chain;
  const Plan plan = chain.plan({}, true);
  const Step step = chain.finish();
  const Timeline timeline = replay(step, plan, {.keep_changes = true});
  // From enter to the frame's death one state more, and from the start to the end of the recompute a second one.
  EXPECT_THAT(totals(timeline),
              ElementsAre(110, 110 + kRng, 310 + kRng, 610 + kRng, 410 + kRng, 810 + kRng, 510 + kRng, 110 + kRng,
                          110 + 2 * kRng, 310 + 2 * kRng, 610 + 2 * kRng, 610 + kRng, 660 + kRng, 360 + kRng,
                          420 + kRng, 220 + kRng, 170 + kRng, 240 + kRng, 140 + kRng, 140, 80));
  EXPECT_EQ(timeline.peak.total_bytes, 610 + 2 * kRng);
  EXPECT_EQ(timeline.peak_by_category[static_cast<std::size_t>(Category::kOther)], 2 * kRng);
  EXPECT_EQ(replay(step, plan, {.preserve_rng = false}).peak.total_bytes, 810);
}

TEST(Checkpoint, ASavedOpIsKeptAndNotRunAgain) {
  Chain chain;
  const Plan plan = chain.plan({chain.op_a});
  const Timeline timeline = replay(chain.finish(), plan, {.keep_changes = true});
  // Forward: h 110, a 310, b 610 (a is cached), out 1010, b goes 710, out goes 310 (10 + h + a).
  // Recompute: a is there; its cache entry becomes a reference of the recompute, then of the save. b 610; stop.
  // +50 = 660, b 360; +60 = 420, a goes with its drop 220, 170; +70 = 240, h 140, 80.
  EXPECT_THAT(totals(timeline), ElementsAre(110, 310, 610, 1010, 710, 310, 610, 660, 360, 420, 220, 170, 240, 140, 80));
}

TEST(Checkpoint, ACacheThatTheStopDoesNotReachStaysUntilTheFrameDies) {
  Chain chain;
  const Plan early = chain.plan({chain.op_a, chain.op_out});
  const Plan late = chain.plan({chain.op_a, chain.op_out}, false, false);
  const Step step = chain.finish();
  const Timeline timeline = replay(step, early, {.keep_changes = true});
  // Forward: h 110, a 310, b 610, out 1010, b goes 710; a and out stay. Recompute: b 1010; it stops before the last op,
  // so out stays cached. +50 = 1060, b 760; +60 = 820, a 620, 570; +70 = 640; the frame lets go of h 540 and out
  // 140; 80.
  EXPECT_THAT(totals(timeline),
              ElementsAre(110, 310, 610, 1010, 710, 1010, 1060, 760, 820, 620, 570, 640, 540, 140, 80));
  EXPECT_EQ(timeline.peak.total_bytes, 1060);
  // Without early stop, out is let go at the last op: 610 after the recompute, so the peak stays at the forward's.
  EXPECT_EQ(replay(step, late).peak.total_bytes, 1010);
}

TEST(Checkpoint, ASaveOutsideTheRegionRefersToTheOriginal) {
  Chain chain;
  const SaveId save_out = chain.p.pack(chain.out);
  chain.p.free(chain.out);
  chain.p.pass(PassKind::kBackward);
  chain.p.backward({save_out}, 40);
  chain.backward();
  const Plan plan = chain.plan({});
  const Timeline timeline = replay(chain.p.finish(), plan, {.keep_changes = true});
  // Forward as before up to 510: 10 + h + out. The outer save holds out. +40 = 550, then out goes 150. Then the
  // recompute makes a 350, b 650; +50 = 700, b 400; +60 = 460, a 260, 210; +70 = 280, h 180, 120.
  EXPECT_THAT(totals(timeline),
              ElementsAre(110, 310, 610, 410, 810, 510, 550, 150, 350, 650, 700, 400, 460, 260, 210, 280, 180, 120));
}

// A tensor handed over by a checkpoint dies with its drop, one saved plainly with its release: between the two stands
// what the engine does after the node, here an op that makes 1,000 B.
TEST(Checkpoint, AHandedOverTensorDiesBeforeTheEnginesOwnOps) {
  const auto make = [](bool checkpointed) {
    TinyProgram p;
    const ModuleId module = p.module(p.root, "block", "Block");
    p.pass(PassKind::kForward);
    const CallId block = p.enter(module, {});
    const TensorId a = p.op("aten.mm.default", {}, 200);
    const SaveId save = p.pack(a);
    p.exit(block, {a});
    p.free(a);
    p.pass(PassKind::kBackward);
    const NodeId node = p.b.tables().saves[save.index()].node;
    p.b.node(node);
    p.b.unpack(save);
    p.b.drop(save);
    p.b.done(node);
    p.op("aten.sum.dim_IntList", {}, 1000);
    p.b.release(save);
    const Plan plan = checkpointed ? Plan{{{block, {}, false, true}}} : Plan{};
    return replay(p.finish(), plan).peak.total_bytes;
  };
  EXPECT_EQ(make(false), 1200);
  EXPECT_EQ(make(true), 1000);
}

TEST(Checkpoint, ASaveWhoseHolderIsGoneIsHeldOnlyUntilTheRecomputeEnds) {
  TinyProgram p;
  const ModuleId module = p.module(p.root, "block", "Block");
  p.pass(PassKind::kForward);
  const CallId block = p.enter(module, {});
  const TensorId a = p.op("aten.mm.default", {}, 100);
  const SaveId gone = p.pack(a);
  p.free(a);
  const TensorId b = p.op("aten.mm.default", {}, 10);
  const SaveId used = p.pack(b);
  p.exit(block, {b});
  p.b.release(gone);
  p.free(b);
  p.pass(PassKind::kBackward);
  p.backward({used}, 1);
  const Timeline timeline = replay(p.finish(), {{{block, {}, false, true}}}, {.keep_changes = true});
  // Forward: 100, 0 (nobody holds a), 10, 0. Recompute: a 100; the graph being built holds it while b is made 110; then
  // it ends: a goes 10. +1 = 11; b goes with its drop 1.
  EXPECT_THAT(totals(timeline), ElementsAre(100, 0, 10, 0, 100, 110, 10, 11, 1));
}

TEST(Checkpoint, ASaveThatHooksDoNotSeeIsKeptAndMadeAgain) {
  TinyProgram p;
  const ModuleId module = p.module(p.root, "block", "Block");
  p.pass(PassKind::kForward);
  const CallId block = p.enter(module, {});
  const TensorId scalar = p.op("aten.scalar_tensor.default", {}, 8);
  const SaveId unseen = p.pack(scalar, false);
  p.free(scalar);
  const TensorId b = p.op("aten.mm.default", {}, 100);
  const SaveId seen = p.pack(b);
  p.free(b);
  p.exit(block, {});
  p.pass(PassKind::kBackward);
  p.backward({seen}, 1);
  p.backward({unseen}, 2);
  const Timeline timeline = replay(p.finish(), {{{block, {}, false, true}}}, {.keep_changes = true});
  // Forward: the scalar 8 is kept by its node, b 108, b goes 8. Recompute: another scalar 16, b 116; it ends: the
  // second scalar goes 108. +1 = 109, b goes 9. +2 = 11, the first scalar goes 3.
  EXPECT_THAT(totals(timeline), ElementsAre(8, 108, 8, 16, 116, 108, 109, 9, 11, 3));
}

TEST(Checkpoint, TwoUnitsShareWhatBothAreGiven) {
  TinyProgram p;
  const ModuleId layers = p.module(p.root, "layers", "ModuleList");
  const ModuleId first = p.module(layers, "0", "Block");
  const ModuleId second = p.module(layers, "1", "Block");
  p.pass(PassKind::kForward);
  const TensorId mask = p.op("aten.ones.default", {}, 1000);
  const CallId one = p.enter(first, {});  // reads the mask though it is not among its arguments
  const TensorId a = p.op("aten.mm.default", {mask}, 10);
  const SaveId save_a = p.pack(a);
  p.exit(one, {a});
  const CallId two = p.enter(second, {a, mask});
  const TensorId b = p.op("aten.mm.default", {a}, 20);
  const SaveId save_b = p.pack(b);
  p.exit(two, {b});
  p.free(mask);
  p.free(a);
  p.free(b);
  p.pass(PassKind::kBackward);
  p.backward({save_b}, 1);
  p.backward({save_a}, 2);
  const Step step = p.finish();
  const Plan plan = plan::make_plan(step, {plan::PolicyKind::kFull}, {.preserve_rng = false});
  ASSERT_EQ(plan.units.size(), 2u);
  const Timeline timeline = replay(step, plan, {.keep_changes = true});
  // mask 1000, a 1010, b 1030; b goes 1010: the second unit holds mask and a, the first the mask. Recompute of the
  // second: b 1030; +1 = 1031; b goes 1011; its frame dies: a goes 1001, the mask stays for the first. Its recompute: a
  // 1011; +2 = 1013; a goes 1003; its frame lets go of the mask: 3.
  EXPECT_THAT(totals(timeline), ElementsAre(1000, 1010, 1030, 1010, 1030, 1031, 1011, 1001, 1011, 1013, 1003, 3));
}

TEST(Checkpoint, EveryMicroBatchHasUnitsOfItsOwn) {
  TinyProgram p;
  const ModuleId layers = p.module(p.root, "layers", "ModuleList");
  const ModuleId first = p.module(layers, "0", "Block");
  p.module(layers, "1", "Block");
  for (std::uint32_t micro_batch = 0; micro_batch < 2; ++micro_batch) {
    p.pass(PassKind::kForward, micro_batch);
    const CallId call = p.enter(first, {});
    const TensorId a = p.op("aten.mm.default", {}, 100);
    const TensorId b = p.op("aten.mm.default", {a}, 10);
    const SaveId save = p.pack(a);
    p.free(a);
    p.exit(call, {b});
    p.pass(PassKind::kBackward, micro_batch);
    p.backward({save}, 5);
    p.free(b);
  }
  const Step step = p.finish();
  const Plan plan = plan::make_plan(step, {plan::PolicyKind::kFull}, {.preserve_rng = false});
  ASSERT_EQ(plan.units.size(), 2u);
  // Each: a, b (+110), a goes (+10); recompute: a, b again (+120), b' goes (+110), +5 = +115, a goes (+15), b goes
  // (+5).
  EXPECT_THAT(totals(replay(step, plan, {.keep_changes = true})),
              ElementsAre(100, 110, 10, 110, 120, 110, 115, 15, 5,  //
                          105, 115, 15, 115, 125, 115, 120, 20, 10));
}

TEST(Checkpoint, AUnitWithoutSavesLetsGoOfItsFrameAtItsExit) {
  TinyProgram p;
  const ModuleId module = p.module(p.root, "block", "Block");
  p.pass(PassKind::kForward);
  const TensorId x = p.op("aten.mm.default", {}, 100);
  const CallId block = p.enter(module, {x});
  p.op("aten.mm.default", {x}, 10);
  p.free(x);
  const TensorId y = p.op("aten.mm.default", {}, 1);
  p.exit(block, {y});
  const Step step = p.finish();
  // x 100, 110; the program lets go of x, and the frame holds it: 111; with exit it dies: 11.
  EXPECT_THAT(totals(replay(step, {{{block, {}, false, true}}}, {.keep_changes = true})),
              ElementsAre(100, 110, 111, 11));
}

TEST(Checkpoint, RefusesPlansThatAreNotOfThisStep) {
  Chain chain;
  const CallId net(0);
  const CallId block = chain.block;
  const OpId embedding(0);
  const OpId op = chain.op_a;
  const Step step = chain.finish();
  const auto replayed = [&](const Plan& plan) { return replay(step, plan); };
  EXPECT_THROW(replayed({{{CallId(99), {}}}}), Error);
  EXPECT_THROW(replayed({{{CallId(), {}}}}), Error);
  EXPECT_THROW(replayed({{{net, {}}, {block, {}}}}), Error);
  EXPECT_THROW(replayed({{{block, {}}, {block, {}}}}), Error);
  EXPECT_THROW(replayed({{{block, {embedding}}}}), Error);
  EXPECT_THROW(replayed({{{block, {op, op}}}}), Error);
  EXPECT_THROW(replayed({{{block, {OpId(99)}}}}), Error);
}

}  // namespace
}  // namespace tidemark::memory
