// The worked example of docs/how_memory_is_counted.md, worked out by hand for the second replay as well.

#include <gtest/gtest.h>

#include "tidemark/step/read_step.h"
#include "tidemark/verify/replay.h"

namespace tidemark::verify {
namespace {

// A block comes (+) or goes (-), and what is alive afterwards. The sizes follow from the shapes: parameters and
// gradients 16 x 8, 16, 4 x 16 and 4 floats; batch 2 x 8 and 2 x 4; hidden layer 2 x 16; output 2 x 4.
struct Row {
  std::string block;
  std::int64_t bytes = 0;
  std::int64_t total = 0;

  friend bool operator==(const Row&, const Row&) = default;
  friend void PrintTo(const Row& row, std::ostream* out) {
    *out << row.block << ' ' << row.bytes << " -> " << row.total;
  }
};

step::Step example() {
  return step::read_step(std::string(TIDEMARK_SOURCE_DIR) + "/examples/steps/two_layer_mlp.step.jsonl");
}

// Gradients of the step before are known by their sizes only: which ids they have is the recorder's business.
std::vector<Row> rows_of(const Replayed& replayed) {
  std::vector<Row> rows;
  for (const Change& change : replayed.changes)
    rows.push_back(
        {change.category == "gradient" && !change.comes ? "gradient" : change.block, change.bytes, change.total_bytes});
  return rows;
}

const std::vector<Row> kZeroGrad = {
    {"gradient", -512, 1280}, {"gradient", -64, 1216}, {"gradient", -256, 960}, {"gradient", -16, 944}};

std::vector<Row> after_zero_grad(const std::vector<Row>& rows) {
  std::vector<Row> all = kZeroGrad;
  all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

TEST(WorkedExample, Plain) {
  const Replayed replayed = replay(example(), {});
  EXPECT_EQ(replayed.start_bytes, 2 * 848 + 96);
  EXPECT_EQ(rows_of(replayed),
            after_zero_grad({{"original 10", 128, 1072}, {"original 11", 128, 1200},  {"original 10", -128, 1072},
                             {"original 12", 32, 1104},  {"original 13", 32, 1136},   {"original 14", 4, 1140},
                             {"original 15", 32, 1172},  {"original 12", -32, 1140},  {"original 16", 128, 1268},
                             {"original 17", 256, 1524}, {"original 18", 16, 1540},   {"original 15", -32, 1508},
                             {"original 19", 128, 1636}, {"original 16", -128, 1508}, {"original 11", -128, 1380},
                             {"original 20", 512, 1892}, {"original 21", 64, 1956},   {"original 19", -128, 1828},
                             {"original 14", -4, 1824},  {"original 13", -32, 1792}}));
  EXPECT_EQ(replayed.peak_bytes, 1956);
  EXPECT_EQ(replayed.end_bytes, 1792);
}

// What a unit around the whole model changes: its saves hold nothing until the recompute, which makes copies.
std::vector<Row> checkpointed(const std::vector<Row>& end_of_recompute) {
  std::vector<Row> rows = {{"original 10", 128, 1072}, {"original 11", 128, 1200}, {"original 10", -128, 1072},
                           {"original 12", 32, 1104},  {"original 11", -128, 976}, {"original 13", 32, 1008},
                           {"original 14", 4, 1012},   {"original 15", 32, 1044},  {"original 12", -32, 1012},
                           {"copy 10", 128, 1140},     {"copy 11", 128, 1268},     {"copy 10", -128, 1140}};
  rows.insert(rows.end(), end_of_recompute.begin(), end_of_recompute.end());
  const std::vector<Row> rest = {{"original 16", 128, 1268},  {"original 17", 256, 1524}, {"original 18", 16, 1540},
                                 {"original 15", -32, 1508},  {"original 19", 128, 1636}, {"copy 11", -128, 1508},
                                 {"original 16", -128, 1380}, {"original 20", 512, 1892}, {"original 21", 64, 1956},
                                 {"original 19", -128, 1828}, {"original 14", -4, 1824},  {"original 13", -32, 1792}};
  rows.insert(rows.end(), rest.begin(), rest.end());
  return after_zero_grad(rows);
}

TEST(WorkedExample, Checkpointed) {
  const plan::Plan plan{{{step::CallId(0), {}, false, true}}};
  const Replayed replayed = replay(example(), plan);
  EXPECT_EQ(replayed.start_bytes, 1792);
  EXPECT_EQ(rows_of(replayed), checkpointed({}));
  EXPECT_EQ(replayed.peak_bytes, 1956);
}

TEST(WorkedExample, WithoutEarlyStopTheSecondLayerRunsAgain) {
  const plan::Plan plan{{{step::CallId(0), {}, false, true}}};
  const Replayed replayed = replay(example(), plan, {.early_stop = false});
  EXPECT_EQ(rows_of(replayed), checkpointed({{"copy 12", 32, 1172}, {"copy 12", -32, 1140}}));
}

}  // namespace
}  // namespace tidemark::verify
