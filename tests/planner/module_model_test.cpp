#include "tidemark/planner/module_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "../support/highs.h"
#include "../support/published_gpt.h"
#include "../support/random.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/reference_roofline.h"
#include "tidemark/sac/module_info.h"

namespace tidemark::planner {
namespace {

using cost::ReferenceLine;
using sac::ModuleGraph;
using sac::ModuleInfo;
using sac::Rules;

constexpr std::int64_t kLogits = std::int64_t{8} * 1024 * 8192 * 4;

std::int64_t gib(double count) { return static_cast<std::int64_t>(count * 1024 * 1024 * 1024); }

ModuleInfo published_info(ReferenceLine line, std::string_view device, Rules rules) {
  const step::Step step = test::published_gpt_step();
  const auto times = cost::reference_times_ms(step, cost::find_reference_hardware(line, device));
  return sac::module_info(step, times, {.rules = rules, .device = {}});
}

// In the test of line M a loop variable holds the logits of the step before until the next ones are there.
ModuleGraph published_m(std::string_view device) {
  ModuleInfo info = published_info(ReferenceLine::kM, device, Rules::kReferenceM);
  for (sac::ModuleStats& module : info.modules) module.activations_after_bytes += kLogits;
  return sac::build_module_graph(info);
}

double sum_of(const ModuleChoice& choice) {
  double sum = 0;
  for (const ModuleRatio& ratio : choice.ratios) sum += ratio.given_up;
  return sum;
}

void expect_the_blocks(const ModuleChoice& choice) {
  ASSERT_EQ(choice.ratios.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    const std::string& fqn = choice.ratios[static_cast<std::size_t>(i)].fqn;
    EXPECT_TRUE(fqn.ends_with(fmt::format(".layers.{}", i))) << fqn;
  }
}

// 1.6 GiB, 4 ranks: with P = 141,674,496, what is to be saved is 2,256,613,376 + 185,601,024 + P / 4 - 1.6 GiB =
// 759,646,106 B; of 491,258,880 B per block, of which autograd keeps 390,595,584, that is a sum of
// (759,646,106 + 4 x 100,663,296) / 491,258,880 = 2.36596. The times are those PyTorch's test recorded.
TEST(ModuleModel, PublishedCasesOfLineM) {
  const std::pair<const char*, double> recorded[] = {{"a100-80-pcie", 6.975}, {"m60", 58.14}};
  for (const auto& [device, ms] : recorded) {
    const ModuleGraph graph = published_m(device);
    EXPECT_EQ(sac::reference_baseline(graph).peak_bytes, 2'583'888'896);
    const ModuleChoice choice =
        solve_module_model(graph, {.budget_bytes = gib(1.6), .world_size = 4, .units = {}}, test::highs());
    ASSERT_EQ(choice.end, LinearEnd::kOptimal);
    expect_the_blocks(choice);
    EXPECT_NEAR(sum_of(choice), 2.36596, 1e-4);
    EXPECT_NEAR(choice.recompute_ms, ms, ms * 1e-3);
    EXPECT_NEAR(choice.bound_ms, choice.recompute_ms, 1e-6);
    EXPECT_LE(choice.peak_bytes, gib(1.6) + 1);
    EXPECT_GE(choice.peak_bytes, gib(1.6) - 1);

    const ModuleChoice enough =
        solve_module_model(graph, {.budget_bytes = gib(2.4), .world_size = 4, .units = {}}, test::highs());
    EXPECT_EQ(enough.end, LinearEnd::kOptimal);
    EXPECT_TRUE(enough.ratios.empty());
    EXPECT_EQ(enough.recompute_ms, 0);
    EXPECT_EQ(enough.peak_bytes, 2'477'633'024);  // 2,256,613,376 + 185,601,024 + P / 4

    const ModuleChoice none =
        solve_module_model(graph, {.budget_bytes = gib(0.8), .world_size = 4, .units = {}}, test::highs());
    EXPECT_EQ(none.end, LinearEnd::kInfeasible);
    EXPECT_TRUE(none.ratios.empty());
  }
}

// Auto-SAC's branch on an H100, with Adam's state of 2 P. Unsharded, 2 GiB: 1,988,177,920 + 185,601,536 + 3 P - 2 GiB
// = 451,319,296 B to save, a sum of (451,319,296 + 4 x 100,663,296) / 491,258,880 = 1.73833. Root and blocks sharded
// over 4 ranks, 1.6 GiB: 3 P / 4 and four times a block's 28,339,200 B instead, 675,405,210 B, 2.19448; 2.7 GiB is
// enough for it, 0.8 GiB too little.
TEST(ModuleModel, PublishedCasesOfLineB) {
  const ModuleGraph graph = sac::build_module_graph(published_info(ReferenceLine::kB, "h100-sxm", Rules::kReferenceB));
  constexpr std::int64_t kState = 2 * 141'674'496;
  ModuleModelOptions options{
      .budget_bytes = gib(2), .units = {}, .rules = Rules::kReferenceB, .optimizer_bytes = kState};
  const ModuleChoice unsharded = solve_module_model(graph, options, test::highs());
  ASSERT_EQ(unsharded.end, LinearEnd::kOptimal);
  expect_the_blocks(unsharded);
  EXPECT_NEAR(sum_of(unsharded), 1.73833, 1e-4);
  EXPECT_NEAR(unsharded.recompute_ms, 1.310, 1e-3);

  options.world_size = 4;
  const std::string root = graph.nodes.front().stats.fqn;
  options.fsdp_units = {root};
  for (int i = 0; i < 4; ++i) options.fsdp_units.push_back(fmt::format("{}.layers.{}", root, i));
  options.budget_bytes = gib(1.6);
  const ModuleChoice sharded = solve_module_model(graph, options, test::highs());
  ASSERT_EQ(sharded.end, LinearEnd::kOptimal);
  expect_the_blocks(sharded);
  EXPECT_NEAR(sum_of(sharded), 2.19448, 1e-4);
  EXPECT_NEAR(sharded.recompute_ms, 2.366, 2e-3);

  options.budget_bytes = gib(2.7);
  EXPECT_TRUE(solve_module_model(graph, options, test::highs()).ratios.empty());
  options.budget_bytes = gib(0.8);
  EXPECT_EQ(solve_module_model(graph, options, test::highs()).end, LinearEnd::kInfeasible);
}

// A tree of modules with statistics that need not make sense.
ModuleInfo random_info(test::Random& random) {
  ModuleInfo info;
  const auto grow = [&](const auto& self, const std::string& name, int depth) -> void {
    sac::ModuleStats stats;
    stats.fqn = name;
    stats.parameter_bytes = random.between(0, 50) << 20;
    stats.gradients_before_bytes = random.between(0, 50) << 20;
    stats.kept_bytes = random.between(0, 100) << 20;
    stats.activation_gradient_bytes = random.between(-20, 50) * (1 << 20);
    stats.activations_after_bytes = random.between(0, 400) << 20;
    info.order.forward_pre.push_back(name);
    const int children = depth == 0 ? 3 : depth < 3 ? static_cast<int>(random.between(0, 2)) : 0;
    const std::size_t number = info.modules.size();
    stats.is_leaf = children == 0 && random.chance(70);
    if (!stats.is_leaf) {
      stats.sac_bytes = random.between(0, 150) << 20;
      stats.sac_ms = static_cast<double>(random.between(0, 300));  // above the reference's 100, too
      const std::int64_t pieces = random.between(1, 2);
      for (std::int64_t i = 0; i < pieces; ++i) {
        stats.trade_off.fit.slopes.push_back(static_cast<double>(random.between(-5, 30)) / 10);
        stats.trade_off.fit.intercepts.push_back(static_cast<double>(random.between(-8, 4)) / 10);
      }
    }
    info.modules.push_back(stats);
    for (int i = 0; i < children; ++i) self(self, fmt::format("{}.{}", name, i), depth + 1);
    info.order.forward_post.push_back(info.modules[number].fqn);
  };
  grow(grow, "M", 0);
  return info;
}

// The reference's program as it is written: a row per pair and per node, with a constant for infinity, but a large one.
LinearModel literal_model(const ModuleGraph& graph, const ModuleModelOptions& options) {
  constexpr double kMiB = 1 << 20;
  constexpr double kInfinite = 5000;
  LinearModel model{.name = "literal", .columns = {}, .rows = {}};
  struct Columns {
    std::uint32_t y, r, d, rcp, rct;
  };
  std::vector<Columns> columns;
  const auto count = static_cast<std::uint32_t>(graph.nodes.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& s = graph.nodes[i].stats;
    const double made = static_cast<double>(std::max(s.sac_bytes, s.kept_bytes)) / kMiB;
    const double more = made - static_cast<double>(s.kept_bytes) / kMiB;
    const bool is_out = s.is_leaf || made == 0;
    Columns c{};
    c.y = model.add({.name = fmt::format("y{}", i), .upper = is_out ? 0.0 : 1.0, .is_integer = true});
    c.r = model.add({.name = fmt::format("r{}", i), .upper = 1});
    c.d = model.add({.name = fmt::format("d{}", i)});
    c.rcp = model.add({.name = fmt::format("p{}", i)});
    c.rct = model.add({.name = fmt::format("t{}", i), .cost = 1});
    columns.push_back(c);
    model.rows.push_back({.name = "", .upper = 0, .terms = {{c.r, 1}, {c.y, -1}}});
    if (!is_out) model.rows.push_back({.name = "", .lower = 0, .terms = {{c.r, 1}, {c.y, -more / made}}});
    model.rows.push_back({.name = "", .lower = 0, .upper = 0, .terms = {{c.d, 1}, {c.r, -made}, {c.y, more}}});
    for (std::size_t k = 0; k < s.trade_off.fit.slopes.size(); ++k)
      model.rows.push_back({.name = "",
                            .lower = s.trade_off.fit.intercepts[k],
                            .terms = {{c.rcp, 1}, {c.r, -s.trade_off.fit.slopes[k]}}});
    model.rows.push_back({.name = "", .upper = 0, .terms = {{c.rct, 1}, {c.y, -kInfinite}}});
    model.rows.push_back({.name = "", .upper = 0, .terms = {{c.rct, 1}, {c.rcp, -s.sac_ms}}});
    model.rows.push_back(
        {.name = "", .lower = -kInfinite, .terms = {{c.rct, 1}, {c.rcp, -s.sac_ms}, {c.y, -kInfinite}}});
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& s = graph.nodes[i].stats;
    for (std::uint32_t j = 0; j < count; ++j)
      if (graph.is_submodule(j, i))
        model.rows.push_back({.name = "", .upper = 1, .terms = {{columns[i].y, 1}, {columns[j].y, 1}}});
    const double load = static_cast<double>(s.activations_after_bytes + s.activation_gradient_bytes) +
                        static_cast<double>(graph.nodes[0].stats.parameter_bytes + s.gradients_before_bytes) /
                            static_cast<double>(options.world_size);
    Row row{.name = "", .lower = (load - static_cast<double>(options.budget_bytes)) / kMiB, .terms = {}};
    for (std::uint32_t j = 0; j < count; ++j)
      if (graph.nodes[j].forward_post_position < graph.nodes[i].forward_post_position)
        row.terms.push_back({columns[j].d, 1});
    model.rows.push_back(std::move(row));
  }
  return model;
}

TEST(ModuleModel, MeansWhatTheReferencesProgramMeans) {
  int feasible = 0;
  int infeasible = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    test::Random random(seed);
    const ModuleGraph graph = sac::build_module_graph(random_info(random));
    const ModuleModelOptions options{
        .budget_bytes = random.between(150, 500) << 20, .world_size = random.between(1, 3), .units = {}};
    const ModuleChoice choice = solve_module_model(graph, options, test::highs());
    const LinearSolution literal = test::highs().solve(literal_model(graph, options));
    ASSERT_EQ(choice.end, literal.end) << seed;
    (choice.end == LinearEnd::kOptimal ? feasible : infeasible) += 1;
    if (choice.end != LinearEnd::kOptimal) continue;
    ASSERT_NEAR(choice.recompute_ms, literal.objective, 1e-4 * (1 + literal.objective)) << seed;
    ASSERT_LE(choice.peak_bytes, options.budget_bytes + 1) << seed;
  }
  EXPECT_GT(feasible, 50);
  EXPECT_GT(infeasible, 20);
}

TEST(ModuleModel, OnlyModulesThatMayBeUnits) {
  const ModuleGraph graph = published_m("a100-80-pcie");
  const std::string first = graph.nodes.front().stats.fqn + ".layers.0";
  ModuleModelOptions options{.budget_bytes = gib(2.2), .world_size = 4, .units = {{first}}};
  const ModuleChoice choice = solve_module_model(graph, options, test::highs());
  ASSERT_EQ(choice.ratios.size(), 1u);
  EXPECT_EQ(choice.ratios[0].fqn, first);
  options.units = {{"nobody"}};
  EXPECT_THROW(solve_module_model(graph, options, test::highs()), Error);
  options.units.reset();
  options.world_size = 0;
  EXPECT_THROW(solve_module_model(graph, options, test::highs()), Error);
}

}  // namespace
}  // namespace tidemark::planner
