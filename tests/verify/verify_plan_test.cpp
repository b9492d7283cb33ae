#include "tidemark/verify/verify_plan.h"

#include <gtest/gtest.h>

#include "../support/random_plan.h"
#include "../support/random_step.h"
#include "../support/random_training.h"
#include "../support/tiny_program.h"
#include "tidemark/plan/legality.h"
#include "tidemark/verify/plan_time.h"
#include "tidemark/verify/wrong_times.h"

namespace tidemark::verify {
namespace {

// Two pieces of code that know the same page say the same about plans made at random.
TEST(VerifyPlan, AgreesWithLegality) {
  int legal = 0;
  int illegal = 0;
  const auto compare = [&](const step::Step& step, std::uint64_t seed) {
    for (std::uint64_t k = 0; k < 4; ++k) {
      const plan::Plan plan = test::random_plan(step, seed * 4 + k);
      const bool is_legal = plan::check(step, plan).empty();
      const std::vector<std::string> violations = find_violations(step, plan);
      EXPECT_EQ(violations.empty(), is_legal) << seed << " " << (violations.empty() ? "" : violations[0]);
      ++(is_legal ? legal : illegal);
    }
  };
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    compare(test::random_training(seed).step, seed);
    compare(test::random_step(seed), seed);
  }
  EXPECT_GT(legal, 200);
  EXPECT_GT(illegal, 200);
}

// A caller writes into what a block has read, before or after its backward; or into what the block returned.
TEST(VerifyPlan, NothingIsWrittenBeforeTheRecompute) {
  const auto violations = [](bool before, bool into_result, bool saves) {
    test::TinyProgram p;
    const step::ModuleId block = p.module(p.root, "block", "Block");
    const step::TensorId x = p.resident(step::Role::kInput, 10);
    p.pass(step::PassKind::kForward);
    const step::CallId call = p.enter(block, {x});
    const step::TensorId y = p.op("aten.mm.default", {x}, 20);
    const step::OpId first = p.last_op();
    const step::SaveId save = p.pack(x);
    p.exit(call, {y});
    if (before) p.change(into_result ? y : x);
    p.pass(step::PassKind::kBackward);
    p.backward({save}, 5);
    if (!before) p.change(into_result ? y : x);
    plan::Unit unit{.call = call, .saved_ops = {}};
    if (saves) unit.saved_ops.push_back(first);
    return find_violations(p.finish(), {{unit}}).size();
  };
  EXPECT_EQ(violations(true, false, false), 1u);
  EXPECT_EQ(violations(false, false, false), 0u);
  EXPECT_EQ(violations(true, true, false), 0u);
  EXPECT_EQ(violations(true, true, true), 1u);
  EXPECT_EQ(violations(false, true, true), 0u);
}

// Two losses, each of which needs one of the tensors that a block keeps, in one backward or in two.
TEST(VerifyPlan, AUnitHasOneBackward) {
  for (const std::uint32_t task : {0u, 1u}) {
    test::TinyProgram p;
    const step::ModuleId block = p.module(p.root, "block", "Block");
    const step::TensorId x = p.resident(step::Role::kInput, 10);
    p.pass(step::PassKind::kForward);
    const step::CallId call = p.enter(block, {x});
    const step::TensorId y = p.op("aten.mm.default", {x}, 20);
    const step::SaveId first = p.pack(y);
    const step::SaveId second = p.pack(x);
    p.exit(call, {y});
    p.pass(step::PassKind::kBackward, 0);
    p.backward({first}, 5);
    p.pass(step::PassKind::kBackward, task);
    p.backward({second}, 5);
    EXPECT_EQ(find_violations(p.finish(), {{plan::Unit{.call = call, .saved_ops = {}}}}).size(), task);
  }
}

// A plan holds up to its peak, and one byte less is too little; figures that are wrong are named.
TEST(VerifyPlan, KnowsTheBudget) {
  int tried = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const step::Step step = test::random_training(seed).step;
    const plan::Plan plan = test::random_plan(step, seed);
    if (!find_violations(step, plan).empty()) continue;
    ++tried;
    const Replayed replayed = replay(step, plan);
    const std::int64_t peak = replayed.peak_bytes;
    plan::PlanFile file{plan, {}, {}};
    file.facts.budget_bytes = peak + 7;
    file.facts.reserve_bytes = 7;
    file.facts.start_bytes = replayed.start_bytes;
    file.facts.peak_bytes = peak;
    const Verdict fits = verify_plan(step, file);
    EXPECT_TRUE(fits.holds);
    EXPECT_TRUE(fits.wrong_figures.empty());
    EXPECT_EQ(fits.peak_bytes, peak);
    file.facts.reserve_bytes = 8;
    file.facts.peak_bytes = peak - 1;
    ++file.facts.start_bytes;
    const Verdict over = verify_plan(step, file);
    EXPECT_FALSE(over.holds);
    EXPECT_NE(over.first_over, "");
    EXPECT_EQ(over.wrong_figures.size(), 2u);
  }
  EXPECT_GT(tried, 40);
}

// A block that runs two ops and keeps what the first one makes.
struct Block {
  explicit Block(bool early_stop = true) : step(record()) {
    file.plan.units.push_back({.call = call, .saved_ops = {}, .preserve_rng = false, .early_stop = early_stop});
    cost.ops.resize(step.tables().ops.size());
    times.op_ps = {300, 40, 7};
    times.region_ps = 1000;
    times.region_save_ps = 20'000;
  }

  step::Step record() {
    test::TinyProgram p;
    const step::ModuleId block = p.module(p.root, "block", "Block");
    const step::TensorId x = p.resident(step::Role::kInput, 10);
    p.pass(step::PassKind::kForward);
    call = p.enter(block, {x});
    const step::TensorId y = p.op("aten.mm.default", {x}, 20);
    first = p.last_op();
    const step::SaveId save = p.pack(y);
    const step::TensorId z = p.op("aten.relu.default", {y}, 20);
    p.exit(call, {z});
    p.pass(step::PassKind::kBackward);
    p.backward({save}, 5);
    return p.finish();
  }

  step::CallId call;
  step::OpId first;
  step::Step step;
  plan::PlanFile file;
  cost::StepCost cost;
  planner::Times times;
};

// A checkpoint, what is saved in it, and the ops up to the last save, or to the end.
TEST(VerifyPlan, KnowsTheTime) {
  Block stops(true);
  stops.file.facts.recompute_ps = 1000 + 20'000 + 300;
  EXPECT_TRUE(wrong_times(stops.step, stops.file, stops.cost, stops.times).empty());
  Block ends(false);
  ends.file.facts.recompute_ps = 1000 + 20'000 + 300 + 40;
  EXPECT_TRUE(wrong_times(ends.step, ends.file, ends.cost, ends.times).empty());
  --ends.file.facts.recompute_ps;
  EXPECT_EQ(wrong_times(ends.step, ends.file, ends.cost, ends.times),
            std::vector<std::string>{"the file says that recomputing takes 21,339 ps, and it takes 21,340 ps"});
  EXPECT_EQ(ops_run_again(stops.step, stops.file.plan), std::vector<step::OpId>{stops.first});
  stops.file.facts.unpriced = {{"aten.mm.default", 1, 30}};
  EXPECT_EQ(wrong_times(stops.step, stops.file, stops.cost, stops.times).size(), 1u);
}

// Figures of one file that cannot all be true.
TEST(VerifyPlan, NoticesContradictions) {
  Block block;
  const Replayed replayed = replay(block.step, block.file.plan);
  plan::PlanFacts& facts = block.file.facts;
  facts.budget_bytes = facts.peak_bytes = replayed.peak_bytes;
  facts.start_bytes = replayed.start_bytes;
  facts.smallest_peak_bytes = replayed.peak_bytes;
  facts.recompute_ps = facts.bound_ps = 5;
  facts.termination = "optimal";
  const plan::PlanFacts good = facts;
  const auto wrong_count = [&] { return verify_plan(block.step, block.file).wrong_figures.size(); };
  EXPECT_EQ(wrong_count(), 0u);
  facts.bound_ps = 4;
  EXPECT_EQ(wrong_count(), 1u);
  facts.termination = "feasible";
  EXPECT_EQ(wrong_count(), 0u);
  facts.bound_ps = 6;
  EXPECT_EQ(wrong_count(), 1u);
  facts = good;
  facts.termination = "fits";
  EXPECT_EQ(wrong_count(), 1u);
  facts = good;
  facts.smallest_peak_bytes = replayed.start_bytes - 1;
  EXPECT_EQ(wrong_count(), 1u);
  facts.smallest_peak_bytes = replayed.peak_bytes + 1;
  EXPECT_EQ(wrong_count(), 1u);
}

}  // namespace
}  // namespace tidemark::verify
