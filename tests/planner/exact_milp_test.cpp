#include "tidemark/planner/exact_milp.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "../support/highs.h"
#include "../support/random.h"
#include "../support/random_training.h"
#include "random_problem.h"
#include "tidemark/planner/build_problem.h"

// Two engines that share nothing but the problem.

namespace tidemark::planner {
namespace {

struct Counts {
  std::int64_t budgets = 0;
  std::int64_t infeasible = 0;
};

// Of problems, each at three budgets: more than 10,000 instances in the campaign.
std::uint64_t problem_count(std::uint64_t few, std::uint64_t many) {
  return std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? many : few;
}

// At a budget they agree on whether there is a path and on its time; HiGHS's path is measured, not believed.
void compare(const ExactSolver& solver, std::int64_t budget, std::uint64_t seed, Counts& counts) {
  const Solution sweep = solver.solve({.budget_bytes = budget});
  const Solution milp = solve_exact_milp(solver.problem(), budget, test::highs());
  ++counts.budgets;
  counts.infeasible += sweep.end == SolveEnd::kInfeasible ? 1 : 0;
  ASSERT_EQ(milp.end, sweep.end) << "seed " << seed << " budget " << budget;
  if (sweep.end != SolveEnd::kOptimal) return;
  ASSERT_EQ(milp.time_ps, sweep.time_ps) << "seed " << seed << " budget " << budget;
  ASSERT_EQ(milp.bound_ps, sweep.time_ps) << "seed " << seed << " budget " << budget;
  ASSERT_LE(milp.peak_bytes, budget) << "seed " << seed;
}

// Budgets from just too little to more than enough.
void compare_at_some(const ExactSolver& solver, std::int64_t most, test::Random& random, std::uint64_t seed,
                     Counts& counts) {
  const std::int64_t least = solver.smallest_peak_bytes();
  compare(solver, least - 1, seed, counts);
  compare(solver, least, seed, counts);
  compare(solver, random.between(least, std::max(least, most)), seed, counts);
}

TEST(ExactMilp, AgreesWithTheSweepOnRandomGraphs) {
  Counts counts;
  for (std::uint64_t seed = 1; seed <= problem_count(80, 2500) && !HasFatalFailure(); ++seed) {
    test::Random random(seed);
    const std::int64_t most = random.chance(30) ? 3 : random.chance(50) ? 1000 : 100'000;
    Problem problem;
    problem.ground_bytes = 0;
    for (std::int64_t i = random.between(1, 2); i > 0; --i)
      problem.episodes.push_back(test::random_episode(random, {.most = most, .max_states = 7, .max_groups = 7}));
    const ExactSolver solver(problem);
    compare_at_some(solver, solver.smallest_peak_bytes() * 2, random, seed, counts);
  }
  fmt::print("{} budgets, {} of them infeasible\n", counts.budgets, counts.infeasible);
  EXPECT_GT(counts.infeasible, counts.budgets / 5);
}

// Problems of whole steps whose numbers are small.
TEST(ExactMilp, AgreesWithTheSweepOnRandomSteps) {
  Counts counts;
  std::uint64_t used = 0;
  for (std::uint64_t seed = 1; used < problem_count(40, 1500) && !HasFatalFailure(); ++seed) {
    const test::RandomTraining t = test::random_training(seed);
    std::int64_t most = 0;
    std::int64_t ps = 0;
    for (const step::Storage& storage : t.step.tables().storages) most += storage.bytes;
    for (const std::int64_t of_op : t.times.op_ps) ps = std::max(ps, of_op);
    if (most >= 1'000'000 || ps >= 1'000'000) continue;
    ++used;
    test::Random random(seed);
    const ExactSolver solver(build_problem(t.step, find_space(t.step, t.times)));
    compare_at_some(solver, most, random, seed, counts);
  }
  fmt::print("{} steps, {} budgets, {} of them infeasible\n", used, counts.budgets, counts.infeasible);
}

// Numbers of real steps have to be scaled: then the path is as good as doubles go, and the bound holds.
TEST(ExactMilp, IsABoundWithLargeNumbers) {
  for (std::uint64_t seed = 1; seed <= 30 && !HasFatalFailure(); ++seed) {
    test::Random random(seed);
    Problem problem;
    problem.episodes.push_back(test::random_episode(random, {.most = std::int64_t{1} << 40}));
    const ExactSolver solver(problem);
    const std::int64_t least = solver.smallest_peak_bytes();
    const std::int64_t budget = least + random.between(0, least);
    const Solution sweep = solver.solve({.budget_bytes = budget});
    const Solution milp = solve_exact_milp(problem, budget, test::highs());
    ASSERT_EQ(sweep.end, SolveEnd::kOptimal);
    ASSERT_FALSE(milp.paths.empty()) << seed;
    ASSERT_LE(milp.bound_ps, sweep.time_ps) << seed;
    ASSERT_GE(static_cast<double>(milp.bound_ps), static_cast<double>(sweep.time_ps) * (1 - 1e-6)) << seed;
    ASSERT_LE(static_cast<double>(milp.peak_bytes), static_cast<double>(budget) * (1 + 1e-6)) << seed;
    if (milp.peak_bytes <= budget) {
      ASSERT_GE(milp.time_ps, sweep.time_ps) << seed;
    }
  }
}

}  // namespace
}  // namespace tidemark::planner
