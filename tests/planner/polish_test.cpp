#include "tidemark/planner/polish.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../support/random_training.h"
#include "brute_force.h"
#include "step_cost.h"

namespace tidemark::planner {
namespace {

constexpr std::int64_t kEnough = 1'000'000'000;

// Whether `fewer` is `plan` without one of its units.
bool is_without_one(const plan::Plan& fewer, const plan::Plan& plan) {
  if (fewer.units.size() + 1 != plan.units.size()) return false;
  return std::all_of(fewer.units.begin(), fewer.units.end(), [&](const plan::Unit& unit) {
    return std::find(plan.units.begin(), plan.units.end(), unit) != plan.units.end();
  });
}

// From every plan of small random steps: what comes out fits, takes no longer, and no plan with one unit less does
// better within the same room.
TEST(Polish, LeavesNothingToASingleChange) {
  std::int64_t shorter = 0;
  for (std::uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    const test::RandomTraining t = test::random_training(seed, {});
    const std::vector<test::Tried> tried = test::try_all(t.step, t.times, 300);
    if (tried.empty()) continue;
    const PreparedStep prepared(t.step, test::cost_of(t.times), {});
    for (const test::Tried& start : tried) {
      const Judged judged = prepared.judge(start.plan);
      ASSERT_EQ(judged.peak_bytes, start.peak_bytes);
      const std::int64_t room = start.peak_bytes;
      const Polished polished = polish(prepared, judged, room, kEnough);
      EXPECT_LE(polished.judged.peak_bytes, room) << "seed " << seed;
      EXPECT_LE(polished.judged.recompute_ps, judged.recompute_ps) << "seed " << seed;
      if (polished.judged.recompute_ps < judged.recompute_ps) ++shorter;
      for (const test::Tried& other : tried) {
        if (other.peak_bytes > room || other.time_ps >= polished.judged.recompute_ps) continue;
        EXPECT_FALSE(is_without_one(other.plan, polished.judged.plan)) << "seed " << seed;
      }
      EXPECT_EQ(polish(prepared, polished.judged, room, kEnough).judged.recompute_ps, polished.judged.recompute_ps);
    }
  }
  EXPECT_GT(shorter, 100);
}

TEST(Polish, KeepsToItsWork) {
  const test::RandomTraining t = test::random_training(3, {});
  const PreparedStep prepared(t.step, test::cost_of(t.times), {});
  const Polished none = polish(prepared, prepared.smallest(), prepared.none().peak_bytes, 0);
  EXPECT_EQ(none.work, 0);
  EXPECT_EQ(none.judged.plan, prepared.smallest().plan);
}

}  // namespace
}  // namespace tidemark::planner
