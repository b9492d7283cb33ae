// Replay without a plan: figures worked out by hand.

#include "tidemark/memory/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/small_step.h"
#include "../support/tiny_program.h"
#include "tidemark/base/error.h"

namespace tidemark::memory {
namespace {

using namespace step;
using test::SmallStep;
using test::TinyProgram;
using ::testing::ElementsAre;

std::int64_t at_peak(const Timeline& timeline, Category category) {
  return timeline.peak_by_category[static_cast<std::size_t>(category)];
}

std::vector<std::int64_t> totals(const Timeline& timeline) {
  std::vector<std::int64_t> list;
  for (const Change& change : timeline.changes) list.push_back(change.total_bytes);
  return list;
}

TEST(Replay, CountsWhatTheProgramAndAutogradHold) {
  SmallStep small;
  small.add_events();
  const Step step = std::move(small.b).finish();
  const Timeline timeline = replay(step, {}, {.keep_changes = true});
  // The input's 16 B are there at the start. The op makes 16 (32), which the save holds over the program's free; the
  // backward op makes 16 (48); with the release the first ones die (32).
  EXPECT_EQ(timeline.start_bytes, 16);
  EXPECT_THAT(totals(timeline), ElementsAre(32, 48, 32));
  EXPECT_EQ(timeline.peak.total_bytes, 48);
  EXPECT_EQ(timeline.peak.op, small.backward_op);
  EXPECT_EQ(timeline.peak.pass, small.backward);
  EXPECT_EQ(timeline.peak.call, small.call);
  EXPECT_EQ(timeline.end_bytes, 32);
  EXPECT_EQ(at_peak(timeline, Category::kInput), 16);
  EXPECT_EQ(at_peak(timeline, Category::kActivation), 16);
  EXPECT_EQ(at_peak(timeline, Category::kTemporary), 16);
  EXPECT_THAT(
      timeline.alive_at_end,
      ElementsAre(Leftover{{BlockKind::kOriginal, small.input_storage.value(), 0}, 16, EndReason::kResident},
                  Leftover{{BlockKind::kOriginal, small.gradient_storage.value(), 0}, 16, EndReason::kProgram}));
  EXPECT_EQ(timeline.calls[0], (CallPeak{32, 48}));
}

TEST(Replay, AStepWithoutEventsHasItsPeakAtTheStart) {
  TinyProgram p;
  p.resident(Role::kParameter, 7);
  p.resident(Role::kBuffer, 5);
  const Timeline timeline = replay(p.finish(), {});
  EXPECT_EQ(timeline.peak.total_bytes, 12);
  EXPECT_EQ(timeline.peak.event, kNoEvent);
  EXPECT_EQ(timeline.peak_change, 0);
  EXPECT_EQ(timeline.alive_at_peak.size(), 2u);
  EXPECT_TRUE(timeline.runners_up.empty());
}

TEST(Replay, AnUnpackedTensorLivesOnAfterItsSaveIsReleased) {
  TinyProgram p;
  p.pass(PassKind::kForward);
  const TensorId x = p.op("aten.mm.default", {}, 10);
  const SaveId save = p.pack(x);
  p.free(x);
  p.b.unpack(save);
  p.b.release(save);
  p.op("aten.mm.default", {}, 5);
  p.b.drop(save);
  const Timeline timeline = replay(p.finish(), {}, {.keep_changes = true});
  EXPECT_THAT(totals(timeline), ElementsAre(10, 15, 5));
}

TEST(Replay, SaysWhyThingsAreAliveAtTheEnd) {
  TinyProgram p;
  const TensorId weight = p.resident(Role::kParameter, 1);
  p.pass(PassKind::kForward);
  const TensorId kept = p.op("aten.mm.default", {}, 2);
  const TensorId saved = p.op("aten.mm.default", {}, 4);
  const TensorId unpacked = p.op("aten.mm.default", {}, 8);
  p.pack(saved);
  const SaveId save = p.pack(unpacked);
  p.free(saved);
  p.free(unpacked);
  p.b.unpack(save);
  p.b.release(save);
  const auto block = [&](TensorId tensor) { return BlockId{BlockKind::kOriginal, p.storage(tensor).value(), 0}; };
  const std::vector<Leftover> expected = {{block(weight), 1, EndReason::kResident},
                                          {block(kept), 2, EndReason::kProgram},
                                          {block(saved), 4, EndReason::kSave},
                                          {block(unpacked), 8, EndReason::kUnpacked}};
  EXPECT_EQ(replay(p.finish(), {}).alive_at_end, expected);
}

TEST(Replay, AResizeIsAFreeAndAnAlloc) {
  TinyProgram p;
  p.pass(PassKind::kForward);
  const TensorId x = p.op("aten.mm.default", {}, 100);
  p.b.resize(p.storage(x), 0);
  p.b.resize(p.storage(x), 30);
  const Timeline timeline = replay(p.finish(), {}, {.keep_changes = true});
  EXPECT_THAT(totals(timeline), ElementsAre(100, 0, 0, 0, 30));
  EXPECT_EQ(timeline.end_bytes, 30);
}

TEST(Replay, RoundsEveryStorageUp) {
  TinyProgram p;
  p.resident(Role::kInput, 1);  // 512
  p.resident(Role::kInput, 0);  // 0
  p.pass(PassKind::kForward);
  p.op("aten.mm.default", {}, 513);  // 1,024
  EXPECT_EQ(replay(p.finish(), {}, {.round_to_bytes = 512}).peak.total_bytes, 1536);
}

TEST(Replay, ThePeakIsTheFirstMomentThatReachesIt) {
  TinyProgram p;
  p.pass(PassKind::kForward);
  const TensorId x = p.op("aten.mm.default", {}, 10);
  const OpId first = p.last_op();
  p.free(x);
  p.op("aten.mm.default", {}, 10);
  EXPECT_EQ(replay(p.finish(), {}).peak.op, first);
}

TEST(Replay, NamesTheNextHighestStretches) {
  TinyProgram p;
  const ModuleId a = p.module(p.root, "a", "Linear");
  const ModuleId b = p.module(p.root, "b", "Linear");
  p.pass(PassKind::kForward);
  const CallId in_a = p.enter(a, {});
  p.op("aten.mm.default", {}, 10);  // 10
  p.exit(in_a, {});
  const CallId in_b = p.enter(b, {});
  const TensorId y = p.op("aten.mm.default", {}, 5);  // 15
  p.exit(in_b, {});
  p.free(y);                       // 10
  p.op("aten.mm.default", {}, 3);  // 13, in no module
  const Timeline timeline = replay(p.finish(), {});
  EXPECT_EQ(timeline.peak.call, in_b);
  ASSERT_EQ(timeline.runners_up.size(), 2u);
  EXPECT_EQ(timeline.runners_up[0].total_bytes, 13);
  EXPECT_EQ(timeline.runners_up[0].call, CallId());
  EXPECT_EQ(timeline.runners_up[1].total_bytes, 10);
  EXPECT_EQ(timeline.runners_up[1].call, in_a);
  EXPECT_EQ(timeline.calls[in_a.index()].forward_bytes, 10);
  EXPECT_EQ(timeline.calls[in_b.index()].forward_bytes, 15);
  EXPECT_EQ(timeline.calls[in_b.index()].backward_bytes, CallPeak::kNever);
}

TEST(Replay, RefusesTotalsThatDoNotFit) {
  TinyProgram p;
  p.resident(Role::kInput, std::int64_t{1} << 61);
  p.pass(PassKind::kForward);
  const TensorId x = p.op("aten.mm.default", {}, 1);
  static_cast<void>(x);
  const std::string key = "aten.mm.default(){}";
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const WorkspaceTable table{"",
                             {{key, {{WorkspaceStepKind::kTake, kHuge}, {WorkspaceStepKind::kTake, kHuge}}, false}}};
  EXPECT_THROW(replay(p.finish(), {}, {.workspace = &table}), Error);
}

TEST(Replay, RefusesOptionsOutOfRange) {
  TinyProgram p;
  const Step step = p.finish();
  EXPECT_THROW(replay(step, {}, {.round_to_bytes = 0}), Error);
  EXPECT_THROW(replay(step, {}, {.runner_up_count = 1000}), Error);
}

}  // namespace
}  // namespace tidemark::memory
