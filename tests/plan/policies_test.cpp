// The plans that names stand for.

#include "tidemark/plan/policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/tiny_program.h"
#include "tidemark/base/error.h"
#include "tidemark/plan/policy_ops.h"

namespace tidemark::plan {
namespace {

using namespace step;
using test::TinyProgram;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Policies, AreReadFromTheirNames) {
  EXPECT_EQ(parse_policy("none"), (Policy{PolicyKind::kNone}));
  EXPECT_EQ(parse_policy("full"), (Policy{PolicyKind::kFull}));
  EXPECT_EQ(parse_policy("selective"), (Policy{PolicyKind::kSelective}));
  EXPECT_EQ(parse_policy("every:12"), (Policy{PolicyKind::kEvery, 12}));
  for (const char* text : {"none", "full", "selective", "every:3"}) EXPECT_EQ(policy_text(parse_policy(text)), text);
  for (const char* text :
       {"", "Full", "every", "every:", "every:0", "every:-1", "every:2x", "every:99999999999999999999"})
    EXPECT_THROW(parse_policy(text), Error) << text;
  try {
    parse_policy("evry:2", "--plan");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[--plan]"));
    EXPECT_THAT(error.what(), HasSubstr("none, full, every:K or selective"));
  }
}

TEST(Policies, KnowOpsByTheirNameWithoutOverload) {
  EXPECT_EQ(policy_op_kind("aten.mm.default"), PolicyOpKind::kMatmul);
  EXPECT_EQ(policy_op_kind("aten._scaled_dot_product_flash_attention_for_cpu.default"), PolicyOpKind::kAttention);
  EXPECT_EQ(policy_op_kind("aten.mm_backward.default"), PolicyOpKind::kOther);
  EXPECT_EQ(policy_op_kind("mm"), PolicyOpKind::kOther);
}

TEST(Policies, BlocksAreTheNumberedChildrenOfTheOutermostContainers) {
  TinyProgram p;
  const ModuleId encoder = p.module(p.root, "encoder", "ModuleList");
  const ModuleId e0 = p.module(encoder, "0", "Layer");
  const ModuleId experts = p.module(e0, "experts", "ModuleList");
  p.module(experts, "0", "Expert");
  p.module(experts, "1", "Expert");
  const ModuleId e1 = p.module(encoder, "1", "Layer");
  const ModuleId head = p.module(p.root, "head", "Sequential");
  p.module(head, "0", "Linear");
  p.module(head, "1", "GELU");  // no two of one class
  const ModuleId stem = p.module(p.root, "stem", "Sequential");
  const ModuleId s0 = p.module(stem, "0", "Conv2d");
  const ModuleId s1 = p.module(stem, "1", "ReLU");
  const ModuleId s2 = p.module(stem, "2", "Conv2d");
  EXPECT_THAT(find_blocks(p.finish()), ElementsAre(e0, e1, s0, s1, s2));
}

TEST(Policies, ALayerThatRunsAgainAndAgainIsABlock) {
  TinyProgram p;
  const ModuleId groups = p.module(p.root, "groups", "ModuleList");
  const ModuleId shared = p.module(groups, "0", "Layer");
  const ModuleId once = p.module(p.module(p.root, "other", "ModuleList"), "0", "Layer");
  const TensorId x = p.resident(Role::kInput, 10);
  p.pass(PassKind::kForward);
  for (const ModuleId module : {shared, shared, shared, once}) {
    const CallId call = p.enter(module, {x});
    p.pack(x);
    p.op("aten.mm.default", {x}, 1);
    p.exit(call, {});
  }
  const Step step = p.finish();
  EXPECT_THAT(find_blocks(step), ElementsAre(shared));
  EXPECT_EQ(make_plan(step, {PolicyKind::kFull}).units.size(), 3u);
}

// Four layers, each: three matrix products, an attention, a collective, and one save.
struct Layers {
  TinyProgram p;
  std::vector<CallId> calls;
  std::vector<OpId> first_ops;

  Layers() {
    const ModuleId list = p.module(p.root, "layers", "ModuleList");
    std::vector<ModuleId> modules;
    for (const char* name : {"0", "1", "2", "3"}) modules.push_back(p.module(list, name, "Layer"));
    const TensorId x = p.resident(Role::kInput, 10);
    p.pass(PassKind::kForward);
    for (const ModuleId module : modules) {
      calls.push_back(p.enter(module, {x}));
      p.pack(x);
      p.op("aten.mm.default", {x}, 1);
      first_ops.push_back(p.last_op());
      p.op("aten.gelu.default", {x}, 1);
      p.op("aten.addmm.default", {x}, 1);
      p.op("aten._scaled_dot_product_flash_attention.default", {x}, 1);
      p.op("aten.bmm.default", {x}, 1);
      p.op("_c10d_functional.all_reduce.default", {x}, 1, OpFlag::kCollective);
      p.exit(calls.back(), {});
    }
  }
};

OpId after(OpId op, std::uint32_t count) { return OpId(op.value() + count); }

TEST(Policies, FullSavesOnlyWhatItMust) {
  Layers layers;
  const Plan plan = make_plan(layers.p.finish(), {PolicyKind::kFull}, {.preserve_rng = false, .early_stop = false});
  ASSERT_EQ(plan.units.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(plan.units[i], (Unit{layers.calls[i], {after(layers.first_ops[i], 5)}, false, false}));
}

TEST(Policies, EveryCountsBlocksFromOne) {
  Layers layers;
  const Step step = layers.p.finish();
  const auto calls = [&](const char* policy) {
    std::vector<CallId> list;
    for (const Unit& unit : make_plan(step, parse_policy(policy)).units) list.push_back(unit.call);
    return list;
  };
  EXPECT_THAT(calls("every:2"), ElementsAre(layers.calls[1], layers.calls[3]));
  EXPECT_THAT(calls("every:3"), ElementsAre(layers.calls[2]));
  EXPECT_THAT(calls("every:5"), IsEmpty());
  EXPECT_EQ(calls("every:1"), calls("full"));
  EXPECT_THAT(calls("none"), IsEmpty());
}

TEST(Policies, SelectiveSavesAttentionCollectivesAndEveryOtherProduct) {
  Layers layers;
  const Plan plan = make_plan(layers.p.finish(), {PolicyKind::kSelective});
  ASSERT_EQ(plan.units.size(), 4u);
  for (std::size_t i = 0; i < 4;
       ++i) {  // mm, not addmm, attention, bmm, collective; counting starts anew in each block
    const OpId first = layers.first_ops[i];
    EXPECT_THAT(plan.units[i].saved_ops, ElementsAre(first, after(first, 3), after(first, 4), after(first, 5)));
  }
}

TEST(Policies, WithoutRngStateRandomOpsAreRecomputedAllTheSame) {
  TinyProgram p;
  const ModuleId list = p.module(p.root, "layers", "ModuleList");
  const ModuleId first = p.module(list, "0", "Layer");
  p.module(list, "1", "Layer");
  p.pass(PassKind::kForward);
  const CallId call = p.enter(first, {});
  p.pack(p.op("aten.native_dropout.default", {}, 1, OpFlag::kRandom));
  p.exit(call, {});
  EXPECT_EQ(make_plan(p.finish(), {PolicyKind::kFull}, {.preserve_rng = false}).units.size(), 1u);
}

TEST(Policies, LeaveAloneWhatCannotBeCheckpointed) {
  TinyProgram p;
  const ModuleId list = p.module(p.root, "layers", "ModuleList");
  const ModuleId first = p.module(list, "0", "Layer");
  const ModuleId second = p.module(list, "1", "Layer");
  const TensorId x = p.resident(Role::kInput, 10);
  p.pass(PassKind::kForward);
  const CallId routed = p.enter(first, {x});  // must be saved and cannot be: it is changed in place
  p.pack(x);
  const TensorId a = p.op("aten.topk.default", {x}, 1, OpFlag::kRouting);
  p.change(a);
  p.exit(routed, {});
  const CallId without_saves = p.enter(second, {x});
  p.op("aten.mm.default", {x}, 1);
  p.exit(without_saves, {});
  EXPECT_THAT(make_plan(p.finish(), {PolicyKind::kFull}).units, IsEmpty());
}

}  // namespace
}  // namespace tidemark::plan
