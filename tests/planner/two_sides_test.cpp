#include "tidemark/planner/two_sides.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <utility>

#include "all_paths.h"
#include "random_problem.h"
#include "tidemark/planner/exact.h"
#include "tidemark/planner/ways.h"

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

// Two sides at random, and what all of their paths come to; none when there are too many.
struct Drawn {
  std::int64_t most = 0;  // that a number is
  Episode episode;
  Episode forward;
  std::vector<Figures> all;
  std::set<std::int64_t> peaks;
};

Drawn draw(test::Random& random, double most_paths) {
  Drawn drawn;
  drawn.most = random.pick<std::int64_t>({3, 20, 1000});
  drawn.episode = test::random_episode(random, {.most = drawn.most});
  if (test::path_count(drawn.episode) > most_paths) return drawn;
  drawn.forward = test::random_forward(drawn.episode, random, drawn.most);
  test::for_each_path(drawn.episode, [&](const Path& p) {
    const PathFigures here = measure(drawn.episode, p);
    drawn.all.push_back({std::max(here.peak_bytes, measure(drawn.forward, p).peak_bytes), here.time_ps});
    drawn.peaks.insert(drawn.all.back().peak_bytes);
  });
  return drawn;
}

void check(std::uint64_t seed, std::int64_t& differs) {
  test::Random random(seed);
  const auto [most, episode, forward, all, peaks] = draw(random, 10000);
  if (all.empty()) return;
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

// The search for both sides by itself, with sharper bounds from the start: whole groups, on one side with a price on
// the other. Whatever the prices are, no path that fits both sides takes less than it does there.
void check_with_prices(std::uint64_t seed, std::int64_t& found) {
  test::Random random(seed);
  const auto [most, episode, forward, all, peaks] = draw(random, 2000);
  for (const std::int64_t budget : peaks) {
    const Sides sides = fitting_sides(episode, &forward, budget);
    TwoSidesOptions options{.budget_bytes = budget, .max_work = 1 << 30, .pass_work = 1};
    if (random.chance(50)) {
      options.prices = find_prices(sides, budget, choose_share(sides, budget));
    } else {
      for (std::vector<std::int64_t>* prices : {&options.prices.here, &options.prices.forward}) {
        for (std::uint32_t state = 0; state < episode.state_count; ++state)
          prices->push_back(random.between(0, 2 * most) << random.between(0, kPriceBits));
        std::sort(prices->begin(), prices->end(), std::greater<>());
        prices->back() = 0;
      }
    }
    std::int64_t best = Convex::kNotEnough;
    for (const Figures& one : all)
      if (one.peak_bytes <= budget) best = std::min(best, one.time_ps);
    const Episode here = priced_view(sides, 0, options.prices.forward, budget).episode;
    const Episode ahead = priced_view(sides, kShares, options.prices.here, budget).episode;
    test::for_each_path(sides.here, [&](const Path& p) {
      const PathFigures figures = measure(sides.here, p);
      if (std::max(figures.peak_bytes, measure(sides.forward, p).peak_bytes) > budget) return;
      ASSERT_LE(measure(here, p).time_ps, figures.time_ps) << "seed " << seed << " budget " << budget;
      ASSERT_LE(measure(ahead, p).time_ps, figures.time_ps) << "seed " << seed << " budget " << budget;
    });
    const TwoSidesResult result = find_cheapest(sides, options);
    ASSERT_TRUE(result.path) << "seed " << seed << " budget " << budget;
    ASSERT_FALSE(result.is_limit) << "seed " << seed << " budget " << budget;
    ASSERT_EQ(result.ps, best) << "seed " << seed << " budget " << budget;
    ASSERT_EQ(result.bound_ps, best) << "seed " << seed << " budget " << budget;
    ASSERT_EQ(measure(episode, *result.path).time_ps, best) << "seed " << seed << " budget " << budget;
    ++found;
  }
}

TEST(TwoSides, PricesOfTheOtherSideAreBounds) {
  const std::uint64_t count = std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 50'000 : 300;
  std::int64_t found = 0;
  for (std::uint64_t seed = 1; seed <= count && !HasFatalFailure(); ++seed) check_with_prices(seed, found);
  EXPECT_GT(found, 1000);
}

// Two ways to a state after which 5 bytes are needed: one keeps 10 bytes here and none in the forward, the other one
// none here and 10 in the forward. Each side alone has a path of 5 bytes; both together need 15.
TEST(TwoSides, SaysThatNothingFitsBoth) {
  Arc unit;
  unit.to = 1;
  unit.candidate = 0;
  Arc tail;
  tail.from = 1;
  tail.to = 2;
  tail.tail_bytes = 5;
  Arc other = unit;
  unit.keep_bytes = 10;  // one way here,
  Arc forward_unit = unit;
  forward_unit.keep_bytes = 0;
  Arc forward_other = other;
  forward_other.keep_bytes = 10;  // the other one in the forward
  const Episode here{3, {unit, other, tail}, {0, 2, 3, 3}};
  const Episode forward{3, {forward_unit, forward_other, tail}, {0, 2, 3, 3}};
  const ExactSolver solver(problem_of({here}, {forward}));
  EXPECT_EQ(solver.smallest_peak_bytes(), 5);
  EXPECT_EQ(solver.solve({.budget_bytes = 14}).end, SolveEnd::kInfeasible);
  EXPECT_EQ(solver.solve({.budget_bytes = 15}).end, SolveEnd::kOptimal);
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
