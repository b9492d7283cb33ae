#include "tidemark/planner/ties.h"

#include <gtest/gtest.h>

#include "tidemark/zoo/record.h"

namespace tidemark::planner {
namespace {

// Eight equal layers, each with a unit for itself, as small as they get.
class Ties : public ::testing::Test {
 protected:
  Ties()
      : step_(zoo::record(zoo::ToyGptConfig{.layers = 8}, {})),
        space_(find_space(step_, Times{.op_ps = std::vector<std::int64_t>(step_.tables().ops.size(), 1)})),
        order_(step_, space_) {}

  plan::Plan plan_of(const std::vector<int>& layers) const {
    plan::Plan plan;
    for (const int layer : layers)
      for (const Candidate& candidate : space_.candidates)
        if (step_.fqn(step_[candidate.call].module) == "layers." + std::to_string(layer))
          plan.units.push_back({.call = candidate.call, .saved_ops = {}});
    return plan;
  }

  step::Step step_;
  Space space_;
  TieOrder order_;
};

// Of eight layers, none chosen: 9 * 9 = 81. Those at 2 and 5: 3 * 3 + 3 * 3 + 3 * 3 = 27, 54 less. Those at 0 and 1:
// 1 + 1 + 7 * 7 = 51, 30 less. Other names of modules add the same to all.
TEST_F(Ties, EvenPlansAreSpreadOverEqualLayers) {
  const std::int64_t none = order_.unevenness({});
  EXPECT_EQ(order_.unevenness(plan_of({2, 5})), none - 54);
  EXPECT_EQ(order_.unevenness(plan_of({5, 2})), none - 54);
  EXPECT_EQ(order_.unevenness(plan_of({0, 1})), none - 30);
}

TEST_F(Ties, FewerUnitsThenEvenThenFirst) {
  const auto is_better = [&](const std::vector<int>& a, const std::vector<int>& b) {
    EXPECT_FALSE(order_.is_better(plan_of(b), plan_of(a)));
    return order_.is_better(plan_of(a), plan_of(b));
  };
  EXPECT_TRUE(is_better({7}, {2, 5}));
  EXPECT_TRUE(is_better({2, 5}, {0, 1}));
  // 4 * 4 + 5 * 5 for both.
  EXPECT_TRUE(is_better({3}, {4}));
  EXPECT_FALSE(is_better({3}, {3}));
}

// Of two saved ops, the one that runs first.
TEST_F(Ties, ThenByTheOpsThatAreSaved) {
  plan::Plan a = plan_of({3});
  plan::Plan b = a;
  const auto& region = space_.index.regions[a.units[0].call.index()];
  std::vector<step::OpId> ops;
  for (std::uint32_t at = region.begin; at < region.end; ++at)
    if (step_.tables().events[at].kind == step::EventKind::kBegin) ops.emplace_back(step_.tables().events[at].id);
  ASSERT_GT(ops.size(), 1u);
  a.units[0].saved_ops = {ops[0]};
  b.units[0].saved_ops = {ops[1]};
  EXPECT_TRUE(order_.is_better(a, b));
  EXPECT_FALSE(order_.is_better(b, a));
  EXPECT_TRUE(order_.is_better(plan_of({3}), a));
}

}  // namespace
}  // namespace tidemark::planner
