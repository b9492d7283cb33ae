#include "tidemark/planner/exact.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "../support/random_training.h"
#include "../support/random_workspace.h"
#include "brute_force.h"
#include "plan_paths.h"
#include "tidemark/memory/replay.h"
#include "tidemark/planner/build_problem.h"

namespace tidemark::planner {
namespace {

using step::OpId;

struct Checked {
  std::int64_t steps = 0;
  std::int64_t exact = 0;
  std::int64_t given = 0;
  std::int64_t plans = 0;
  std::int64_t modelled = 0;
  std::int64_t budgets = 0;
  std::int64_t two_sided = 0;
  // Plans whose peak is the replay's or lower, budgets whose best time is found or bounded.
  std::int64_t same = 0;
  std::int64_t below = 0;
  std::int64_t right = 0;
  std::int64_t low = 0;
};

std::string text_of(const plan::Plan& plan) {
  std::string text;
  for (const plan::Unit& unit : plan.units) {
    text += fmt::format("[call {}:", unit.call.value());
    for (const OpId op : unit.saved_ops) text += fmt::format(" {}", op.value());
    text += "]";
  }
  return text;
}

struct Kind {
  bool is_odd = false;
  bool has_workspace = false;
  std::int64_t round_to_bytes = 1;
  bool has_casts = false;  // and what is parked is cut
  ProblemOptions limits = {};
};

void check_one(std::uint64_t seed, Checked& total, const Kind& kind) {
  const test::RandomTraining t = test::random_training(seed, {.may_be_odd = kind.is_odd, .has_casts = kind.has_casts});
  test::Random random(seed);
  memory::WorkspaceTable table;
  if (kind.has_workspace) table = test::likely_workspace(t.step, random);
  ProblemOptions options = kind.limits;
  options.workspace = kind.has_workspace ? &table : nullptr;
  options.round_to_bytes = kind.round_to_bytes;
  options.cut_parked = kind.has_casts;
  const memory::ReplayOptions replay_options{.workspace = options.workspace, .round_to_bytes = kind.round_to_bytes};
  const std::vector<test::Tried> tried =
      test::try_all(t.step, t.times, 4000, options.workspace, options.round_to_bytes);
  if (tried.empty()) return;
  ++total.steps;
  total.plans += static_cast<std::int64_t>(tried.size());
  const Space space = find_space(t.step, t.times);
  const Problem problem = build_problem(t.step, space, options);
  if (problem.is_exact) ++total.exact;
  if (problem.given_count > 0) ++total.given;
  if (!problem.forward_episodes.empty()) ++total.two_sided;
  for (const test::Tried& one : tried) {
    const auto figures = test::model_of_plan(space, problem, one.plan);
    if (!figures) continue;
    ++total.modelled;
    const std::int64_t peak = figures->peak_bytes;
    const std::int64_t ps = figures->time_ps;
    (peak == one.peak_bytes ? total.same : total.below)++;
    EXPECT_EQ(ps, one.time_ps) << "seed " << seed;
    if (problem.is_exact)
      EXPECT_EQ(peak, one.peak_bytes) << "seed " << seed << " units " << one.plan.units.size() << " "
                                      << text_of(one.plan);
    else
      EXPECT_LE(peak, one.peak_bytes) << "seed " << seed << " " << text_of(one.plan);
    if (::testing::Test::HasFailure()) return;
  }
  const ExactSolver solver(problem);
  std::set<std::int64_t> peaks;
  for (const test::Tried& one : tried) peaks.insert(one.peak_bytes);
  if (solver.smallest_peak_bytes() != *peaks.begin()) {
    if (problem.is_exact) {
      EXPECT_EQ(solver.smallest_peak_bytes(), *peaks.begin()) << "seed " << seed;
    } else {
      EXPECT_LE(solver.smallest_peak_bytes(), *peaks.begin()) << "seed " << seed;
    }
  }
  for (const std::int64_t peak : peaks)
    for (const std::int64_t budget : {peak - 1, peak}) {
      std::int64_t best = std::numeric_limits<std::int64_t>::max();
      for (const test::Tried& one : tried)
        if (one.peak_bytes <= budget) best = std::min(best, one.time_ps);
      const Solution s = solver.solve({.budget_bytes = budget});
      ++total.budgets;
      const std::int64_t found = s.end == SolveEnd::kOptimal ? s.time_ps : std::numeric_limits<std::int64_t>::max();
      if (s.end == SolveEnd::kOptimal && problem.is_exact) {
        const plan::Plan plan = plan_of(space, solver.problem(), s.paths);
        const std::int64_t replayed = memory::replay(t.step, plan, replay_options).peak.total_bytes;
        EXPECT_LE(replayed, budget) << "seed " << seed;
        EXPECT_EQ(replayed, s.peak_bytes) << "seed " << seed;
        EXPECT_EQ(recompute_ps(t.step, space.index, t.times, plan), s.time_ps) << "seed " << seed;
      }
      ++(found == best ? total.right : total.low);
      if (found == best) continue;
      if (problem.is_exact) {
        EXPECT_EQ(found, best) << "seed " << seed << " budget " << budget;
      } else {
        EXPECT_LE(found, best) << "seed " << seed << " budget " << budget;
      }
    }
}

// TIDEMARK_CAMPAIGN=1 is the long run; another number is how many.
std::uint64_t step_count(std::uint64_t few) {
  const char* campaign = std::getenv("TIDEMARK_CAMPAIGN");
  if (campaign == nullptr) return few;
  const std::uint64_t count = std::strtoull(campaign, nullptr, 10);
  return count > 1 ? count : 50'000;
}

Checked check_many(std::uint64_t few, const Kind& kind) {
  Checked total;
  for (std::uint64_t seed = 1; seed <= step_count(few) && !::testing::Test::HasFailure(); ++seed)
    check_one(seed, total, kind);
  fmt::print(
      "{} steps, {} of them with a model that is exact, {} plans replayed, {} compared with the model, {} budgets\n",
      total.steps, total.exact, total.plans, total.modelled, total.budgets);
  EXPECT_GT(total.steps * 2, static_cast<std::int64_t>(few));
  return total;
}

TEST(Exact, EqualsBruteForceOverTheReplay) {
  const Checked total = check_many(80, {});
  EXPECT_GT(total.exact * 10, total.steps * 8);
}

TEST(Exact, EqualsBruteForceWithWorkspaceAndRounding) {
  const Checked total = check_many(60, {.has_workspace = true, .round_to_bytes = 512});
  EXPECT_GT(total.exact * 2, total.steps);
}

// What the program holds on to for the rest of the forward is cut out of the model and has a side of its own, which
// says how much is there in the forward: together they mostly say what a replay does, and never more.
TEST(Exact, IsABoundWithTwoSides) {
  const Checked total = check_many(150, {.has_casts = true});
  fmt::print(
      "two sides in {} steps: the same peak for {} plans, lower for {}; the same time for {} budgets, less for {}\n",
      total.two_sided, total.same, total.below, total.right, total.low);
  EXPECT_GT(total.two_sided, 20);
  EXPECT_GT(total.same, 9 * total.below);
  EXPECT_GT(total.right, 9 * total.low);
}

// More groups with a say of their own, or more tensors that several parts may hold, than the model takes in: it gives
// the rest away, and then says less than a replay, never more.
TEST(Exact, IsABoundWithTooManyConditions) {
  for (const bool has_casts : {false, true}) {
    const Checked total = check_many(100, {.has_casts = has_casts, .limits = {.max_conditions = 0}});
    EXPECT_GT(total.given, 20);
    EXPECT_GT(total.right, total.low);
  }
}

TEST(Exact, IsABoundWithTooManyPatterns) {
  for (const std::size_t max_shared : {0, 1})
    for (const bool has_casts : {false, true}) {
      const ProblemOptions limits{.max_patterns = 2, .max_shared = max_shared};
      const Checked total = check_many(100, {.has_casts = has_casts, .limits = limits});
      EXPECT_LT(total.exact, total.steps);
      EXPECT_GT(total.right, total.low);
    }
}

// Nodes that never run, saves that stay: the model may be below what a replay says, never above.
TEST(Exact, IsABoundForOddSteps) { check_many(60, {.is_odd = true, .has_workspace = true}); }

}  // namespace
}  // namespace tidemark::planner
