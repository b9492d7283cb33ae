// Steps of nets with parameters that are not trained.

#include "tidemark/nn/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tidemark/base/error.h"
#include "tidemark/nn/functional.h"
#include "tidemark/nn/layers.h"
#include "tidemark/ops/aten.h"

namespace tidemark::nn {
namespace {

// Two layers in a row, the first one perhaps frozen or without use.
struct TwoLayers {
  Runtime rt{Target::kCpu};
  Net net{rt, DType::kFloat32};
  step::ModuleId root = net.add_module({}, "", "TwoLayers");
  Linear first{net, root, "first", 4, 4, false};
  Linear second{net, root, "second", 4, 4, false};
  Tensor x = rt.leaf(DType::kFloat32, {2, 4}, false);

  step::Step record(bool uses_first, const Training& training) {
    return record_step(
        net, {x}, [&] { return ops::sum(rt, second(uses_first ? first(x) : x)); }, training);
  }
};

int count_of(const step::Step& step, std::string_view name) {
  int count = 0;
  for (const step::Op& op : step.tables().ops) count += step.text(op.name) == name ? 1 : 0;
  return count;
}

int storages_of(const step::Step& step, step::Role role) {
  int count = 0;
  for (const step::Storage& storage : step.tables().storages) count += storage.role == role ? 1 : 0;
  return count;
}

TEST(Training, AFrozenParameterHasNeitherGradientNorState) {
  for (const OptimizerForm form : {OptimizerForm::kForLoop, OptimizerForm::kForeach, OptimizerForm::kFused}) {
    TwoLayers net;
    net.net.parameters()[0]->requires_grad = false;
    const step::Step step = net.record(true, {.form = form, .clip_norm = 1.0});
    EXPECT_EQ(storages_of(step, step::Role::kParameter), 2);
    // Of the second layer: what the step before left and what this one makes; step count and two averages.
    EXPECT_EQ(storages_of(step, step::Role::kGradient), 2);
    EXPECT_EQ(storages_of(step, step::Role::kOptimizerState), 3);
    // Forward runs both layers; backward has the product for the second weight alone.
    EXPECT_EQ(count_of(step, "aten.mm.default"), 3);
  }
}

TEST(Training, AParameterWithoutUseIsNamed) {
  TwoLayers net;
  try {
    net.record(false, {.clip_norm = 1.0});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("[first.weight] the loss does not depend on this parameter"));
  }
}

}  // namespace
}  // namespace tidemark::nn
