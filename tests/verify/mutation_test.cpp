// A comparison is worth what it notices: every deliberate mistake in one of the two replays is found.

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "random_case.h"

namespace tidemark::verify {
namespace {

struct Mistake {
  Mutation mutation = Mutation::kNone;
  std::string name;
};

// Without it a failure and the list of tests would print the bytes of the string, pointers among them.
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class Mutations : public testing::TestWithParam<Mistake> {};

// Only where the replays agree otherwise: what they disagree on anyway must not count.
TEST_P(Mutations, IsNoticed) {
  for (std::uint64_t seed = 0; seed < test::kFastCases; ++seed) {
    const test::RandomCase random_case = test::random_case(seed);
    if (test::difference(random_case, GetParam().mutation).empty()) continue;
    if (test::difference(random_case).empty()) return;
  }
  FAIL() << "no case is different";
}

INSTANTIATE_TEST_SUITE_P(All, Mutations,
                         testing::Values(Mistake{Mutation::kForgetRngState, "ForgetRngState"},
                                         Mistake{Mutation::kFrameLetsGoEarly, "FrameLetsGoEarly"},
                                         Mistake{Mutation::kEarlyStopOneOpLate, "EarlyStopOneOpLate"},
                                         Mistake{Mutation::kCacheKeepsFirstOutputOnly, "CacheKeepsFirstOutputOnly"},
                                         Mistake{Mutation::kRecomputeKeepsTemporaries, "RecomputeKeepsTemporaries"},
                                         Mistake{Mutation::kSaveKeepsWhatItHandsOver, "SaveKeepsWhatItHandsOver"},
                                         Mistake{Mutation::kOutsideSaveHoldsCopy, "OutsideSaveHoldsCopy"},
                                         Mistake{Mutation::kCutWorkspaceGoesLast, "CutWorkspaceGoesLast"},
                                         Mistake{Mutation::kUnwatchedStaysInPlace, "UnwatchedStaysInPlace"},
                                         Mistake{Mutation::kUnhookedSaveNotRecomputed, "UnhookedSaveNotRecomputed"},
                                         Mistake{Mutation::kWatchedRowIgnored, "WatchedRowIgnored"},
                                         Mistake{Mutation::kUnreachedCacheGoesWithStop, "UnreachedCacheGoesWithStop"}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace tidemark::verify
