// Kernel scratch: how it joins a replay, and its file.

#include "tidemark/memory/workspace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/scratch_folder.h"
#include "../support/tiny_program.h"
#include "tidemark/base/error.h"
#include "tidemark/memory/replay.h"
#include "tidemark/memory/workspace_file.h"

namespace tidemark::memory {
namespace {

using namespace step;
using test::TinyProgram;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kMake = WorkspaceStepKind::kMake;
constexpr auto kTake = WorkspaceStepKind::kTake;
constexpr auto kGive = WorkspaceStepKind::kGive;

std::vector<std::int64_t> totals(const Timeline& timeline) {
  std::vector<std::int64_t> list;
  for (const Change& change : timeline.changes) list.push_back(change.total_bytes);
  return list;
}

// One op that reads 4 B and makes 10 and 20 B.
Step two_outputs() {
  TinyProgram p;
  const TensorId x = p.resident(Role::kInput, 4);
  p.pass(PassKind::kForward);
  const TensorId a = p.fresh(10);
  const TensorId b = p.fresh(20);
  p.run("aten.sort.default", {x}, {{a, AliasKind::kFresh, 0}, {b, AliasKind::kFresh, 0}});
  return p.finish();
}

const std::string kKey = "aten.sort.default(uint8[4;1]){}";

std::vector<std::int64_t> replayed(const std::vector<WorkspaceStep>& steps) {
  const WorkspaceTable table{"", {{kKey, steps, false}}};
  return totals(replay(two_outputs(), {}, {.workspace = &table, .keep_changes = true}));
}

TEST(Workspace, TheKeyHoldsNameLayoutsAndArguments) {
  EXPECT_EQ(workspace_key(two_outputs(), OpId(0)), kKey);
  StepBuilder b;
  const PassId pass = b.add_pass({});
  const ArgList args = {{b.intern("dim"), {ArgValue::List{{std::int64_t{0}}, {std::int64_t{-1}}}}},
                        {b.intern("p"), {1.0}},
                        {b.intern("mode"), {b.intern("a\"b")}},
                        {b.intern("out"), {InputRange{0, 0}}},
                        {b.intern("none"), {}},
                        {b.intern("flag"), {true}}};
  const OpId op = b.add_op({.name = "x.y",
                            .pass = pass,
                            .call = {},
                            .node = {},
                            .region = {},
                            .inputs = {},
                            .outputs = {},
                            .args = b.intern_args(args),
                            .source = {},
                            .group = {},
                            .flags = {}});
  b.phase(pass);
  b.begin(op);
  b.end(op);
  EXPECT_EQ(workspace_key(std::move(b).finish(), op),
            R"(x.y(){dim=[0,-1],p=1.0,mode="a\"b",out=<0:0>,none=null,flag=true})");
}

TEST(Workspace, StepsHappenInTheirOrder) {
  // Without a row: 4 + 10, + 20.
  EXPECT_THAT(totals(replay(two_outputs(), {}, {.keep_changes = true})), ElementsAre(14, 34));
  // Scratch, the second output, scratch gone, the first output.
  EXPECT_THAT(replayed({{kTake, 100}, {kMake, 1}, {kGive, 0}, {kMake, 0}}), ElementsAre(104, 124, 24, 34));
  // Scratch that is not given back goes at the end; outputs that the row does not name come where they stand.
  EXPECT_THAT(replayed({{kTake, 100}, {kTake, 1}, {kMake, 1}}), ElementsAre(104, 105, 125, 135, 35, 34));
  // Outputs that the op does not have, or has already, are left out.
  EXPECT_THAT(replayed({{kMake, 0}, {kMake, 0}, {kMake, 7}}), ElementsAre(14, 34));
}

TEST(Workspace, IsACategoryOfItsOwnAndKnownAtThePeak) {
  const WorkspaceTable table{"", {{kKey, {{kMake, 0}, {kTake, 100}}, false}}};
  const Timeline timeline = replay(two_outputs(), {}, {.workspace = &table});
  EXPECT_EQ(timeline.peak.total_bytes, 134);
  EXPECT_EQ(timeline.peak_by_category[static_cast<std::size_t>(Category::kWorkspace)], 100);
  ASSERT_FALSE(timeline.alive_at_peak.empty());
  EXPECT_EQ(timeline.alive_at_peak[0], (Alive{{BlockKind::kWorkspace, 0, 0}, 100, Category::kWorkspace, OpId(0)}));
}

TEST(Workspace, ComesAgainInARecomputeButNotForASavedOp) {
  TinyProgram p;
  const ModuleId module = p.module(p.root, "block", "Block");
  p.pass(PassKind::kForward);
  const CallId block = p.enter(module, {});
  const TensorId a = p.op("aten.mm.default", {}, 10);
  const OpId op = p.last_op();
  const SaveId save = p.pack(a);
  p.free(a);
  p.exit(block, {});
  p.pass(PassKind::kBackward);
  p.backward({save}, 1);
  const Step step = p.finish();
  const WorkspaceTable table{"", {{"aten.mm.default(){}", {{kTake, 100}, {kMake, 0}}, false}}};
  const ReplayOptions options{.workspace = &table, .keep_changes = true};
  // Forward: scratch 100, a 110, scratch goes 10, a goes 0. The recompute does the first three again; +1; a goes.
  EXPECT_THAT(totals(replay(step, {{{block, {}, false, true}}}, options)),
              ElementsAre(100, 110, 10, 0, 100, 110, 10, 11, 1));
  // Saved: a stays 10, and nothing runs.
  EXPECT_THAT(totals(replay(step, {{{block, {op}, false, true}}}, options)), ElementsAre(100, 110, 10, 11, 1));
}

TEST(Workspace, RefusesRowsThatMakeNoSense) {
  EXPECT_EQ(problem_of({"", {{kTake, 1}, {kGive, 0}}, false}), "");
  EXPECT_NE(problem_of({"", {{kGive, 0}}, false}), "");
  EXPECT_NE(problem_of({"", {{kTake, 1}, {kGive, 0}, {kGive, 0}}, false}), "");
  EXPECT_NE(problem_of({"", {{kTake, -1}}, false}), "");
  EXPECT_NE(problem_of({"", {{kMake, -1}}, false}), "");
  EXPECT_THROW(replayed({{kGive, 0}}), Error);
  EXPECT_THROW(workspace_step(3, 0), Error);
  const WorkspaceTable twice{"", {{"k", {}, false}, {"k", {}, false}}};
  EXPECT_THROW(replay(two_outputs(), {}, {.workspace = &twice}), Error);
  EXPECT_THROW(workspace_text(twice), Error);
}

TEST(WorkspaceFile, ReadsWhatItWrites) {
  const WorkspaceTable table{"a \"machine\"",
                             {{kKey, {{kTake, 100}, {kMake, 1}, {kGive, 0}}, false}, {"\xC3\xA9", {}, true}}};
  const std::string text = workspace_text(table);
  EXPECT_EQ(text,
            "{\"tidemark\":\"workspace\",\"version\":[1,0],\"device\":\"a \\\"machine\\\"\",\"rows\":2}\n"
            "[\"aten.sort.default(uint8[4;1]){}\",[[1,100],[0,1],[2,0]],false]\n"
            "[\"\xC3\xA9\",[],true]\n");
  EXPECT_EQ(parse_workspace(text), table);
  const test::ScratchFolder folder;
  for (const char* name : {"w.jsonl", "w.jsonl.zst"}) {
    const std::string path = folder.path(name);
    write_workspace(table, path);
    EXPECT_EQ(read_workspace(path), table);
  }
}

std::string message(std::string_view text) {
  try {
    parse_workspace(text, "w");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::string with_rows(int count, std::string_view rows) {
  return R"({"tidemark":"workspace","version":[1,0],"device":"","rows":)" + std::to_string(count) + "}\n" +
         std::string(rows);
}

TEST(WorkspaceFile, RefusesWhatIsWrongWithItsPlace) {
  EXPECT_EQ(message(with_rows(0, "")), "accepted");
  EXPECT_THAT(message(""), HasSubstr("[w] the file is empty"));
  EXPECT_THAT(message("[1]\n"), HasSubstr("line 1] this is not a workspace table"));
  EXPECT_THAT(message("{\"tidemark\":\"step\",\"version\":[1,0]}\n"), HasSubstr("another kind"));
  EXPECT_THAT(message("{\"tidemark\":\"workspace\",\"version\":[2,0],\"device\":\"\",\"rows\":0}\n"),
              HasSubstr("version"));
  EXPECT_THAT(message("{\"tidemark\":\"workspace\",\"version\":[1,0],\"rows\":0}\n"), HasSubstr("lacks a field"));
  EXPECT_THAT(message("{\"tidemark\":\"workspace\",\"version\":[1,0],\"device\":\"\",\"rows\":0,\"x\":1}\n"),
              HasSubstr("unknown field"));
  EXPECT_THAT(message("{\"tidemark\":\"workspace\",\"version\":[1,0],\"device\":\"\",\"rows\":99999999999}\n"),
              HasSubstr("rows"));
  EXPECT_THAT(message(with_rows(1, "")), HasSubstr("ends too early"));
  EXPECT_THAT(message(with_rows(0, "[]\n")), HasSubstr("something follows"));
  EXPECT_THAT(message(with_rows(1, "[\"k\",[],false]")), HasSubstr("line 2"));  // no line break: the file is cut
  EXPECT_THAT(message(with_rows(1, "{}\n")), HasSubstr("line 2: rows[0]"));
  EXPECT_THAT(message(with_rows(1, "[\"k\",[]]\n")), HasSubstr("rows[0].estimated"));
  EXPECT_THAT(message(with_rows(1, "[\"k\",[[3,0]],false]\n")), HasSubstr("rows[0].steps"));
  EXPECT_THAT(message(with_rows(1, "[\"k\",[[1,-1]],false]\n")), HasSubstr("rows[0].steps"));
  EXPECT_THAT(message(with_rows(1, "[\"k\",[[2,0]],false]\n")), HasSubstr("freed before it is allocated"));
  EXPECT_THAT(message(with_rows(1, "[\"k\",[[1,4611686018427387905]],false]\n")), HasSubstr("out of range"));
  EXPECT_THAT(message(with_rows(2, "[\"k\",[],false]\n[\"k\",[],false]\n")), HasSubstr("line 3: rows[1].key"));
  std::string many = "[\"k\",[[1,0]";
  for (int i = 0; i < 5000; ++i) many += ",[1,0]";
  EXPECT_THAT(message(with_rows(1, many + "],false]\n")), HasSubstr("too many steps"));
  EXPECT_THAT(message(with_rows(1, "[\"" + std::string(70000, 'k') + "\",[],false]\n")), HasSubstr("too long"));
}

}  // namespace
}  // namespace tidemark::memory
