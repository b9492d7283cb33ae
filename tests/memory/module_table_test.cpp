// Which module a byte belongs to.

#include "tidemark/memory/module_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/tiny_program.h"
#include "tidemark/memory/replay.h"

namespace tidemark::memory {
namespace {

using namespace step;
using test::TinyProgram;
using ::testing::ElementsAre;

// Net > block > inner. The inner module has a weight of 1 B, whose gradient of 2 B is there too, makes 4 B, and has a
// scratch of 8 B; the block makes 16 B; outside any module 32 B are made, and an input has 64 B.
struct Modules {
  TinyProgram p;
  ModuleId block, inner;
  CallId net_call, block_call, inner_call;

  Modules() {
    block = p.module(p.root, "block", "Block");
    inner = p.module(block, "inner", "Linear");
    const TensorId weight = p.resident(Role::kParameter, 1);
    p.b.add_binding({inner, p.b.intern("weight"), weight, BindingKind::kParameter, true});
    p.b.set_storage_role(p.storage(p.resident(Role::kPlain, 2)), Role::kGradient, p.storage(weight));
    p.resident(Role::kInput, 64);
    p.pass(PassKind::kForward);
    p.op("aten.mm.default", {}, 32);
    net_call = p.enter(p.root, {});
    block_call = p.enter(block, {});
    p.pack(p.op("aten.mm.default", {}, 16));
    inner_call = p.enter(inner, {});
    p.op("aten.gelu.default", {}, 4);
    p.exit(inner_call, {});
    p.exit(block_call, {});
    p.exit(net_call, {});
  }
};

std::vector<std::int64_t> shares(const std::vector<ModuleRow>& rows) {
  std::vector<std::int64_t> list;
  for (const ModuleRow& row : rows) list.push_back(row.peak_share_bytes);
  return list;
}

TEST(ModuleTable, EveryByteBelongsSomewhere) {
  Modules m;
  const Step step = m.p.finish();
  const WorkspaceTable table{
      "", {{"aten.gelu.default(){}", {{WorkspaceStepKind::kMake, 0}, {WorkspaceStepKind::kTake, 8}}, false}}};
  const Timeline timeline = replay(step, {}, {.workspace = &table});
  // Root 0, block 16, inner 1 + 2 + 4 + 8, nowhere 32 + 64.
  EXPECT_THAT(shares(module_table(step, {}, timeline, 9)), ElementsAre(0, 16, 15, 96));
  EXPECT_THAT(shares(module_table(step, {}, timeline, 2)), ElementsAre(0, 16, 15, 96));
  EXPECT_THAT(shares(module_table(step, {}, timeline, 1)), ElementsAre(0, 31, 96));
  EXPECT_THAT(shares(module_table(step, {}, timeline, 0)), ElementsAre(31, 96));
  const std::vector<ModuleRow> rows = module_table(step, {}, timeline, 9);
  EXPECT_EQ(rows[2].module, m.inner);
  EXPECT_EQ(rows[2].calls, 1);
  EXPECT_EQ(rows[2].forward_peak_bytes, 127);  // all bits
  EXPECT_EQ(rows[2].backward_peak_bytes, CallPeak::kNever);
  EXPECT_EQ(rows[3].module, ModuleId());
}

TEST(ModuleTable, AnRngStateBelongsToItsUnit) {
  Modules m;
  const Step step = m.p.finish();
  const plan::Plan plan{{{m.block_call, {}, true, true}}};
  const Timeline timeline = replay(step, plan);
  // As above without the scratch; the unit's state is there from its enter on.
  EXPECT_THAT(shares(module_table(step, plan, timeline, 9)), ElementsAre(0, 16 + kRngStateBytes, 7, 96));
}

}  // namespace
}  // namespace tidemark::memory
