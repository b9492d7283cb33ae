// PyTorch's SAC estimator on its own test model, with its rules: every figure that was published or follows from it by
// hand. U = 8 x 1024 x 768 x 4 B is one hidden tensor, H = 4 U the wide one, M = U / 4 a dropout mask.

#include <gtest/gtest.h>

#include "../support/published_gpt.h"
#include "tidemark/cost/reference_roofline.h"
#include "tidemark/sac/module_graph.h"
#include "tidemark/sac/module_info.h"

namespace tidemark::sac {
namespace {

using cost::ReferenceLine;

step::CallId call_of(const step::Step& step, std::string_view fqn) {
  for (std::uint32_t i = 0; i < step.tables().calls.size(); ++i)
    if (step.fqn(step.tables().calls[i].module) == fqn) return step::CallId(i);
  throw std::runtime_error("no such call");
}

struct Block {
  ModuleOperators operators;
  GreedyOrder order;
  TradeOff trade_off;
};

Block block_on(ReferenceLine line, std::string_view device, Rules rules) {
  const step::Step step = test::published_gpt_step();
  const StepIndex index(step);
  const auto times = cost::reference_times_ms(step, cost::find_reference_hardware(line, device));
  Block block;
  block.operators = list_operators(index, call_of(step, "layers.0"), times, rules);
  block.order = greedy_order(index, block.operators, rules);
  block.trade_off = trade_off(block.operators, block.order, rules);
  return block;
}

TEST(Published, TheOperatorsOfABlock) {
  const Block block = block_on(ReferenceLine::kM, "a100-80-pcie", Rules::kReferenceM);
  EXPECT_EQ(block.operators.total_bytes, 491'258'880);  // 11 U + 2 H + 2 M + statistics, without the last sum
  EXPECT_NEAR(block.operators.total_ms, 5.1403, 1e-4);
  EXPECT_FALSE(block.operators.must_store_random);
}

TEST(Published, TheGreedyOrderOfABlock) {
  const Block block = block_on(ReferenceLine::kM, "a100-80-pcie", Rules::kReferenceM);
  std::vector<std::string> order;
  for (const Candidate& candidate : block.order.candidates)
    order.push_back(block.operators.operators[candidate.head].name);
  // The attention goes with both dropouts: all random ops go together.
  const std::vector<std::string> published = {"native_layer_norm",
                                              "native_layer_norm",
                                              "gelu",
                                              "add",
                                              "_scaled_dot_product_efficient_attention",
                                              "mm",
                                              "mm",
                                              "mm",
                                              "mm",
                                              "addmm",
                                              "addmm",
                                              "add"};
  EXPECT_EQ(order, published);
  EXPECT_EQ(block.order.candidates[4].bytes, 88'474'624);
  EXPECT_NEAR(block.order.candidates[4].ms, 0.93991, 1e-5);
}

TEST(Published, TheCurveOfABlock) {
  const Block block = block_on(ReferenceLine::kM, "a100-80-pcie", Rules::kReferenceM);
  const std::vector<CurvePoint> published = {{.01, 0},       {.0614, .0051}, {.1127, .0101}, {.3176, .0304},
                                             {.3689, .0380}, {.5490, .2208}, {.6002, .2851}, {.6514, .3494},
                                             {.7026, .4137}, {.7539, .4780}, {.9588, .7352}, {1.01, 1}};
  // w2 (U bytes) and the last sum (none) end at the same x, where the later one stays.
  ASSERT_EQ(block.trade_off.curve.size(), published.size());
  for (std::size_t i = 0; i < published.size(); ++i) {
    EXPECT_NEAR(block.trade_off.curve[i].x, published[i].x, 1e-4) << i;
    EXPECT_NEAR(block.trade_off.curve[i].y, published[i].y, 1e-4) << i;
  }
}

struct Fit {
  ReferenceLine line;
  const char* device;
  Rules rules;
  double at;
  double slopes[2];
  double intercepts[2];
};

TEST(Published, TheFitsOfABlock) {
  const Fit fits[] = {
      {ReferenceLine::kM, "a100-80-pcie", Rules::kReferenceM, 0.5232, {0.4377, 1.8386}, {-0.0153, -0.7483}},
      {ReferenceLine::kM, "m60", Rules::kReferenceM, 0.5647, {0.5493, 1.8555}, {-0.0198, -0.7574}},
      {ReferenceLine::kB, "h100-sxm", Rules::kReferenceB, 0.4979, {0.3881, 1.8322}, {-0.0231, -0.7420}},
  };
  for (const Fit& fit : fits) {
    const PiecewiseLine line = block_on(fit.line, fit.device, fit.rules).trade_off.fit;
    ASSERT_EQ(line.slopes.size(), 2U) << fit.device;
    EXPECT_NEAR(line.breaks[1], fit.at, 1e-4) << fit.device;
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(line.slopes[i], fit.slopes[i], 1e-4) << fit.device;
      EXPECT_NEAR(line.intercepts[i], fit.intercepts[i], 1e-4) << fit.device;
    }
  }
}

TEST(Published, TheBaseline) {
  const step::Step step = test::published_gpt_step();
  const auto times = cost::reference_times_ms(step, cost::find_reference_hardware(ReferenceLine::kM, "a100-80-pcie"));
  const ModuleInfo info = module_info(step, times, {.rules = Rules::kReferenceM, .device = {}});
  const ModuleGraph graph = build_module_graph(info);
  EXPECT_EQ(graph.nodes.size(), 62U);
  const ModuleStats& root = graph.nodes.front().stats;
  EXPECT_EQ(root.parameter_bytes, 141'674'496);
  EXPECT_EQ(root.activations_after_bytes, 1'988'177'920);
  EXPECT_EQ(root.activation_gradient_bytes, 185'601'024);
  for (const ModuleNode& node : graph.nodes) {
    if (node.stats.fqn.size() != root.fqn.size() + std::string_view(".layers.0").size()) continue;
    if (!node.stats.fqn.starts_with(root.fqn + ".layers.")) continue;
    EXPECT_EQ(node.stats.kept_bytes, 390'595'584) << node.stats.fqn;
    EXPECT_EQ(node.stats.sac_bytes, 491'258'880) << node.stats.fqn;
  }
  const Baseline baseline = reference_baseline(graph);
  EXPECT_EQ(baseline.peak_bytes, 2'315'453'440);
  // Published with the logits of the step before, which this step does not hold: python/tests/test_reference.py.
  // The sum of forward and backward without the reads that the estimator charges for asking a tensor's device.
  EXPECT_NEAR(root.forward_ms, 24.199, 1e-3);
  EXPECT_NEAR(root.backward_ms, 49.801, 1e-3);
}

// Our own rules: what the block returns costs nothing to keep, whichever op made it.
TEST(Published, OurRulesAgreeWhereTheEstimatorGuessesRight) {
  const Block block = block_on(ReferenceLine::kM, "a100-80-pcie", Rules::kTidemark);
  EXPECT_EQ(block.operators.total_bytes, 491'258'880);
  EXPECT_EQ(block.order.stored, std::vector<std::uint32_t>{});
  std::int64_t groups_bytes = 0;
  for (const Candidate& candidate : block.order.candidates) groups_bytes += candidate.bytes;
  EXPECT_EQ(groups_bytes, 491'258'880);
}

}  // namespace
}  // namespace tidemark::sac
