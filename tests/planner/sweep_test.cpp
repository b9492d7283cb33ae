#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "all_paths.h"
#include "random_problem.h"
#include "tidemark/planner/exact.h"

// The solver on graphs made at random, where everything that may bind does: against all paths with all sets of groups.

namespace tidemark::planner {
namespace {

void check(std::uint64_t seed) {
  test::Random random(seed);
  const Episode episode = test::random_episode(random, {.most = random.pick<std::int64_t>({3, 20, 1000})});
  if (test::path_count(episode) > 20000) return;
  std::vector<PathFigures> all;
  test::for_each_path(episode, [&](const Path& p) { all.push_back(measure(episode, p)); });
  std::set<std::int64_t> peaks;
  for (const PathFigures& one : all) peaks.insert(one.peak_bytes);
  Problem problem;
  problem.episodes.push_back(episode);
  problem.ground_bytes = kNoPeak;
  const ExactSolver solver(problem);
  ASSERT_EQ(solver.smallest_peak_bytes(), *peaks.begin()) << "seed " << seed;
  std::int64_t tried = 0;
  for (const std::int64_t peak : peaks)
    for (const std::int64_t budget : {peak - 1, peak}) {
      if (++tried > 60) return;
      const PathFigures* best = nullptr;
      for (const PathFigures& one : all)
        if (one.peak_bytes <= budget && (best == nullptr || one.time_ps < best->time_ps)) best = &one;
      // With bounds of whole groups from the first entry on, with those of units so large that most groups are
      // remainders, and without them.
      for (const auto& [parts_work, max_cells] :
           {std::pair<std::int64_t, std::int64_t>{0, 1'000'000}, {0, 12}, {500'000, 1}}) {
        const Solution s = solver.solve({.budget_bytes = budget, .parts_work = parts_work, .max_cells = max_cells});
        ASSERT_EQ(s.end == SolveEnd::kInfeasible, best == nullptr) << "seed " << seed << " budget " << budget;
        if (best == nullptr) continue;
        ASSERT_EQ(s.end, SolveEnd::kOptimal);
        ASSERT_EQ(s.time_ps, best->time_ps) << "seed " << seed << " budget " << budget;
        ASSERT_EQ(s.bound_ps, best->time_ps);
        const PathFigures found = measure(solver.problem().episodes[0], s.paths[0]);
        ASSERT_LE(found.peak_bytes, budget) << "seed " << seed;
        ASSERT_EQ(found.time_ps, s.time_ps) << "seed " << seed;
      }
    }
}

TEST(Sweep, EqualsAllPaths) {
  const std::uint64_t count = std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 200'000 : 400;
  for (std::uint64_t seed = 1; seed <= count && !HasFatalFailure(); ++seed) check(seed);
}

}  // namespace
}  // namespace tidemark::planner
