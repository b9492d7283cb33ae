#include "tidemark/planner/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "../support/random_training.h"
#include "brute_force.h"
#include "step_cost.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/catalog.h"
#include "tidemark/plan/legality.h"
#include "tidemark/planner/prepared.h"
#include "tidemark/zoo/record.h"

namespace tidemark::planner {
namespace {

using test::cost_of;

void check(std::uint64_t seed, bool odd) {
  const test::RandomTraining t = test::random_training(seed, {.may_be_odd = odd});
  const std::vector<test::Tried> tried = test::try_all(t.step, t.times, 1500);
  if (tried.empty()) return;
  const cost::StepCost cost = cost_of(t.times);
  std::set<std::int64_t> peaks;
  for (const test::Tried& one : tried) peaks.insert(one.peak_bytes);
  std::int64_t before_ps = std::numeric_limits<std::int64_t>::max();
  int count = 0;
  for (const std::int64_t budget : peaks) {
    if (++count > 12) break;
    const PlanResult result = plan_step(t.step, cost, {.budget_bytes = budget + 3, .reserve_bytes = 3});
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (const test::Tried& one : tried)
      if (one.peak_bytes <= budget) best = std::min(best, one.time_ps);
    ASSERT_TRUE(result.termination == Termination::kOptimal || result.termination == Termination::kFits ||
                (odd && result.termination == Termination::kFeasible) ||
                (odd && result.termination == Termination::kLimit))
        << "seed " << seed << " " << name_of(result.termination);
    if (result.termination == Termination::kLimit) continue;
    EXPECT_LE(result.peak_bytes, budget) << "seed " << seed;
    EXPECT_LE(result.bound_ps, best) << "seed " << seed;
    if (result.termination == Termination::kFeasible) continue;
    EXPECT_EQ(result.recompute_ps, best) << "seed " << seed << " budget " << budget;
    EXPECT_TRUE(plan::check(t.step, result.plan).empty()) << "seed " << seed;
    EXPECT_LE(result.recompute_ps, before_ps) << "more budget costs more, seed " << seed;
    before_ps = result.recompute_ps;
    if (budget >= result.unplanned_peak_bytes) {
      EXPECT_TRUE(result.plan.units.empty());
    }
    for (const PolicyFigures& policy : result.policies)
      EXPECT_TRUE(!policy.fits || result.recompute_ps <= policy.recompute_ps);
    EXPECT_TRUE(odd || result.smallest_peak_bytes == *peaks.begin()) << "seed " << seed;
  }
  if (*peaks.begin() == 0) return;
  const PlanResult none = plan_step(t.step, cost, {.budget_bytes = *peaks.begin() - 1});
  if (none.is_smallest_proved || !odd)
    EXPECT_EQ(none.termination, Termination::kInfeasible) << "seed " << seed;
  else
    EXPECT_NE(none.termination, Termination::kOptimal);
}

TEST(Planner, FindsWhatBruteForceFinds) {
  for (std::uint64_t seed = 1000; seed < 1060 && !HasFailure(); ++seed) check(seed, false);
}

TEST(Planner, IsHonestAboutOddSteps) {
  for (std::uint64_t seed = 1000; seed < 1060 && !HasFailure(); ++seed) check(seed, true);
}

TEST(Planner, RefusesAReserveAboveTheBudget) {
  const test::RandomTraining t = test::random_training(1);
  EXPECT_THROW(plan_step(t.step, cost_of(t.times), {.budget_bytes = 5, .reserve_bytes = 6}), Error);
}

TEST(Planner, RefusesAPatternThatMatchesNothing) {
  const test::RandomTraining t = test::random_training(1);
  PlannerOptions options{.budget_bytes = 5};
  options.space.units = {"layers.*"};
  EXPECT_THROW(plan_step(t.step, cost_of(t.times), options), Error);
}

// A small ResNet and a small GPT, natively: a plan of every method of counting, the same on every run, kept by replay.
TEST(Planner, PlansARealModel) {
  for (const char* name : {"gpt2", "resnet18"}) {
    zoo::StepOptions options;
    options.sequence = name == std::string("gpt2") ? 64 : 0;
    const step::Step step = zoo::record(zoo::find_model(name)->config, options);
    Times times;
    times.op_ps.assign(step.tables().ops.size(), 1000);
    const cost::StepCost cost = cost_of(times);
    for (const Against against : {Against::kExact, Against::kRounded, Against::kReserved}) {
      PlannerOptions wishes{.against = against};
      const std::int64_t whole = peak_of(step, {}, wishes);
      wishes.budget_bytes = whole;
      const std::int64_t least = plan_step(step, cost, wishes).smallest_peak_bytes;
      wishes.budget_bytes = least + (whole - least) / 2;
      const PlanResult result = plan_step(step, cost, wishes);
      ASSERT_TRUE(result.termination == Termination::kOptimal || result.termination == Termination::kFeasible ||
                  result.termination == Termination::kFits)
          << name;
      EXPECT_LE(peak_of(step, result.plan, wishes), wishes.budget_bytes);
      EXPECT_TRUE(plan::check(step, result.plan).empty());
      EXPECT_EQ(plan_step(step, cost, wishes).plan, result.plan);
    }
  }
}

// Fragments of the cache come and go with the plan, but more room never costs more time.
TEST(Planner, MoreReservedBytesNeverCostMore) {
  const step::Step step =
      zoo::record(zoo::find_model("gpt2")->config, {.batch = 8, .sequence = 64, .target = nn::Target::kCuda});
  const cost::StepCost cost = cost::price_step(step, device::find_device("t4"));
  const PreparedStep prepared(step, cost, {.against = Against::kReserved});
  const std::int64_t least = prepared.smallest().peak_bytes;
  const std::int64_t whole = prepared.none().peak_bytes;
  std::int64_t last_ps = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i <= 24; ++i) {
    const std::int64_t room = least + (whole - least) * i / 24;
    const PlanResult result = prepared.plan(room, PlannerOptions().max_work);
    ASSERT_FALSE(result.termination == Termination::kLimit || result.termination == Termination::kInfeasible) << i;
    EXPECT_LE(result.peak_bytes, room);
    EXPECT_LE(result.recompute_ps, last_ps) << i;
    last_ps = result.recompute_ps;
  }
  EXPECT_EQ(last_ps, 0);
}

}  // namespace
}  // namespace tidemark::planner
