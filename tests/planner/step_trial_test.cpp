#include "step_trial.h"

#include <gtest/gtest.h>

#include "real_trial.h"

namespace tidemark::test {
namespace {

// A sample of what planner_campaign runs.
TEST(StepTrial, PlansAreThoseOfBruteForce) {
  constexpr std::int64_t kMostPlans = 1000;
  TrialCounts counts;
  for (std::uint64_t seed = 1; counts.steps < 300; ++seed) try_step(seed, kMostPlans, counts);
  EXPECT_TRUE(counts.is_clean()) << counts.text();
  EXPECT_GE(counts.plans.quantile(0.5), 100);
  EXPECT_GE(counts.units.quantile(0), 3);
  for (std::size_t i = 0; i < counts.features.size(); ++i) EXPECT_GT(counts.features[i], 0) << kFeatureNames[i];
}

// The same on steps of real models of one block each.
TEST(StepTrial, PlansOfRealModelsAreThoseOfBruteForce) {
  constexpr std::int64_t kMostPlans = 300;
  TrialCounts counts;
  for (const RealStep& real : small_native_steps(1)) try_real_step(real, kMostPlans, counts);
  EXPECT_TRUE(counts.is_clean()) << counts.text();
  EXPECT_EQ(counts.passed_over, 0);
  EXPECT_GT(counts.budgets.sum(), 10 * counts.steps);
}

}  // namespace
}  // namespace tidemark::test
