#include "tidemark/planner/ordered.h"

#include <gtest/gtest.h>

#include "tidemark/planner/floors.h"

namespace tidemark::planner {
namespace {

// One unit with two groups, of 10 bytes and 3 ps, and of 20 bytes and 5 ps. By time: both saved (0 ps, peak 30), the
// second (3 ps, 20), the first (5 ps, 10), neither (8 ps, 0), where a peak is what is kept when the end is reached.
Problem two_groups() {
  Arc unit;
  unit.from = 0;
  unit.to = 1;
  unit.candidate = 0;
  unit.groups = {{10, 3, kNoPeak, 0}, {20, 5, kNoPeak, 1}};
  unit.before.resize(3);
  Arc end;
  end.from = 1;
  end.to = 2;
  end.tail_bytes = 0;
  Problem problem;
  problem.episodes.push_back({3, {unit, end}, {0, 1, 2, 2}});
  problem.ground_bytes = kNoPeak;
  return problem;
}

std::vector<std::int64_t> times_in_order(const Problem& problem, std::int64_t budget_bytes) {
  OrderedPaths ordered(problem, By::kTime, budget_bytes, 1000);
  std::vector<std::int64_t> times;
  while (const auto paths = ordered.next(kNoPath - 1))
    times.push_back(measure(problem.episodes[0], paths->front()).time_ps);
  EXPECT_FALSE(ordered.reached_limit());
  EXPECT_EQ(ordered.bound(), kNoPath);
  return times;
}

TEST(OrderedPaths, ComeByTimeWithinTheBudget) {
  const Problem problem = two_groups();
  EXPECT_EQ(times_in_order(problem, 30), (std::vector<std::int64_t>{0, 3, 5, 8}));
  EXPECT_EQ(times_in_order(problem, 29), (std::vector<std::int64_t>{3, 5, 8}));
  EXPECT_EQ(times_in_order(problem, 0), (std::vector<std::int64_t>{8}));
}

// Nothing is claimed then, above all not that there is no path.
TEST(OrderedPaths, StopAtTheLimit) {
  const Problem problem = two_groups();
  OrderedPaths ordered(problem, By::kTime, 30, 0);
  EXPECT_FALSE(ordered.next(kNoPath - 1));
  EXPECT_TRUE(ordered.reached_limit());
  EXPECT_EQ(ordered.bound(), 0);
}

}  // namespace
}  // namespace tidemark::planner
