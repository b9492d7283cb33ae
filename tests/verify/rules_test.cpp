// Small cases of rules that are easily got wrong, worked out by hand from the page, for both replays.

#include <gtest/gtest.h>

#include "../support/tiny_program.h"
#include "tidemark/memory/replay.h"
#include "tidemark/verify/replay.h"

namespace tidemark::verify {
namespace {

struct Row {
  std::int64_t bytes = 0;
  std::int64_t total = 0;

  friend bool operator==(const Row&, const Row&) = default;
  friend void PrintTo(const Row& row, std::ostream* out) { *out << row.bytes << " -> " << row.total; }
};

void expect_rows(const step::Step& step, const plan::Plan& plan, const memory::WorkspaceTable& table,
                 const std::vector<Row>& expected) {
  std::vector<Row> second;
  for (const Change& change : replay(step, plan, {.workspace = &table}).changes)
    second.push_back({change.bytes, change.total_bytes});
  EXPECT_EQ(second, expected) << "verify";
  std::vector<Row> first;
  for (const memory::Change& c : memory::replay(step, plan, {.workspace = &table, .keep_changes = true}).changes)
    first.push_back({c.kind == memory::ChangeKind::kAlloc ? c.bytes : -c.bytes, c.total_bytes});
  EXPECT_EQ(first, expected) << "memory";
}

TEST(Rules, ASavedUnwatchedOpIsNotRunAgain) {
  test::TinyProgram p;
  const auto x = p.resident(step::Role::kInput, 10);
  p.pass(step::PassKind::kForward);
  const auto call = p.enter(p.root, {x});
  const auto y = p.op("aten.mm.default", {x}, 20);
  const auto z = p.change(y, step::OpFlag::kUnwatched);
  const step::OpId saved = p.last_op();
  const auto save = p.pack(z);
  p.exit(call, {z});
  p.free(z);
  p.pass(step::PassKind::kBackward);
  p.backward({save}, 30);
  expect_rows(p.finish(), {{{call, {saved}, false, false}}}, {},
              {{20, 30},     // y
               {20, 50},     // the storage that the change makes when it is watched
               {-20, 30},    // and afterwards one of the two is alive; the cache keeps it
               {20, 50},     // y again
               {-20, 30},    // the change is not run; the cache lets go of the first y
               {30, 60},     // the gradient
               {-20, 40}});  // the node drops the second y
}

TEST(Rules, AnUnwatchedOpMakesAsMuchAsItsStorageHasThen) {
  test::TinyProgram p;
  const auto x = p.resident(step::Role::kInput, 10);
  p.pass(step::PassKind::kForward);
  const auto call = p.enter(p.root, {x});
  const auto y = p.op("aten.mm.default", {x}, 20);
  const auto z = p.change(y, step::OpFlag::kUnwatched);
  p.b.resize(p.storage(y), 50);
  const auto w = p.op("aten.mm.default", {x}, 5);
  const step::OpId saved = p.last_op();
  const auto save = p.pack(z);
  p.exit(call, {z});
  p.free(z);
  p.free(w);
  p.pass(step::PassKind::kBackward);
  p.backward({save}, 30);
  expect_rows(p.finish(), {{{call, {saved}, false, false}}}, {},
              {{20, 30},  // y
               {20, 50},
               {-20, 30},  // the change
               {-20, 10},
               {50, 60},   // the resize
               {5, 65},    // w, which the cache keeps
               {-50, 15},  // y goes
               {20, 35},   // y again, as small as it was at first
               {20, 55},
               {-20, 35},  // the change
               {-20, 15},
               {50, 65},  // the resize
               {-5, 60},  // nobody saved w
               {30, 90},
               {-50, 40}});  // the gradient; the node drops y
}

TEST(Rules, AnUnwatchedOpHasAnotherKeyThanItsTwin) {
  test::TinyProgram p;
  const auto x = p.resident(step::Role::kInput, 10);
  const auto other = p.resident(step::Role::kInput, 10);
  p.pass(step::PassKind::kBackward);
  step::Tensor changed = p.b.tables().tensors[x.index()];
  ++changed.version;
  const auto after = p.b.add_tensor(changed);
  p.run("aten.add.Tensor", {x, other}, {{after, step::AliasKind::kMutates, 0}}, step::OpFlag::kUnwatched);
  const auto sum = p.fresh(10);
  p.run("aten.add.Tensor", {x, other}, {{sum, step::AliasKind::kFresh, 0}});
  const step::OpId twin = p.last_op();
  const step::Step step = p.finish();
  const memory::WorkspaceTable table{"",
                                     {{memory::workspace_key(step, twin), {{memory::WorkspaceStepKind::kTake, 7}}}}};
  expect_rows(step, {}, table, {{7, 27}, {10, 37}, {-7, 30}});
}

}  // namespace
}  // namespace tidemark::verify
