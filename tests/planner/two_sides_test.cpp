#include "tidemark/planner/two_sides.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "all_paths.h"
#include "random_problem.h"
#include "tidemark/planner/exact.h"

// Paths that have to fit on two sides, on graphs made at random: against all paths with all sets of groups.

namespace tidemark::planner {
namespace {

Problem problem_of(std::vector<Episode> episodes, std::vector<Episode> forward_episodes) {
  Problem problem;
  problem.episodes = std::move(episodes);
  problem.forward_episodes = std::move(forward_episodes);
  problem.ground_bytes = kNoPeak;
  return problem;
}

struct Figures {
  std::int64_t peak_bytes = 0;
  std::int64_t time_ps = 0;
};

void check(std::uint64_t seed, std::int64_t& differs) {
  test::Random random(seed);
  const std::int64_t most = random.pick<std::int64_t>({3, 20, 1000});
  const Episode episode = test::random_episode(random, {.most = most});
  if (test::path_count(episode) > 10000) return;
  const Episode forward = test::random_forward(episode, random, most);
  std::vector<Figures> all;
  std::set<std::int64_t> peaks;
  test::for_each_path(episode, [&](const Path& p) {
    const PathFigures here = measure(episode, p);
    all.push_back({std::max(here.peak_bytes, measure(forward, p).peak_bytes), here.time_ps});
    peaks.insert(all.back().peak_bytes);
  });
  const ExactSolver solver(problem_of({episode}, {forward}));
  ASSERT_LE(solver.smallest_peak_bytes(), *peaks.begin()) << "seed " << seed;
  std::int64_t tried = 0;
  for (const std::int64_t peak : peaks)
    for (const std::int64_t budget : {peak - 1, peak}) {
      if (++tried > 40) return;
      const Figures* best = nullptr;
      for (const Figures& one : all)
        if (one.peak_bytes <= budget && (best == nullptr || one.time_ps < best->time_ps)) best = &one;
      const Solution s = solver.solve({.budget_bytes = budget});
      ASSERT_EQ(s.end == SolveEnd::kInfeasible, best == nullptr) << "seed " << seed << " budget " << budget;
      if (best == nullptr) continue;
      ASSERT_EQ(s.end, SolveEnd::kOptimal) << "seed " << seed << " budget " << budget;
      ASSERT_EQ(s.time_ps, best->time_ps) << "seed " << seed << " budget " << budget;
      ASSERT_EQ(s.bound_ps, best->time_ps) << "seed " << seed << " budget " << budget;
      ASSERT_LE(s.peak_bytes, budget) << "seed " << seed;
      const PathFigures here = measure(solver.problem().episodes[0], s.paths[0]);
      ASSERT_EQ(here.time_ps, s.time_ps) << "seed " << seed;
      ASSERT_LE(here.peak_bytes, budget) << "seed " << seed;
      ASSERT_LE(measure(solver.problem().forward_episodes[0], s.paths[0]).peak_bytes, budget) << "seed " << seed;
      // One side alone would have given something else.
      const ExactSolver alone(problem_of({episode}, {}));
      if (alone.solve({.budget_bytes = budget}).time_ps != s.time_ps) ++differs;
    }
}

TEST(TwoSides, EqualsAllPaths) {
  const std::uint64_t count = std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 100'000 : 400;
  std::int64_t differs = 0;
  for (std::uint64_t seed = 1; seed <= count && !HasFatalFailure(); ++seed) check(seed, differs);
  EXPECT_GT(differs, 100);
}

// 10 B and 4 B on the sides; a quarter of the way is 8.5 B, rounded down.
TEST(TwoSides, MixturesRoundDown) {
  Arc here;
  here.to = 1;
  Arc forward = here;
  here.keep_bytes = 10;
  here.tail_bytes = -10;
  forward.keep_bytes = 4;
  forward.tail_bytes = -5;
  const Episode mixed = mixture({2, {here}, {0, 1, 1}}, {2, {forward}, {0, 1, 1}}, kShares / 4);
  EXPECT_EQ(mixed.arcs[0].keep_bytes, 8);
  EXPECT_EQ(mixed.arcs[0].tail_bytes, -9);  // of -8.75
}

}  // namespace
}  // namespace tidemark::planner
