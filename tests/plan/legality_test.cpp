// What a plan may not do.

#include "tidemark/plan/legality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/tiny_program.h"
#include "tidemark/base/error.h"

namespace tidemark::plan {
namespace {

using namespace step;
using test::TinyProgram;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<ViolationKind> kinds(const Step& step, const Plan& plan) {
  std::vector<ViolationKind> list;
  for (const Violation& violation : check(step, plan)) list.push_back(violation.kind);
  return list;
}

// A net whose block runs `body` and saves one tensor more.
template <class Body>
Step in_block(const Body& body) {
  TinyProgram p;
  const ModuleId block = p.module(p.root, "block", "Block");
  const TensorId x = p.resident(Role::kInput, 10);
  p.pass(PassKind::kForward);
  const CallId net = p.enter(p.root, {x});
  const CallId call = p.enter(block, {x});
  p.pack(x);
  body(p, x);
  p.exit(call, {});
  p.exit(net, {});
  return p.finish();
}
constexpr CallId kNet(0);
constexpr CallId kBlock(1);

TEST(Legality, AFullCheckpointOfPlainOpsIsLegal) {
  const Step step = in_block([](TinyProgram& p, TensorId x) { p.op("aten.mm.default", {x}, 20); });
  EXPECT_THAT(kinds(step, {{{kBlock, {}}}}), IsEmpty());
  EXPECT_THAT(kinds(step, {{{kBlock, {OpId(0)}}}}), IsEmpty());
  EXPECT_NO_THROW(require_legal(step, {{{kNet, {}}}}));
}

TEST(Legality, UnitsDoNotNest) {
  const Step step = in_block([](TinyProgram& p, TensorId x) { p.op("aten.mm.default", {x}, 20); });
  EXPECT_THAT(kinds(step, {{{kBlock, {}}, {kNet, {}}}}), ElementsAre(ViolationKind::kOverlap));
  EXPECT_THAT(kinds(step, {{{kBlock, {}}, {kBlock, {}}}}), ElementsAre(ViolationKind::kOverlap));
  EXPECT_THROW(require_legal(step, {{{kNet, {}}, {kBlock, {}}}}), Error);
}

TEST(Legality, UnitsAndOpsExist) {
  const Step step = in_block([](TinyProgram& p, TensorId x) { p.op("aten.mm.default", {x}, 20); });
  EXPECT_THAT(kinds(step, {{{CallId(5), {}}}}), ElementsAre(ViolationKind::kNoSuchCall));
  EXPECT_THAT(kinds(step, {{{kBlock, {OpId(5)}}}}), ElementsAre(ViolationKind::kNoSuchOp));
  EXPECT_THAT(kinds(step, {{{kBlock, {OpId(0), OpId(0)}}}}), ElementsAre(ViolationKind::kOrder));
}

TEST(Legality, AUnitRunsInAForwardPassAndHasSaves) {
  TinyProgram p;
  p.pass(PassKind::kRecompute);
  const CallId again = p.enter(p.root, {});
  p.exit(again, {});
  p.pass(PassKind::kForward);
  const CallId empty = p.enter(p.root, {});
  p.exit(empty, {});
  const CallId with_backward = p.enter(p.root, {});
  const SaveId save = p.pack(p.op("aten.mm.default", {}, 1));
  p.b.unpack(save);
  p.exit(with_backward, {});
  const Step step = p.finish();
  EXPECT_THAT(kinds(step, {{{again, {}}}}), ElementsAre(ViolationKind::kNotForward));
  EXPECT_THAT(kinds(step, {{{empty, {}}}}), ElementsAre(ViolationKind::kNoSaves));
  EXPECT_THAT(kinds(step, {{{with_backward, {}}}}), ElementsAre(ViolationKind::kBackwardInside));
}

TEST(Legality, ViewsAndChangedTensorsAreNotSaved) {
  const Step step = in_block([](TinyProgram& p, TensorId x) {
    const TensorId a = p.op("aten.empty_like.default", {x}, 20);  // op 0
    p.change(a);                                                  // op 1
    const TensorId b = p.op("aten.mm.default", {x}, 20);          // op 2
    p.view(b);                                                    // op 3
  });
  EXPECT_THAT(kinds(step, {{{kBlock, {OpId(0)}}}}), ElementsAre(ViolationKind::kCannotSave));
  EXPECT_THAT(kinds(step, {{{kBlock, {OpId(1)}}}}), ElementsAre(ViolationKind::kCannotSave));
  EXPECT_THAT(kinds(step, {{{kBlock, {OpId(2)}}}}), IsEmpty());
  EXPECT_THAT(kinds(step, {{{kBlock, {OpId(3)}}}}), ElementsAre(ViolationKind::kPartOfGroup));
  EXPECT_THAT(kinds(step, {{{kBlock, {OpId(2), OpId(3)}}}}), ElementsAre(ViolationKind::kCannotSave));
}

TEST(Legality, OpsThatMustNotRunTwiceAreSaved) {
  const Step step = in_block([](TinyProgram& p, TensorId x) {
    p.op("_c10d_functional.all_gather_into_tensor.default", {x}, 20, OpFlag::kCollective);
  });
  EXPECT_THAT(kinds(step, {{{kBlock, {}}}}), ElementsAre(ViolationKind::kMustSave));
  EXPECT_THAT(kinds(step, {{{kBlock, {OpId(0)}}}}), IsEmpty());
}

TEST(Legality, RandomOpsNeedTheRngStateOrAreSavedTogether) {
  const Step step = in_block([](TinyProgram& p, TensorId x) {
    p.op("aten.native_dropout.default", {x}, 20, OpFlag::kRandom);
    p.op("aten.native_dropout.default", {x}, 20, OpFlag::kRandom);
  });
  EXPECT_THAT(kinds(step, {{{kBlock, {}}}}), IsEmpty());
  EXPECT_THAT(kinds(step, {{{kBlock, {}, false}}}), ElementsAre(ViolationKind::kRandom));
  EXPECT_THAT(kinds(step, {{{kBlock, {OpId(0)}}}}), ElementsAre(ViolationKind::kPartOfGroup));
  EXPECT_THAT(kinds(step, {{{kBlock, {OpId(0), OpId(1)}, false}}}), IsEmpty());
}

// The block reads x and a buffer; somebody writes into one of them.
enum class Writer { kNobody, kItself, kCaller, kOptimizer };
struct Written {
  Step step;
  CallId block;
  OpId first;  // of the block
};
Written written(Writer writer, Role role, bool has_backward = true) {
  TinyProgram p;
  const ModuleId block = p.module(p.root, "block", "Block");
  const TensorId x = p.resident(Role::kInput, 10);
  const TensorId read = p.resident(role, 10);
  p.pass(PassKind::kForward);
  const CallId net = p.enter(p.root, {x});
  const CallId call = p.enter(block, {x});
  const TensorId y = p.op("aten.add.Tensor", {x, read}, 20);
  const OpId first = p.last_op();
  const SaveId save = p.pack(y);
  if (writer == Writer::kItself) p.change(read);
  p.exit(call, {y});
  if (writer == Writer::kCaller) p.change(read);
  p.exit(net, {y});
  p.pass(PassKind::kBackward);
  if (has_backward) p.backward({save}, 5);
  p.pass(PassKind::kOptimizer);
  if (writer == Writer::kOptimizer) p.change(read);
  return {p.finish(), call, first};
}

TEST(Legality, WhatAUnitReadsIsNotWrittenBeforeItsRecompute) {
  const auto found = [](Writer writer, Role role, bool has_backward = true) {
    const Written w = written(writer, role, has_backward);
    return kinds(w.step, {{{w.block, {}}}});
  };
  for (const Role role : {Role::kInput, Role::kParameter, Role::kBuffer}) {
    EXPECT_THAT(found(Writer::kNobody, role), IsEmpty());
    EXPECT_THAT(found(Writer::kCaller, role), ElementsAre(ViolationKind::kOverwritten));
    EXPECT_THAT(found(Writer::kOptimizer, role), IsEmpty());      // after its backward
    EXPECT_THAT(found(Writer::kCaller, role, false), IsEmpty());  // never recomputed
  }
  EXPECT_THAT(found(Writer::kItself, Role::kInput), ElementsAre(ViolationKind::kOverwritten));
  EXPECT_THAT(found(Writer::kItself, Role::kParameter), ElementsAre(ViolationKind::kOverwritten));
  EXPECT_THAT(found(Writer::kItself, Role::kBuffer), IsEmpty());  // is put back
}

// backward(retain_graph=True) and another one; or two losses that each need one of two tensors the call keeps.
TEST(Legality, EveryBackwardOfAUnitWouldRecomputeIt) {
  const auto found = [](bool is_first_kept, bool is_one_backward) {
    TinyProgram p;
    const ModuleId block = p.module(p.root, "block", "Block");
    const TensorId x = p.resident(Role::kInput, 10);
    p.pass(PassKind::kForward);
    const CallId call = p.enter(block, {x});
    const TensorId y = p.op("aten.mm.default", {x}, 20);
    const SaveId first = p.pack(y);
    const SaveId second = p.pack(x);
    p.exit(call, {y});
    p.pass(PassKind::kBackward, 0);
    if (is_first_kept) {
      p.b.node(p.b.tables().saves[first.index()].node);
      p.b.unpack(first);
      p.b.drop(first);
      p.b.done(p.b.tables().saves[first.index()].node);
    } else {
      p.backward({first}, 5);
    }
    if (!is_one_backward) p.pass(PassKind::kBackward, 1);
    if (is_first_kept) p.backward({first}, 5);
    if (!is_first_kept) p.backward({second}, 5);
    const Step step = p.finish();
    return kinds(step, {{{call, {}}}});
  };
  EXPECT_THAT(found(true, false), ElementsAre(ViolationKind::kSeveralBackwards));
  EXPECT_THAT(found(false, false), ElementsAre(ViolationKind::kSeveralBackwards));
  EXPECT_THAT(found(false, true), IsEmpty());
}

// The caller's write is inside the root's call, which would do it again.
TEST(Legality, AUnitAroundTheWriteRepeatsIt) {
  const Written w = written(Writer::kCaller, Role::kInput);
  EXPECT_THAT(kinds(w.step, {{{kNet, {}}}}), ElementsAre(ViolationKind::kOverwritten));
}

TEST(Legality, WhatIsSavedIsNotChangedAfterTheCall) {
  TinyProgram p;
  const ModuleId block = p.module(p.root, "block", "Block");
  const TensorId x = p.resident(Role::kInput, 10);
  p.pass(PassKind::kForward);
  const CallId call = p.enter(block, {x});
  const TensorId y = p.op("aten.mm.default", {x}, 20);
  const OpId first = p.last_op();
  const TensorId z = p.op("aten.mm.default", {x}, 20);
  const SaveId save = p.pack(x);
  p.exit(call, {y, z});
  p.change(y);
  p.pass(PassKind::kBackward);
  p.backward({save}, 5);
  const Step step = p.finish();
  EXPECT_THAT(kinds(step, {{{call, {}}}}), IsEmpty());  // y is made anew
  EXPECT_THAT(kinds(step, {{{call, {first}}}}), ElementsAre(ViolationKind::kCannotSave));
  EXPECT_THAT(kinds(step, {{{call, {OpId(first.value() + 1)}}}}), IsEmpty());
}

}  // namespace
}  // namespace tidemark::plan
