// A comparison is worth what it notices: every deliberate mistake in one of the two replays is found.

#include <gtest/gtest.h>

#include "random_case.h"

namespace tidemark::verify {
namespace {

class Mutations : public testing::TestWithParam<Mutation> {};

TEST_P(Mutations, IsNoticed) {
  for (std::uint64_t seed = 0; seed < test::kFastCases; ++seed)
    if (!test::difference(test::random_case(seed), GetParam()).empty()) return;
  FAIL() << "no case is different";
}

INSTANTIATE_TEST_SUITE_P(All, Mutations,
                         testing::Values(Mutation::kForgetRngState, Mutation::kFrameLetsGoEarly,
                                         Mutation::kEarlyStopOneOpLate, Mutation::kCacheKeepsFirstOutputOnly,
                                         Mutation::kRecomputeKeepsTemporaries, Mutation::kSaveKeepsWhatItHandsOver,
                                         Mutation::kOutsideSaveHoldsCopy, Mutation::kCutWorkspaceGoesLast,
                                         Mutation::kUnwatchedStaysInPlace, Mutation::kUnhookedSaveNotRecomputed,
                                         Mutation::kWatchedRowIgnored, Mutation::kUnreachedCacheGoesWithStop));

}  // namespace
}  // namespace tidemark::verify
