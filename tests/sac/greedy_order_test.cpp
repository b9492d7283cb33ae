#include "tidemark/sac/greedy_order.h"

#include <gtest/gtest.h>

#include <limits>

#include "../support/tiny_program.h"

namespace tidemark::sac {
namespace {

Operator op(std::string name, double ms, std::int64_t bytes) {
  Operator result;
  result.name = std::move(name);
  result.ms = ms;
  result.bytes = bytes;
  return result;
}

// The eight operators of PyTorch's own policy test: a view, a random op, an op that changes a module's input, and one
// that changes the result of linear.
ModuleOperators published_operators() {
  ModuleOperators all;
  all.operators = {op("copy_", 5, 0),           op("add", 5, 100),    op("div", 8, 100), op("mm", 15, 120),
                   op("native_dropout", 15, 0), op("linear", 9, 100), op("t", 1, 0),     op("relu_", 5, 0)};
  all.operators[6].is_view_like = true;
  all.operators[4].is_random = true;
  all.operators[0].changes = 0;
  all.operators[7].changes = 5;
  return all;
}

// The module changes what it is given, and makes one tensor of it.
struct Changing {
  step::Step step;
  step::CallId call;
};

Changing changing() {
  test::TinyProgram p;
  const step::TensorId x = p.resident(step::Role::kInput, 64);
  p.pass(step::PassKind::kForward);
  const step::CallId call = p.enter(p.root, {x});
  const step::TensorId changed = p.change(x);
  const step::TensorId y = p.op("aten.relu.default", {changed}, 64);
  const step::TensorId z = p.op("aten.neg.default", {y}, 64);
  p.exit(call, {z});
  return {p.finish(), call};
}

// A second run would change the input a second time.
TEST(GreedyOrder, StoresWhatChangesTheInput) {
  const Changing c = changing();
  const StepIndex index(c.step);
  const std::vector<double> ms = {1, 1, 1};
  const GreedyOrder order = greedy_order(index, list_operators(index, c.call, ms));
  EXPECT_EQ(order.stored, std::vector<std::uint32_t>{0});
  EXPECT_TRUE(order.recomputed.empty());
  EXPECT_EQ(order.candidates.size(), 2u);
}

// Nobody knows what running it again would take, so it is not given up for nothing.
TEST(GreedyOrder, KeepsWhatHasNoPrice) {
  const Changing c = changing();
  const StepIndex index(c.step);
  const std::vector<double> ms = {1, 0, 1};
  const std::vector<std::uint8_t> is_unpriced = {0, 1, 0};
  const GreedyOrder order = greedy_order(index, list_operators(index, c.call, ms, Rules::kTidemark, is_unpriced));
  EXPECT_EQ(order.unpriced, std::vector<std::uint32_t>{1});
  EXPECT_EQ(order.stored, (std::vector<std::uint32_t>{0, 1}));
  ASSERT_EQ(order.candidates.size(), 1u);
  EXPECT_EQ(order.candidates[0].members, std::vector<std::uint32_t>{2});
}

TEST(ReferenceGreedyOrder, GroupsWhatGoesTogether) {
  const GreedyOrder order = reference_greedy_order(published_operators(), Rules::kReferenceM);
  EXPECT_EQ(order.stored, std::vector<std::uint32_t>{0});
  EXPECT_EQ(order.recomputed, std::vector<std::uint32_t>{6});
  // add 100/5 = 20, div 100/8 = 12.5, mm 120/15 = 8, linear with relu_ 100/14 = 7.1, dropout 0/15.
  std::vector<std::uint32_t> heads;
  for (const Candidate& candidate : order.candidates) heads.push_back(candidate.head);
  EXPECT_EQ(heads, (std::vector<std::uint32_t>{1, 2, 3, 5, 4}));
  EXPECT_EQ(order.candidates[3].members, (std::vector<std::uint32_t>{5, 7}));
  EXPECT_DOUBLE_EQ(order.candidates[0].score, 20);
  EXPECT_DOUBLE_EQ(order.candidates[3].ms, 14);
}

TEST(ReferenceGreedyOrder, StoresRandomOpsWhenNothingIsHandedIn) {
  ModuleOperators all = published_operators();
  all.must_store_random = true;
  EXPECT_EQ(reference_greedy_order(all, Rules::kReferenceM).stored, (std::vector<std::uint32_t>{0, 4}));
}

// The estimator and-ed the flag with the number of random ops in the group, so that it forgot groups with two of them.
TEST(ReferenceGreedyOrder, StoresAGroupWithTwoRandomOps) {
  ModuleOperators all;
  all.operators = {op("rand_like", 1, 10), op("mm", 1, 10), op("uniform_", 1, 0), op("normal_", 1, 0)};
  for (const std::uint32_t i : {0U, 2U, 3U}) all.operators[i].is_random = true;
  all.operators[2].changes = 1;
  all.operators[3].changes = 1;
  all.must_store_random = true;
  EXPECT_EQ(reference_greedy_order(all, Rules::kReferenceM).stored, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST(ReferenceGreedyOrder, WhatCostsNothingGoesFirst) {
  ModuleOperators all;
  all.operators = {op("mm", 1, 10), op("empty", 0, 0)};
  const GreedyOrder order = reference_greedy_order(all, Rules::kReferenceM);
  EXPECT_EQ(order.candidates[0].head, 1U);
  EXPECT_EQ(order.candidates[0].score, std::numeric_limits<double>::max());
}

// Dropout, and a mask that is made in place: line M lists the random op of the mask twice, line B all of it as one.
TEST(ReferenceGreedyOrder, LineBKeepsRandomOpsInPlaceTogether) {
  ModuleOperators all;
  all.operators = {op("native_dropout", 1, 10), op("mm", 1, 20), op("empty_like", 1, 8), op("bernoulli_", 1, 0),
                   op("div_", 1, 0)};
  for (const std::uint32_t i : {0U, 3U}) all.operators[i].is_random = true;
  for (const std::uint32_t i : {3U, 4U}) all.operators[i].changes = 2;
  const auto members = [&](Rules rules) {
    std::vector<std::vector<std::uint32_t>> lists;
    for (const Candidate& candidate : reference_greedy_order(all, rules).candidates) lists.push_back(candidate.members);
    return lists;
  };
  using Lists = std::vector<std::vector<std::uint32_t>>;
  EXPECT_EQ(members(Rules::kReferenceM), (Lists{{1}, {0, 3}, {2, 3, 4}}));  // 20, 10 / 2 and 8 / 3 bytes a ms
  EXPECT_EQ(members(Rules::kReferenceB), (Lists{{1}, {0, 2, 3, 4}}));       // 20 and 18 / 4
  all.must_store_random = true;
  EXPECT_EQ(reference_greedy_order(all, Rules::kReferenceB).stored, (std::vector<std::uint32_t>{0, 2, 3, 4}));
}

TEST(ReferenceGreedyOrder, LineBRecomputesClones) {
  ModuleOperators all;
  all.operators = {op("mm", 1, 10), op("clone", 1, 10)};
  EXPECT_EQ(reference_greedy_order(all, Rules::kReferenceB).recomputed, std::vector<std::uint32_t>{1});
}

}  // namespace
}  // namespace tidemark::sac
