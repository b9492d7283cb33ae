#include "laws.h"

#include <gtest/gtest.h>

namespace tidemark::test {
namespace {

// A sample of what planner_campaign runs.
TEST(Laws, HoldOfRandomSteps) {
  LawCounts counts;
  for (std::uint64_t seed = 1; counts.steps < 25; ++seed) try_laws(seed, counts);
  EXPECT_TRUE(counts.is_clean()) << counts.text();
  for (std::size_t i = 0; i < counts.instances.size(); ++i) EXPECT_GT(counts.instances[i], 5) << kLawNames[i];
}

}  // namespace
}  // namespace tidemark::test
