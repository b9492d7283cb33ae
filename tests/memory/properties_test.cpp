// What holds for every step and every plan.

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "../support/permute_step.h"
#include "../support/random_plan.h"
#include "../support/random_step.h"
#include "../support/tiny_program.h"
#include "tidemark/base/error.h"
#include "tidemark/memory/module_table.h"
#include "tidemark/memory/replay.h"
#include "tidemark/plan/legality.h"
#include "tidemark/plan/policies.h"

namespace tidemark::memory {
namespace {

using namespace step;
using plan::Plan;
using test::TinyProgram;

constexpr std::uint64_t kSteps = 3000;

template <class List>
std::int64_t sum_of(const List& list) {
  std::int64_t sum = 0;
  for (const auto& item : list) sum += item.bytes;
  return sum;
}

// Adds up the changes again, block by block and category by category.
void check_changes(const Timeline& timeline) {
  std::map<BlockId, std::int64_t> alive;
  std::int64_t total = timeline.start_bytes;
  std::int64_t most = total;
  for (const Change& change : timeline.changes) {
    if (change.kind == ChangeKind::kAlloc) {
      ASSERT_TRUE(alive.emplace(change.block, change.bytes).second);
      total += change.bytes;
    } else {
      const auto found = alive.find(change.block);
      if (found != alive.end()) {
        ASSERT_EQ(found->second, change.bytes);
        alive.erase(found);
      } else {  // it was there at the start
        ASSERT_EQ(change.block.kind, BlockKind::kOriginal);
      }
      total -= change.bytes;
    }
    ASSERT_EQ(total, change.total_bytes);
    ASSERT_GE(total, 0);
    most = std::max(most, total);
  }
  ASSERT_EQ(most, timeline.peak.total_bytes);
  ASSERT_EQ(total, timeline.end_bytes);
}

void check_sums(const Step& step, const Plan& plan, const Timeline& timeline) {
  ASSERT_EQ(std::accumulate(timeline.peak_by_category.begin(), timeline.peak_by_category.end(), std::int64_t{0}),
            timeline.peak.total_bytes);
  ASSERT_EQ(sum_of(timeline.alive_at_peak), timeline.peak.total_bytes);
  CategoryBytes by_category = {};
  for (const Alive& alive : timeline.alive_at_peak)
    by_category[static_cast<std::size_t>(alive.category)] += alive.bytes;
  ASSERT_EQ(by_category, timeline.peak_by_category);
  ASSERT_EQ(sum_of(timeline.alive_at_end), timeline.end_bytes);
  std::int64_t shares = 0;
  for (const ModuleRow& row : module_table(step, plan, timeline, 1)) shares += row.peak_share_bytes;
  ASSERT_EQ(shares, timeline.peak.total_bytes);
}

// Every op of the step gets scratch, also in the middle of its outputs.
WorkspaceTable some_workspace(const Step& step) {
  std::map<std::string, WorkspaceRow> rows;
  for (std::uint32_t i = 0; i < step.tables().ops.size(); i += 2) {
    const std::string key = workspace_key(step, OpId(i));
    rows[key] = {key,
                 {{WorkspaceStepKind::kTake, 1000},
                  {WorkspaceStepKind::kMake, 1},
                  {WorkspaceStepKind::kTake, 77},
                  {WorkspaceStepKind::kGive, 0}},
                 false};
  }
  WorkspaceTable table;
  for (const auto& [key, row] : rows) table.rows.push_back(row);
  return table;
}

TEST(ReplayProperties, EverythingAddsUpForRandomStepsAndPlans) {
  std::int64_t recomputes = 0;
  for (std::uint64_t seed = 0; seed < kSteps; ++seed) {
    SCOPED_TRACE(seed);
    const Step step = test::random_step(seed);
    const Plan plan = test::random_plan(step, seed + 1);
    const WorkspaceTable table = some_workspace(step);
    const ReplayOptions options{
        .workspace = seed % 2 == 0 ? &table : nullptr, .round_to_bytes = seed % 3 == 0 ? 512 : 1, .keep_changes = true};
    const Timeline timeline = replay(step, plan, options);
    check_changes(timeline);
    check_sums(step, plan, timeline);
    for (const Change& change : timeline.changes) recomputes += change.unit != kNoUnit ? 1 : 0;
    if (testing::Test::HasFatalFailure()) return;
    ASSERT_EQ(replay(step, plan, options), timeline);
  }
  EXPECT_GT(recomputes, static_cast<std::int64_t>(kSteps));
}

TEST(ReplayProperties, WhatIsKeptDoesNotChangeTheResult) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Step step = test::random_step(seed);
    const Plan plan = test::random_plan(step, seed);
    Timeline full = replay(step, plan, {.keep_changes = true});
    const Timeline light = replay(step, plan, {.keep_alive_at_peak = false});
    ASSERT_EQ(static_cast<std::size_t>(full.change_count), full.changes.size());
    full.changes.clear();
    full.alive_at_peak.clear();
    ASSERT_EQ(full, light);
  }
}

TEST(ReplayProperties, APlanWithoutUnitsIsNoPlan) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Step step = test::random_step(seed);
    EXPECT_EQ(replay(step, Plan{}, {.keep_changes = true}),
              replay(step, plan::make_plan(step, plan::parse_policy("none")), {.keep_changes = true}));
  }
}

std::vector<std::pair<ChangeKind, std::int64_t>> history(const Timeline& timeline) {
  std::vector<std::pair<ChangeKind, std::int64_t>> list;
  for (const Change& change : timeline.changes) list.emplace_back(change.kind, change.total_bytes);
  return list;
}

// Layers of an op that is saved, a change in place, a random op and a view; `scale` multiplies every size.
Step layered(std::int64_t scale, int layer_count = 4) {
  TinyProgram p;
  const ModuleId layers = p.module(p.root, "layers", "ModuleList");
  std::vector<ModuleId> modules;
  for (int i = 0; i < layer_count; ++i) modules.push_back(p.module(layers, std::to_string(i), "Layer"));
  TensorId x = p.resident(Role::kInput, 30 * scale);
  const TensorId weight = p.resident(Role::kParameter, 11 * scale);
  p.pass(PassKind::kForward);
  std::vector<std::vector<SaveId>> saves;
  for (const ModuleId module : modules) {
    const CallId call = p.enter(module, {x});
    saves.push_back({p.pack(x)});
    const TensorId a = p.op("aten.mm.default", {x, weight}, 70 * scale);
    const TensorId b = p.op("aten.empty_like.default", {a}, 50 * scale);
    const TensorId c = p.change(b, OpFlag::kRandom);
    saves.back().push_back(p.pack(c));
    const TensorId d = p.op("aten.mm.default", {c, a}, 90 * scale);
    p.free(b);
    const TensorId e = p.view(d);
    saves.back().push_back(p.pack(a));
    const TensorId out = p.op("aten.mm.default", {e}, 30 * scale);
    p.free(a);
    p.free(d);
    p.exit(call, {out});
    p.free(x);
    x = out;
  }
  p.pass(PassKind::kBackward);
  for (std::size_t i = saves.size(); i-- > 0;) {
    for (std::size_t k = saves[i].size(); k-- > 0;) p.free(p.backward({saves[i][k]}, 40 * scale));
  }
  return p.finish();
}

TEST(ReplayProperties, ScalingAllBytesScalesEveryFigure) {
  const Step once = layered(1);
  const Step thrice = layered(3);
  for (const char* name : {"none", "full", "every:2", "selective"}) {
    const plan::PolicyOptions options{.preserve_rng = false};
    const Plan plan = plan::make_plan(once, plan::parse_policy(name), options);
    Timeline scaled = replay(once, plan, {.keep_changes = true});
    scaled.start_bytes *= 3;
    scaled.end_bytes *= 3;
    scaled.peak.total_bytes *= 3;
    for (std::int64_t& bytes : scaled.peak_by_category) bytes *= 3;
    for (Moment& moment : scaled.runners_up) moment.total_bytes *= 3;
    for (Alive& alive : scaled.alive_at_peak) alive.bytes *= 3;
    for (Leftover& leftover : scaled.alive_at_end) leftover.bytes *= 3;
    for (CallPeak& call : scaled.calls) {
      if (call.forward_bytes >= 0) call.forward_bytes *= 3;
      if (call.backward_bytes >= 0) call.backward_bytes *= 3;
    }
    for (Change& change : scaled.changes) {
      change.bytes *= 3;
      change.total_bytes *= 3;
    }
    EXPECT_EQ(scaled, replay(thrice, plan, {.keep_changes = true})) << name;
  }
}

TEST(ReplayProperties, TheNumberingOfIdsDoesNotMatter) {
  const Step step = layered(1);
  for (const char* name : {"none", "full", "every:2", "selective"}) {
    const Timeline timeline = replay(step, plan::make_plan(step, plan::parse_policy(name)), {.keep_changes = true});
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Step permuted = test::permute_ids(step, seed);
      const Plan plan = plan::make_plan(permuted, plan::parse_policy(name));
      const Timeline other = replay(permuted, plan, {.keep_changes = true});
      EXPECT_EQ(history(other), history(timeline)) << name;
      EXPECT_EQ(other.peak_by_category, timeline.peak_by_category);
      EXPECT_EQ(other.peak.event, timeline.peak.event);
    }
  }
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Step random = test::random_step(seed);
    const Timeline timeline = replay(random, {}, {.keep_changes = true});
    const Timeline other = replay(test::permute_ids(random, seed), {}, {.keep_changes = true});
    ASSERT_EQ(history(other), history(timeline)) << seed;
    ASSERT_EQ(other.peak_by_category, timeline.peak_by_category) << seed;
  }
}

TEST(ReplayProperties, PoliciesAreLegal) {
  const Step step = layered(1);
  for (const char* name : {"none", "full", "every:1", "every:3", "selective"})
    EXPECT_TRUE(plan::check(step, plan::make_plan(step, plan::parse_policy(name))).empty()) << name;
}

}  // namespace
}  // namespace tidemark::memory
