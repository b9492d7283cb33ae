// Which ops are saved together, and which cannot be.

#include "tidemark/plan/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/random_step.h"
#include "../support/tiny_program.h"
#include "tidemark/base/error.h"

namespace tidemark::plan {
namespace {

using namespace step;
using test::TinyProgram;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A program inside one call of a module that is given `x` of 10 B.
struct InCall {
  TinyProgram p;
  TensorId x;
  CallId call;

  InCall() {
    x = p.resident(Role::kInput, 10);
    p.pass(PassKind::kForward);
    call = p.enter(p.root, {x});
  }

  std::vector<Group> groups() {
    p.exit(call, {});
    return find_groups(p.finish(), call);
  }
};

TEST(Groups, AViewBelongsToTheOpThatMadeItsStorage) {
  InCall c;
  const TensorId a = c.p.op("aten.mm.default", {c.x}, 20);
  const OpId mm = c.p.last_op();
  const TensorId b = c.p.op("aten.gelu.default", {a}, 30);
  const OpId gelu = c.p.last_op();
  c.p.view(a);
  const OpId view = c.p.last_op();
  static_cast<void>(b);
  const auto groups = c.groups();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].ops, ElementsAre(mm, view));
  EXPECT_THAT(groups[0].savers, ElementsAre(mm));
  EXPECT_TRUE(groups[0].can_save());
  EXPECT_EQ(groups[0].saved_bytes, 20);
  EXPECT_THAT(groups[1].ops, ElementsAre(gelu));
  EXPECT_FALSE(groups[1].must_save);
}

TEST(Groups, WhatIsChangedInPlaceCannotBeSaved) {
  InCall c;
  const TensorId a = c.p.op("aten.empty_like.default", {c.x}, 20);
  c.p.change(a);
  const auto groups = c.groups();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].ops.size(), 2u);
  EXPECT_EQ(groups[0].obstacle, SaveObstacle::kChanged);
}

TEST(Groups, AViewOrChangeOfWhatTheUnitIsGivenMakesNothingNew) {
  InCall c;
  c.p.view(c.x);
  c.p.change(c.x);
  const auto groups = c.groups();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].obstacle, SaveObstacle::kNothingFresh);
  EXPECT_THAT(groups[0].savers, IsEmpty());
  EXPECT_EQ(groups[1].obstacle, SaveObstacle::kNothingFresh);
}

TEST(Groups, AnOpThatAlsoUpdatesABufferCanBeSaved) {
  InCall c;
  const TensorId out = c.p.fresh(20);
  const Tensor old = c.p.b.tables().tensors[c.x.index()];
  const TensorId updated = c.p.b.add_tensor({old.storage, 1, old.layout, 0, false});
  c.p.run("aten._native_batch_norm_legit.default", {c.x},
          {{out, AliasKind::kFresh, 0}, {updated, AliasKind::kMutates, 0}});
  const auto groups = c.groups();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(groups[0].can_save());
  EXPECT_EQ(groups[0].saved_bytes, 20);  // the buffer is there anyway
}

TEST(Groups, AnOpThatReturnsAViewBesideWhatItMakesCannotBeSaved) {
  InCall c;
  const TensorId out = c.p.fresh(20);
  const Tensor old = c.p.b.tables().tensors[c.x.index()];
  const TensorId view = c.p.b.add_tensor({old.storage, 0, old.layout, 0, true});
  c.p.run("my.both.default", {c.x}, {{out, AliasKind::kFresh, 0}, {view, AliasKind::kView, 0}});
  EXPECT_EQ(c.groups()[0].obstacle, SaveObstacle::kView);
}

TEST(Groups, RandomOpsOfAUnitGoTogether) {
  InCall c;
  const TensorId a = c.p.op("aten.native_dropout.default", {c.x}, 20, OpFlag::kRandom);
  const OpId first = c.p.last_op();
  c.p.op("aten.gelu.default", {a}, 5);
  c.p.op("aten.native_dropout.default", {a}, 30, OpFlag::kRandom);
  const OpId second = c.p.last_op();
  const auto groups = c.groups();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].savers, ElementsAre(first, second));
  EXPECT_TRUE(groups[0].is_random);
  EXPECT_EQ(groups[0].saved_bytes, 50);
}

TEST(Groups, AllOutputsOfASavedOpAreHeld) {
  InCall c;
  const TensorId a = c.p.fresh(20);
  const TensorId b = c.p.fresh(3);
  c.p.run("aten._scaled_dot_product_flash_attention.default", {c.x},
          {{a, AliasKind::kFresh, 0}, {b, AliasKind::kFresh, 0}});
  EXPECT_EQ(c.groups()[0].saved_bytes, 23);
}

TEST(Groups, AnOpWithoutOutputsCanBeSavedForNothing) {
  InCall c;
  c.p.run("aten._local_scalar_dense.default", {c.x}, {}, OpFlag::kHostCopy);
  const auto groups = c.groups();
  EXPECT_TRUE(groups[0].can_save());
  EXPECT_TRUE(groups[0].must_save);
  EXPECT_EQ(groups[0].saved_bytes, 0);
}

TEST(Groups, FlagsSayWhatMustBeSaved) {
  for (const OpFlag flag : {OpFlag::kMustSave, OpFlag::kCollective, OpFlag::kSideEffect, OpFlag::kRouting,
                            OpFlag::kDataDependent, OpFlag::kHostCopy})
    EXPECT_TRUE(must_be_saved(flag));
  EXPECT_FALSE(must_be_saved(OpFlag::kRandom));
  EXPECT_FALSE(must_be_saved(OpFlag::kOpaque));
}

TEST(Groups, PartitionTheOpsOfEveryCall) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Step step = test::random_step(seed);
    const EventIndex index = index_events(step);
    for (std::uint32_t call = 0; call < step.tables().calls.size(); ++call) {
      std::vector<bool> seen(step.tables().ops.size(), false);
      for (const Group& group : find_groups(step, index, CallId(call))) {
        for (const OpId op : group.ops) {
          ASSERT_FALSE(seen[op.index()]);
          ASSERT_TRUE(index.regions[call].contains(index.begins[op.index()]));
          seen[op.index()] = true;
        }
        for (const OpId op : group.savers) ASSERT_TRUE(seen[op.index()]);
      }
      for (std::size_t op = 0; op < seen.size(); ++op)
        ASSERT_EQ(seen[op], index.regions[call].contains(index.begins[op]));
    }
  }
}

TEST(Groups, RefuseACallThatIsNotThere) {
  InCall c;
  c.p.exit(c.call, {});
  EXPECT_THROW(find_groups(c.p.finish(), CallId(7)), Error);
}

}  // namespace
}  // namespace tidemark::plan
