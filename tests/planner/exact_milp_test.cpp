#include "tidemark/planner/exact_milp.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "../support/highs.h"
#include "../support/random.h"
#include "../support/random_training.h"
#include "random_problem.h"
#include "step_cost.h"
#include "tidemark/memory/replay.h"
#include "tidemark/planner/prepared.h"

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
    if (seed % 4 == 0)  // with another side
      for (const Episode& episode : problem.episodes)
        problem.forward_episodes.push_back(test::random_forward(episode, random, most));
    const ExactSolver solver(problem);
    compare_at_some(solver, solver.smallest_peak_bytes() * 2, random, seed, counts);
  }
  fmt::print("{} budgets, {} of them infeasible\n", counts.budgets, counts.infeasible);
  EXPECT_GT(counts.infeasible, counts.budgets / 5);
}

// The sum of a step's bytes, if that and all times are small enough for doubles to be exact.
std::optional<std::int64_t> small_bytes(const test::RandomTraining& t) {
  std::int64_t most = 0;
  std::int64_t ps = 0;
  for (const step::Storage& storage : t.step.tables().storages) most += storage.bytes;
  for (const std::int64_t of_op : t.times.op_ps) ps = std::max(ps, of_op);
  if (most >= 1'000'000 || ps >= 1'000'000) return std::nullopt;
  return most;
}

// Whole steps, from the step to a plan that was replayed. Where the model of a step says less than a replay, or leaves
// choices out, a program can only be asked again with less, and may end above the best plan, without a proof, or
// without a plan: such answers are counted, and must be no better than the search's.
TEST(ExactMilp, AgreesWithTheSearchOnRandomSteps) {
  std::uint64_t used = 0;
  Counts counts;
  std::int64_t above = 0;
  for (std::uint64_t seed = 1; used < problem_count(40, 900) && !HasFatalFailure(); ++seed) {
    const test::RandomTraining t = test::random_training(seed);
    const std::optional<std::int64_t> most = small_bytes(t);
    if (!most) continue;
    ++used;
    test::Random random(seed);
    const cost::StepCost cost = test::cost_of(t.times);
    const PreparedStep exact(t.step, cost, {});
    const PreparedStep second(t.step, cost, {.method = {.method = Method::kExactMilp, .highs = &test::highs()}});
    const Problem& problem = exact.solver().problem();
    const bool is_exact = problem.is_exact;
    const std::int64_t least = exact.smallest().peak_bytes;
    for (const std::int64_t budget :
         {std::max<std::int64_t>(0, least - 1), least, random.between(least, std::max(least, *most))}) {
      const PlanResult a = exact.plan(budget, PlannerOptions().max_work);
      const PlanResult b = second.plan(budget, PlannerOptions().max_work);
      ++counts.budgets;
      counts.infeasible += a.termination == Termination::kInfeasible ? 1 : 0;
      const bool is_same =
          a.termination == b.termination && a.recompute_ps == b.recompute_ps && a.bound_ps == b.bound_ps;
      if (has_plan(b.termination)) {
        ASSERT_LE(memory::replay(t.step, b.plan).peak.total_bytes, budget) << "seed " << seed;
        ASSERT_EQ(recompute_ps(t.step, exact.space().index, exact.times(), b.plan), b.recompute_ps) << "seed " << seed;
        ASSERT_TRUE(has_plan(a.termination)) << "seed " << seed << " budget " << budget;
        ASSERT_GE(b.recompute_ps, a.bound_ps) << "seed " << seed << " budget " << budget;
        ASSERT_LE(b.bound_ps, a.recompute_ps) << "seed " << seed << " budget " << budget;
      }
      if (is_same) continue;
      ASSERT_FALSE(is_exact) << "seed " << seed << " budget " << budget << ": " << name_of(a.termination) << " "
                             << a.recompute_ps << ", " << name_of(b.termination) << " " << b.recompute_ps;
      ++above;
    }
  }
  fmt::print("{} steps, {} budgets, {} of them infeasible; {} answers of the program with a model that is not exact\n",
             used, counts.budgets, counts.infeasible, above);
  EXPECT_GT(counts.infeasible, counts.budgets / 5);
  EXPECT_LT(above, counts.budgets / 10);
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
