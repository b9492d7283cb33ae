// The tape on small programs whose saves, gradients and frees are worked out by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tidemark/base/error.h"
#include "tidemark/fake/runtime.h"
#include "tidemark/ops/aten.h"
#include "tidemark/ops/autograd.h"

namespace tidemark::fake {
namespace {

using ops::DType;
using ops::Tensor;

// A runtime that records from its first op on.
struct Program {
  Program() { rt.recorder().begin(); }

  Tensor parameter(const ops::Dims& sizes) {
    Tensor t = rt.leaf(DType::kFloat32, sizes, true);
    rt.recorder().know(*t->storage, step::Role::kParameter, nullptr);
    return t;
  }
  Tensor input(const ops::Dims& sizes) {
    Tensor t = rt.leaf(DType::kFloat32, sizes, false);
    rt.recorder().know(*t->storage, step::Role::kInput, nullptr);
    return t;
  }
  step::Step finish() { return std::move(rt.recorder()).end(); }

  Runtime rt{Target::kCpu};
};

std::vector<std::string> op_names(const step::Step& step) {
  std::vector<std::string> names;
  for (const step::Op& op : step.tables().ops) names.emplace_back(step.text(op.name));
  return names;
}

const Tensor& grad(const Tensor& leaf) { return leaf->accumulator->grad; }

TEST(Tape, AProductKeepsOnlyWhatTheWantedGradientsNeed) {
  Program p;
  Tensor w = p.parameter({4});
  const Tensor x = p.input({4});
  Tensor y = ops::mul(p.rt, x, w);
  Tensor loss = ops::sum(p.rt, y);
  y.reset();
  p.rt.backward(loss);
  loss.reset();
  const step::Step step = p.finish();
  // Only the gradient of w is wanted, and that needs x.
  ASSERT_EQ(step.tables().saves.size(), 1u);
  EXPECT_EQ(step[step[step.tables().saves[0].tensor].storage].role, step::Role::kInput);
  EXPECT_EQ(op_names(step), (std::vector<std::string>{"aten.mul.Tensor", "aten.sum.default", "aten.ones_like.default",
                                                      "aten.expand.default", "aten.mul.Tensor"}));
}

TEST(Tape, TheFirstGradientIsTakenOver) {
  Program p;
  Tensor w = p.parameter({4});
  const Tensor x = p.input({4});
  Tensor loss = ops::sum(p.rt, ops::mul(p.rt, x, w));
  p.rt.backward(loss);
  const step::StorageId made = grad(w)->storage->id;
  loss.reset();
  const step::Step step = p.finish();
  // The storage that the product's backward made is the gradient: nothing was copied.
  const step::Op& last = step.tables().ops.back();
  EXPECT_EQ(step.text(last.name), "aten.mul.Tensor");
  EXPECT_EQ(step[step.outputs(last)[0].tensor].storage, made);
}

TEST(Tape, AGradientThatOthersHoldIsCloned) {
  Program p;
  Tensor a = p.parameter({4});
  Tensor b = p.parameter({4});
  Tensor loss = ops::sum(p.rt, ops::add(p.rt, a, b));
  p.rt.backward(loss);
  // The sum's gradient is an expanded number, whose layout is not the leaf's: each leaf gets a copy of its own.
  EXPECT_NE(grad(a)->storage, grad(b)->storage);
  loss.reset();
  const step::Step step = p.finish();
  const std::vector<std::string> names = op_names(step);
  EXPECT_EQ(std::count(names.begin(), names.end(), "aten.copy_.default"), 2);
}

TEST(Tape, ASecondGradientIsAddedInPlaceWhereNobodyElseHoldsTheFirst) {
  Program p;
  Tensor w = p.parameter({4});
  const Tensor x = p.input({4});
  Tensor loss;
  {
    const Tensor first = ops::mul(p.rt, x, w);
    const Tensor second = ops::mul(p.rt, x, w);
    loss = ops::sum(p.rt, ops::add(p.rt, first, second));
  }
  p.rt.backward(loss);
  loss.reset();
  const step::Step step = p.finish();
  const step::Op& last = step.tables().ops.back();
  EXPECT_EQ(step.text(last.name), "aten.add.Tensor");
  EXPECT_TRUE(last.flags.has(step::OpFlag::kUnwatched));
  EXPECT_EQ(step.outputs(last)[0].alias, step::AliasKind::kMutates);
}

TEST(Tape, NothingIsBuiltWithoutGradients) {
  Program p;
  Tensor w = p.parameter({4});
  {
    const NoGrad no_grad(p.rt);
    const Tensor y = ops::mul(p.rt, w, w);
    EXPECT_FALSE(y.needs_grad());
  }
  const step::Step step = p.finish();
  EXPECT_TRUE(step.tables().nodes.empty());
  EXPECT_EQ(step.tables().regions.size(), 1u);
}

TEST(Tape, AFrozenParameterGetsNoGradientAndCostsNoSave) {
  Program p;
  Tensor frozen = p.parameter({4, 4});
  frozen->requires_grad = false;
  Tensor w = p.parameter({4, 4});
  const Tensor x = p.input({2, 4});
  Tensor hidden = ops::mm(p.rt, x, frozen);
  Tensor loss = ops::sum(p.rt, ops::mm(p.rt, hidden, w));
  hidden.reset();
  p.rt.backward(loss);
  EXPECT_EQ(frozen->accumulator, nullptr);
  EXPECT_TRUE(grad(w));
  loss.reset();
  // Only the second product has a node, and it keeps its left factor alone.
  EXPECT_EQ(p.finish().tables().saves.size(), 1u);
}

TEST(Tape, ANumberInATensorsPlaceIsKeptOutOfTheHooksSight) {
  Program p;
  Tensor w = p.parameter({4});
  Tensor loss = ops::sum(p.rt, ops::mul(p.rt, w, 0.5));
  p.rt.backward(loss);
  loss.reset();
  const step::Step step = p.finish();
  ASSERT_EQ(step.tables().saves.size(), 1u);
  EXPECT_FALSE(step.tables().saves[0].hooked);
  EXPECT_EQ(step[step[step.tables().saves[0].tensor].storage].bytes, 8);  // a double
}

// An op whose row has no backward would cut a parameter off without a word.
TEST(Tape, AGradientIsNotLostSilently) {
  static const ops::Op cumprod("aten.cumprod.default");
  Program p;
  const Tensor w = p.parameter({4});
  try {
    cumprod(p.rt, {{"self", w}, {"dim", 0}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no backward of this op"));
    EXPECT_THAT(error.what(), testing::HasSubstr("tidemark/ops/reduce.cpp"));
  }
  const NoGrad no_grad(p.rt);
  EXPECT_NO_THROW(cumprod(p.rt, {{"self", w}, {"dim", 0}}));
}

TEST(Tape, ALossWithoutParametersIsRefused) {
  Program p;
  const Tensor loss = ops::sum(p.rt, p.input({4}));
  EXPECT_THROW(p.rt.backward(loss), Error);
}

}  // namespace
}  // namespace tidemark::fake
