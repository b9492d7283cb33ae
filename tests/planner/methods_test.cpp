#include "tidemark/planner/methods.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "../support/highs.h"
#include "../support/random_training.h"
#include "brute_force.h"
#include "tidemark/base/error.h"
#include "tidemark/plan/legality.h"
#include "tidemark/planner/planner.h"
#include "tidemark/zoo/record.h"
#include "tidemark/zoo/toy_gpt.h"

// Every method on the same steps: what each of them promises.

namespace tidemark::planner {
namespace {

constexpr Method kMethods[] = {Method::kExact,     Method::kGreedy,          Method::kMilp,
                               Method::kExactMilp, Method::kReferencePolicy, Method::kKnapsack};

class Conformance : public ::testing::TestWithParam<Method> {
 protected:
  static PlannerOptions options_for(std::int64_t budget, Against against = Against::kExact) {
    PlannerOptions options{.budget_bytes = budget, .against = against};
    options.method.method = GetParam();
    if (needs_highs(GetParam())) options.method.highs = &test::highs();
    return options;
  }
};

bool has_plan(const PlanResult& result) {
  return result.termination == Termination::kFits || result.termination == Termination::kOptimal ||
         result.termination == Termination::kFeasible;
}

cost::StepCost cost_of(const Times& times) {
  cost::StepCost cost;
  for (const std::int64_t ps : times.op_ps) {
    cost.ops.emplace_back();
    cost.ops.back().total_ps = ps;
  }
  cost.family.assign(cost.ops.size(), cost::Family::kMatmul);
  cost.bytes.assign(cost.ops.size(), 0);
  cost.region_ps = times.region_ps;
  cost.region_save_ps = times.region_save_ps;
  cost.region_rng_ps = times.region_rng_ps;
  return cost;
}

struct Counts {
  int budgets = 0;
  int planned = 0;
  int recomputing = 0;
  int best = 0;  // of these
};

// Legal, never over the budget by replay, never better than the best of all plans, and infeasible only when all are.
void check(const test::RandomTraining& t, const std::vector<test::Tried>& tried, const PlannerOptions& options,
           Counts& counts) {
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const test::Tried& one : tried) {
    if (one.peak_bytes <= options.budget_bytes) best = std::min(best, one.time_ps);
    least = std::min(least, one.peak_bytes);
  }
  const cost::StepCost cost = cost_of(t.times);
  const PlanResult result = plan_step(t.step, cost, options);
  ++counts.budgets;
  if (result.termination == Termination::kInfeasible) {
    ASSERT_LT(options.budget_bytes, least);
  }
  if (options.budget_bytes < least) {
    ASSERT_EQ(result.termination, Termination::kInfeasible);
  }
  ASSERT_EQ(result.smallest_peak_bytes, least);
  ASSERT_EQ(result.own.has_value(), needs_highs(options.method.method));
  if (!has_plan(result)) return;
  ++counts.planned;
  ASSERT_TRUE(plan::check(t.step, result.plan).empty());
  ASSERT_EQ(peak_of(t.step, result.plan, options), result.peak_bytes);
  ASSERT_LE(result.peak_bytes, options.budget_bytes);
  ASSERT_GE(result.recompute_ps, best);
  ASSERT_LE(result.bound_ps, best);
  if (result.termination != Termination::kFits) {
    ++counts.recomputing;
    counts.best += result.recompute_ps == best ? 1 : 0;
  }
  if (result.termination == Termination::kOptimal || result.termination == Termination::kFits) {
    ASSERT_EQ(result.recompute_ps, best);
  }
}

TEST_P(Conformance, OnAllPlansOfRandomSteps) {
  Counts counts;
  for (std::uint64_t seed = 2000; seed < 2100 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const test::RandomTraining t = test::random_training(seed);
    const std::vector<test::Tried> tried = test::try_all(t.step, t.times, 800);
    if (tried.empty()) continue;
    std::set<std::int64_t> peaks;
    for (const test::Tried& one : tried) peaks.insert(one.peak_bytes);
    std::vector<std::int64_t> budgets = {*peaks.begin() - 1, *peaks.rbegin()};
    // Where something has to be recomputed: some of the peaks below that of plain training.
    const std::int64_t unplanned = peak_of(t.step, {}, {});
    const auto below = std::distance(peaks.begin(), peaks.lower_bound(unplanned));
    for (std::ptrdiff_t i = 0; i < below; i += std::max<std::ptrdiff_t>(1, below / 5))
      budgets.push_back(*std::next(peaks.begin(), i));
    for (const std::int64_t budget : budgets)
      if (budget >= 0 && !HasFatalFailure()) check(t, tried, options_for(budget), counts);
  }
  fmt::print("{}: {} budgets, {} with a plan, {} of them with units, {} of these as cheap as the cheapest\n",
             name_of(GetParam()), counts.budgets, counts.planned, counts.recomputing, counts.best);
  EXPECT_GT(counts.budgets, 150);
  // PyTorch's program cannot choose modules without others inside, and these steps are small.
  EXPECT_GE(counts.recomputing, GetParam() == Method::kMilp ? 1 : 25);
}

TEST_P(Conformance, IsTheSameEveryTime) {
  for (std::uint64_t seed = 2000; seed < 2010; ++seed) {
    const test::RandomTraining t = test::random_training(seed);
    const cost::StepCost cost = cost_of(t.times);
    const std::int64_t peak = peak_of(t.step, {}, {});
    const PlanResult first = plan_step(t.step, cost, options_for(peak * 9 / 10));
    const PlanResult second = plan_step(t.step, cost, options_for(peak * 9 / 10));
    EXPECT_EQ(first.plan, second.plan);
    EXPECT_EQ(first.termination, second.termination);
    EXPECT_EQ(first.bound_ps, second.bound_ps);
  }
}

// On models as they are, the exact plan is the yardstick.
TEST_P(Conformance, OnRealModels) {
  zoo::ToyGptConfig toy;
  toy.layers = 3;
  toy.width = 64;
  toy.positions = 64;
  const std::pair<const char*, step::Step> models[] = {
      {"a small GPT", zoo::record(toy, {.batch = 16, .sequence = 64})},
      {"resnet18", zoo::record(zoo::find_model("resnet18")->config, {.batch = 16})}};
  for (const auto& [name, step] : models) {
    Times times;
    times.op_ps.assign(step.tables().ops.size(), 1000);
    const cost::StepCost cost = cost_of(times);
    const std::int64_t whole = peak_of(step, {}, {});
    PlannerOptions exact{.budget_bytes = whole};
    const std::int64_t least = plan_step(step, cost, exact).smallest_peak_bytes;
    exact.budget_bytes = least + (whole - least) * 3 / 4;
    const PlanResult best = plan_step(step, cost, exact);
    ASSERT_EQ(best.termination, Termination::kOptimal) << name;
    ASSERT_GT(best.recompute_ps, 0) << name;
    const PlanResult result = plan_step(step, cost, options_for(exact.budget_bytes));
    ASSERT_NE(result.termination, Termination::kInfeasible) << name;
    fmt::print("{} on {}: {}, {} ps of {} at best\n", name_of(GetParam()), name, name_of(result.termination),
               result.recompute_ps, best.recompute_ps);
    if (!has_plan(result)) continue;
    EXPECT_LE(result.peak_bytes, exact.budget_bytes) << name;
    EXPECT_GE(result.recompute_ps, best.bound_ps) << name;
    EXPECT_TRUE(plan::check(step, result.plan).empty()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Conformance, ::testing::ValuesIn(kMethods), [](const auto& of) {
  std::string name(name_of(of.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Methods, SayThatTheyNeedASolver) {
  const test::RandomTraining t = test::random_training(2000);
  for (const Method method : {Method::kMilp, Method::kExactMilp}) {
    PlannerOptions options{.budget_bytes = 1};
    options.method.method = method;
    EXPECT_THROW(plan_step(t.step, cost_of(t.times), options), Error);
  }
}

TEST(Methods, OnlyProgramsCanBeWritten) {
  const test::RandomTraining t = test::random_training(2000);
  PlannerOptions options{.budget_bytes = peak_of(t.step, {}, {})};
  for (const Method method : kMethods) {
    options.method.method = method;
    if (needs_highs(method)) {
      EXPECT_TRUE(method_model(t.step, cost_of(t.times), options).has_value());
    } else {
      EXPECT_THROW(method_model(t.step, cost_of(t.times), options), Error);
    }
  }
}

}  // namespace
}  // namespace tidemark::planner
