#include "tidemark/planner/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "../support/random_training.h"
#include "brute_force.h"
#include "step_cost.h"
#include "tidemark/base/error.h"
#include "tidemark/planner/why.h"

namespace tidemark::planner {
namespace {

using test::cost_of;

std::int64_t least_time(const std::vector<test::Tried>& tried, std::int64_t budget) {
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (const test::Tried& one : tried)
    if (one.peak_bytes <= budget) best = std::min(best, one.time_ps);
  return best;
}

struct Count {
  int steps = 0;
  int prices = 0;
  int opposites = 0;
  int groups = 0;
};

void check_moments(const Explanation& explanation, const PlanResult& result, std::int64_t room) {
  ASSERT_FALSE(explanation.moments.empty());
  EXPECT_EQ(explanation.moments.front().moment.total_bytes, result.peak_bytes);
  std::int64_t before = result.peak_bytes;
  for (const BindingMoment& moment : explanation.moments) {
    EXPECT_LE(moment.moment.total_bytes, before);
    EXPECT_EQ(moment.slack_bytes, room - moment.moment.total_bytes);
    before = moment.moment.total_bytes;
  }
}

// What the price says is the difference of two optima, each found by trying everything.
void check_price(const Explanation& explanation, const std::vector<test::Tried>& tried, std::int64_t room,
                 Count& count) {
  const Price& price = explanation.price;
  if (!explanation.has_price || !price.is_more_proved) return;
  ++count.prices;
  EXPECT_EQ(price.more_spares_ps, least_time(tried, room) - least_time(tried, room + price.step_bytes));
  if (!price.can_be_less || !price.is_less_proved) return;
  EXPECT_EQ(price.less_costs_ps, least_time(tried, room - price.step_bytes) - least_time(tried, room));
}

// The opposite of a decision is a legal plan with just these figures, and saving an op spares the time that is told.
void check_opposites(const PreparedStep& prepared, const PlanResult& result, const std::vector<test::Tried>& tried,
                     std::int64_t room, Count& count) {
  for (const char* question : {"*", "*::*"}) {
    for (const WhyRow& row : why(prepared, result, question, room)) {
      EXPECT_GT(row.count, 0);
      if (!row.opposite) continue;
      ++count.opposites;
      const WhatIf& other = *row.opposite;
      EXPECT_EQ(other.fits, other.peak_bytes <= room);
      EXPECT_TRUE(std::any_of(tried.begin(), tried.end(), [&](const test::Tried& one) {
        return one.peak_bytes == other.peak_bytes && one.time_ps == other.recompute_ps;
      })) << row.subject;
      if (row.kind == WhyKind::kSaved) {
        EXPECT_EQ(other.recompute_ps - result.recompute_ps, row.count * row.ps_each) << row.subject;
      }
      if (row.kind == WhyKind::kRecomputed) {
        EXPECT_EQ(result.recompute_ps - other.recompute_ps, row.count * row.ps_each) << row.subject;
      }
      // No plan that fits is cheaper.
      if (result.termination == Termination::kOptimal && other.fits) {
        EXPECT_GE(other.recompute_ps, result.recompute_ps) << row.subject;
      }
    }
  }
}

void check_one(std::uint64_t seed, Count& count) {
  const test::RandomTraining t = test::random_training(seed);
  const std::vector<test::Tried> tried = test::try_all(t.step, t.times, 1500);
  if (tried.empty()) return;
  const cost::StepCost cost = cost_of(t.times);
  const PreparedStep prepared(t.step, cost, {});
  const std::int64_t least = prepared.smallest().peak_bytes;
  const std::int64_t most = prepared.none().peak_bytes;
  ++count.steps;
  for (const std::int64_t room : {least, least + (most - least) / 2, most}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " room " << room);
    const PlanResult result = prepared.plan(room, 1'000'000);
    const Explanation explanation = explain(prepared, result, {.room_bytes = room});
    check_moments(explanation, result, room);
    check_price(explanation, tried, room, count);
    check_opposites(prepared, result, tried, room, count);
    EXPECT_EQ(explanation.floor_bytes, least);
    EXPECT_EQ(explanation.floor.moment.total_bytes, least);
    std::int64_t excluded = 0;
    for (const ExcludedCalls& calls : explanation.excluded) excluded += calls.count;
    EXPECT_EQ(excluded + static_cast<std::int64_t>(prepared.space().candidates.size()),
              static_cast<std::int64_t>(t.step.tables().calls.size()));
    for (const GroupRow& row : explanation.groups) count.groups += static_cast<int>(row.count);
  }
}

TEST(Explain, IsTrueOfAllPlans) {
  Count count;
  for (std::uint64_t seed = 5000; seed < 5060 && !HasFailure(); ++seed) check_one(seed, count);
  EXPECT_GT(count.steps, 30);
  EXPECT_GT(count.prices, 15);
  EXPECT_GT(count.opposites, 300);
  EXPECT_GT(count.groups, 50);
}

TEST(Explain, RefusesAQuestionAboutNothing) {
  const test::RandomTraining t = test::random_training(1);
  const cost::StepCost cost = cost_of(t.times);
  const PreparedStep prepared(t.step, cost, {});
  const PlanResult result = prepared.plan(prepared.none().peak_bytes, 1'000'000);
  EXPECT_THROW(why(prepared, result, "no.such.module", 0), Error);
  EXPECT_THROW(why(prepared, result, "*::no.such.op", 0), Error);
}

}  // namespace
}  // namespace tidemark::planner
