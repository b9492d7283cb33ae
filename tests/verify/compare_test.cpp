// Two replays that know only the same page say the same about random steps under random plans, change by change.
// TIDEMARK_CAMPAIGN=1 compares 100,000 cases.

#include <gtest/gtest.h>

#include <cstdlib>

#include "random_case.h"
#include "tidemark/base/error.h"

namespace tidemark::verify {
namespace {

std::uint64_t case_count() { return std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 100000 : test::kFastCases; }

TEST(TwoReplays, SayTheSame) {
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 0; seed < case_count(); ++seed) {
    bool is_refused = false;
    ASSERT_EQ(test::difference(test::random_case(seed), Mutation::kNone, &is_refused), "") << "seed " << seed;
    refused += is_refused ? 1 : 0;
  }
  EXPECT_LT(refused, case_count() / 50);
}

// The cases must reach what the test claims to test.
TEST(TwoReplays, CasesHaveRecomputesWorkspaceAndFrames) {
  std::uint64_t units = 0;
  std::uint64_t saved_ops = 0;
  std::uint64_t recomputed = 0;
  std::uint64_t copies = 0;
  std::uint64_t workspace = 0;
  std::uint64_t rng_states = 0;
  std::uint64_t resizes_in_recomputes = 0;
  for (std::uint64_t seed = 0; seed < test::kFastCases; ++seed) {
    const test::RandomCase c = test::random_case(seed);
    units += c.plan.units.size();
    for (const plan::Unit& unit : c.plan.units) saved_ops += unit.saved_ops.size();
    Replayed replayed;
    try {
      replayed = replay(c.step, c.plan, {&c.table, c.round_to_bytes, c.early_stop, c.preserve_rng});
    } catch (const Error&) {
      continue;
    }
    for (const Change& change : replayed.changes) {
      recomputed += change.unit ? 1 : 0;
      copies += change.block.starts_with("copy") ? 1 : 0;
      workspace += change.category == "workspace" ? 1 : 0;
      rng_states += change.block.starts_with("rng_state") ? 1 : 0;
      resizes_in_recomputes +=
          change.unit && c.step.tables().events[change.event].kind == step::EventKind::kResize ? 1 : 0;
    }
  }
  EXPECT_GT(units, test::kFastCases / 2);
  EXPECT_GT(saved_ops, test::kFastCases / 2);
  EXPECT_GT(recomputed, 2 * test::kFastCases);
  EXPECT_GT(copies, test::kFastCases);
  EXPECT_GT(workspace, test::kFastCases);
  EXPECT_GT(rng_states, test::kFastCases / 2);
  EXPECT_GT(resizes_in_recomputes, 20u);
}

}  // namespace
}  // namespace tidemark::verify
