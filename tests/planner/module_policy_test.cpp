#include "tidemark/planner/module_policy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../support/random.h"
#include "tidemark/base/error.h"

namespace tidemark::planner {
namespace {

using sac::ModuleOperators;

ModuleOperators operators_of(const std::vector<std::pair<double, std::int64_t>>& time_and_bytes) {
  ModuleOperators operators;
  for (const auto& [ms, bytes] : time_and_bytes) {
    operators.operators.emplace_back();
    operators.operators.back().ms = ms;
    operators.operators.back().bytes = bytes;
    operators.total_bytes += bytes;
    operators.total_ms += ms;
  }
  return operators;
}

// copy_, add, div, mm, native_dropout, linear, t, relu_ of PyTorch's test of its per-module policies
// (test/distributed/_tools/test_sac_ilp.py), and auto-SAC's greedy answers for the same.
ModuleOperators published() {
  ModuleOperators operators = operators_of({{5, 0}, {5, 100}, {8, 100}, {15, 120}, {15, 0}, {9, 100}, {1, 0}, {5, 0}});
  operators.operators[0].changes = 0;
  operators.operators[7].changes = 5;
  operators.operators[4].is_random = true;
  operators.operators[6].is_view_like = true;
  return operators;
}

std::string bits_of(const ModulePolicy& policy) {
  std::string bits;
  for (const std::uint8_t flag : policy.saved) bits += flag != 0 ? '1' : '0';
  return bits;
}

TEST(ModulePolicy, PublishedOptimalAnswers) {
  const std::pair<int, const char*> answers[] = {{0, "10001000"},   {100, "10001101"}, {120, "10011000"},
                                                 {200, "10101101"}, {220, "10011101"}, {320, "10111101"},
                                                 {420, "11111101"}};
  for (const auto& [bytes, bits] : answers) {
    const ModulePolicy policy = optimal_policy(published(), bytes / 420.0);
    EXPECT_TRUE(policy.is_feasible);
    EXPECT_EQ(bits_of(policy), bits) << bytes;
  }
}

TEST(ModulePolicy, PublishedGreedyAnswers) {
  const std::pair<int, const char*> answers[] = {{0, "10001000"},   {100, "10001101"}, {120, "10001101"},
                                                 {200, "10001101"}, {220, "10011101"}, {320, "10111101"},
                                                 {420, "11111101"}};
  for (const auto& [bytes, bits] : answers) {
    const ModulePolicy policy = greedy_policy(published(), bytes / 420.0);
    EXPECT_TRUE(policy.is_feasible);
    EXPECT_EQ(bits_of(policy), bits) << bytes;
  }
}

TEST(ModulePolicy, WhatMustBeSavedAndDoesNotFitIsToldApart) {
  ModuleOperators operators = operators_of({{1, 60}, {1, 40}});
  operators.operators[0].is_random = true;
  operators.must_store_random = true;
  for (const auto& policy : {optimal_policy(operators, 0.5), greedy_policy(operators, 0.5)}) {
    EXPECT_FALSE(policy.is_feasible);
    EXPECT_EQ(bits_of(policy), "10");
  }
  EXPECT_EQ(bits_of(greedy_policy(operators, 0.6)), "10");  // 60 of 100: the reference would charge the 60 twice
}

TEST(ModulePolicy, RefusesWhatIsNoPart) {
  for (const double part : {-0.1, 1.1, std::nan("")}) {
    EXPECT_THROW(optimal_policy(published(), part), Error);
    EXPECT_THROW(greedy_policy(published(), part), Error);
  }
}

// Every legal set of saved operators, by section 12's constraints as they stand.
TEST(ModulePolicy, EqualsAllSets) {
  int infeasible = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    test::Random random(seed);
    ModuleOperators all;
    const auto count = static_cast<std::uint32_t>(random.between(1, 9));
    all.must_store_random = random.chance(30);
    std::int64_t bytes = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      sac::Operator o;
      o.ms = static_cast<double>(random.between(0, 9));
      o.is_view_like = random.chance(15);
      o.bytes = o.is_view_like ? 0 : random.between(0, 9);
      o.is_random = !o.is_view_like && random.chance(25);
      if (random.chance(25)) o.changes = static_cast<std::uint32_t>(random.between(0, i));
      bytes += o.bytes;
      all.operators.push_back(o);
    }
    const double part = static_cast<double>(random.between(0, 10)) / 10;
    double best = -1;
    for (std::uint32_t bits = 0; bits < (1u << count); ++bits) {
      bool is_legal = true;
      std::int64_t weight = 0;
      double ms = 0;
      std::optional<bool> of_random;
      for (std::uint32_t i = 0; i < count; ++i) {
        const sac::Operator& o = all.operators[i];
        const bool saved = (bits >> i & 1) != 0;
        if (o.is_view_like && saved) is_legal = false;
        if (o.is_random && all.must_store_random && !saved) is_legal = false;
        if (o.is_random && of_random && *of_random != saved) is_legal = false;
        if (o.is_random) of_random = saved;
        if (o.changes && *o.changes == i && !saved) is_legal = false;
        if (o.changes && saved != ((bits >> *o.changes & 1) != 0)) is_legal = false;
        if (saved) weight += o.bytes;
        if (saved) ms += o.ms;
      }
      if (is_legal && static_cast<double>(weight) <= std::ceil(part * static_cast<double>(bytes)))
        best = std::max(best, ms);
    }
    const ModulePolicy policy = optimal_policy(all, part);
    ASSERT_EQ(policy.is_feasible, best >= 0) << seed;
    infeasible += best < 0 ? 1 : 0;
    if (best < 0) continue;
    double saved_ms = 0;
    for (std::uint32_t i = 0; i < count; ++i) saved_ms += policy.saved[i] != 0 ? all.operators[i].ms : 0;
    ASSERT_EQ(saved_ms, best) << seed;
    ASSERT_LE(static_cast<double>(policy.bytes), std::ceil(part * static_cast<double>(bytes))) << seed;
  }
  EXPECT_GT(infeasible, 50);
  EXPECT_LT(infeasible, 950);
}

}  // namespace
}  // namespace tidemark::planner
