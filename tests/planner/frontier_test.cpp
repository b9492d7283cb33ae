#include "tidemark/planner/frontier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "../support/random_training.h"
#include "brute_force.h"
#include "step_cost.h"
#include "tidemark/base/error.h"
#include "tidemark/zoo/record.h"

namespace tidemark::planner {
namespace {

using test::cost_of;

constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::max();

// The staircase by brute force.
struct Stairs {
  std::map<std::int64_t, std::int64_t> breakpoints;  // from peak to time

  explicit Stairs(const std::vector<test::Tried>& tried) {
    std::map<std::int64_t, std::int64_t> least;
    for (const test::Tried& one : tried) {
      const auto at = least.emplace(one.peak_bytes, one.time_ps).first;
      at->second = std::min(at->second, one.time_ps);
    }
    std::int64_t best = kNoTime;
    for (const auto& [peak, ps] : least) {
      if (ps >= best) continue;
      breakpoints.emplace(peak, ps);
      best = ps;
    }
  }

  std::int64_t at(std::int64_t budget) const {
    const auto above = breakpoints.upper_bound(budget);
    return above == breakpoints.begin() ? kNoTime : std::prev(above)->second;
  }
};

bool is_proved(const Frontier& frontier) {
  return frontier.is_smallest_proved && std::all_of(frontier.points.begin(), frontier.points.end(),
                                                    [](const FrontierPoint& point) { return point.is_proved(); });
}

// Whatever was not proved, nothing may be untrue.
void expect_honest(const Frontier& frontier, const Stairs& stairs, std::uint64_t seed) {
  const FrontierPoint* before = nullptr;
  for (const FrontierPoint& point : frontier.points) {
    EXPECT_LE(point.peak_bytes, point.budget_bytes) << "seed " << seed;
    EXPECT_LE(point.bound_ps, stairs.at(point.budget_bytes)) << "seed " << seed;
    EXPECT_GE(point.recompute_ps, stairs.at(point.peak_bytes)) << "seed " << seed;
    if (before != nullptr) {
      EXPECT_LT(before->budget_bytes, point.budget_bytes) << "seed " << seed;
      EXPECT_GE(before->recompute_ps, point.recompute_ps) << "more budget costs more, seed " << seed;
      EXPECT_GE(before->bound_ps, point.bound_ps) << "seed " << seed;
    }
    before = &point;
  }
  EXPECT_EQ(frontier.points.back().recompute_ps, 0);
}

struct Count {
  int steps = 0;
  int proved = 0;
  int staircases = 0;  // of three breakpoints and more
};

void check_full(const PreparedStep& prepared, const Stairs& stairs, std::uint64_t seed, Count& count) {
  const Frontier full = find_frontier(prepared, {.budget_count = 5, .is_full = true});
  expect_honest(full, stairs, seed);
  EXPECT_TRUE(full.missing.empty()) << "seed " << seed;
  if (!is_proved(full)) return;
  ++count.proved;
  if (full.points.size() >= 3) ++count.staircases;
  std::map<std::int64_t, std::int64_t> found;
  for (const FrontierPoint& point : full.points) found.emplace(point.budget_bytes, point.recompute_ps);
  EXPECT_EQ(found, stairs.breakpoints) << "seed " << seed;
}

// Each budget has its place and its time.
void check_coarse(const PreparedStep& prepared, const Stairs& stairs, std::uint64_t seed) {
  const Frontier coarse = find_frontier(prepared, {.budget_count = 7});
  expect_honest(coarse, stairs, seed);
  EXPECT_LE(coarse.points.size(), 7u);
  EXPECT_EQ(coarse.points.front().budget_bytes, coarse.smallest_peak_bytes);
  EXPECT_EQ(coarse.points.back().budget_bytes, coarse.unplanned_peak_bytes);
  for (const FrontierPoint& point : coarse.points) {
    if (!point.is_proved()) continue;
    EXPECT_EQ(point.recompute_ps, stairs.at(point.budget_bytes)) << "seed " << seed << " " << point.budget_bytes;
  }
}

// Stopped early, it names the budgets that it does not know: a breakpoint is told, or lies there.
void check_limit(const PreparedStep& prepared, const Stairs& stairs, std::uint64_t seed) {
  for (const std::int64_t work : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{20'000}}) {
    const Frontier some = find_frontier(prepared, {.budget_count = 2, .is_full = true, .max_work = work});
    expect_honest(some, stairs, seed);
    if (!is_proved(some)) continue;
    for (const auto& [peak, ps] : stairs.breakpoints) {
      const bool is_told = std::any_of(some.points.begin(), some.points.end(), [&, at = peak](const FrontierPoint& p) {
        return p.budget_bytes == at && p.recompute_ps == stairs.at(at);
      });
      const bool is_missing = std::any_of(some.missing.begin(), some.missing.end(), [at = peak](const BudgetRange& r) {
        return r.first_bytes <= at && at <= r.last_bytes;
      });
      EXPECT_TRUE(is_told || is_missing) << "seed " << seed << " work " << work << " breakpoint " << peak;
    }
  }
}

void check_one(std::uint64_t seed, bool odd, Count& count) {
  const test::RandomTraining t = test::random_training(seed, {.may_be_odd = odd});
  const std::vector<test::Tried> tried = test::try_all(t.step, t.times, 1500);
  if (tried.empty()) return;
  ++count.steps;
  const cost::StepCost cost = cost_of(t.times);
  const PreparedStep prepared(t.step, cost, {});
  const Stairs stairs(tried);
  check_full(prepared, stairs, seed, count);
  check_coarse(prepared, stairs, seed);
  check_limit(prepared, stairs, seed);
}

TEST(Frontier, IsTheStaircaseOfAllPlans) {
  Count count;
  for (std::uint64_t seed = 3000; seed < 3200 && !HasFailure(); ++seed) check_one(seed, false, count);
  EXPECT_GT(count.steps, 75);
  EXPECT_GT(count.proved * 10, count.steps * 8);
  EXPECT_GT(count.staircases, 10);
}

TEST(Frontier, IsHonestAboutOddSteps) {
  Count count;
  for (std::uint64_t seed = 3000; seed < 3060 && !HasFailure(); ++seed) check_one(seed, true, count);
  EXPECT_GT(count.steps, 30);
}

// At a breakpoint p the planner says its time, and at p - 1 the one before: each by a plan of its own.
TEST(Frontier, BreakpointsAreWherePlansChange) {
  zoo::StepOptions options;  // activations far above parameters, so that there is something to plan
  options.batch = 8;
  options.sequence = 64;
  const zoo::Gpt2Config config{.layers = 2, .width = 32, .heads = 4, .vocabulary = 32, .positions = 64};
  const step::Step step = zoo::record(config, options);
  Times times;
  times.op_ps.assign(step.tables().ops.size(), 1000);
  const cost::StepCost cost = cost_of(times);
  const PreparedStep prepared(step, cost, {});
  const Frontier full = find_frontier(prepared, {.is_full = true, .max_work = 1'000'000'000});
  ASSERT_TRUE(full.missing.empty());
  ASSERT_GT(full.points.size(), 4u);
  for (std::size_t i = 0; i < full.points.size(); i += 1 + full.points.size() / 8) {
    const FrontierPoint& point = full.points[i];
    ASSERT_TRUE(point.is_proved());
    EXPECT_EQ(plan_step(step, cost, {.budget_bytes = point.budget_bytes}).recompute_ps, point.recompute_ps);
    const PlanResult below = plan_step(step, cost, {.budget_bytes = point.budget_bytes - 1});
    if (i == 0) {
      EXPECT_EQ(below.termination, Termination::kInfeasible);
    } else {
      EXPECT_EQ(below.recompute_ps, full.points[i - 1].recompute_ps);
    }
  }
}

TEST(Frontier, TellsHowFarItIs) {
  const test::RandomTraining t = test::random_training(3001);
  const cost::StepCost cost = cost_of(t.times);
  const PreparedStep prepared(t.step, cost, {});
  std::vector<FrontierProgress> told;
  const Frontier full = find_frontier(
      prepared, {.is_full = true, .progress = [&](const FrontierProgress& progress) { told.push_back(progress); }});
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().known_bytes, told.back().all_bytes);
  EXPECT_EQ(told.back().solved, full.solved);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end(),
                             [](const auto& a, const auto& b) { return a.known_bytes < b.known_bytes; }));
}

TEST(Frontier, NeedsTwoBudgets) {
  const test::RandomTraining t = test::random_training(1);
  const cost::StepCost cost = cost_of(t.times);
  EXPECT_THROW(find_frontier(PreparedStep(t.step, cost, {}), {.budget_count = 1}), Error);
}

}  // namespace
}  // namespace tidemark::planner
