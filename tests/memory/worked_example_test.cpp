// The worked example of docs/how_memory_is_counted.md is what a replay says, change by change.

#include <gtest/gtest.h>

#include <sstream>

#include "../support/scratch_folder.h"
#include "tidemark/memory/replay.h"
#include "tidemark/step/read_step.h"

namespace tidemark::memory {
namespace {

struct Row {
  std::int64_t change = 0;
  std::int64_t total = 0;
  friend bool operator==(const Row&, const Row&) = default;
};

std::int64_t number_in(std::string cell) {
  std::erase_if(cell, [](char c) { return c == ',' || c == ' ' || c == '+'; });
  return std::stoll(cell);
}

// The columns of the page's table, from `column` on: change and total; rows without a change are left out.
std::vector<Row> rows_of_page(std::size_t column) {
  std::istringstream page(test::read_whole_file(std::string(TIDEMARK_SOURCE_DIR) + "/docs/how_memory_is_counted.md"));
  std::vector<Row> rows;
  bool in_example = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) in_example = line == "## Worked example";
    if (!in_example || !line.starts_with("| ")) continue;
    std::vector<std::string> cells;
    std::istringstream stream(line.substr(1));
    for (std::string cell; std::getline(stream, cell, '|');) cells.push_back(cell);
    if (cells.size() != 5 || cells[column].find_first_of("+-") == std::string::npos) continue;
    rows.push_back({number_in(cells[column]), number_in(cells[column + 1])});
  }
  return rows;
}

std::vector<Row> rows_of_replay(const plan::Plan& plan) {
  const step::Step step =
      step::read_step(std::string(TIDEMARK_SOURCE_DIR) + "/examples/steps/two_layer_mlp.step.jsonl");
  const Timeline timeline = replay(step, plan, {.keep_changes = true});
  EXPECT_EQ(timeline.start_bytes, 1792);
  EXPECT_EQ(timeline.peak.total_bytes, 1956);
  std::vector<Row> rows;
  for (const Change& change : timeline.changes)
    rows.push_back({change.kind == ChangeKind::kAlloc ? change.bytes : -change.bytes, change.total_bytes});
  return rows;
}

TEST(WorkedExample, ThePageAndTheReplayAgree) {
  const std::vector<Row> plain = rows_of_page(1);
  EXPECT_EQ(plain.size(), 24u);
  EXPECT_EQ(plain, rows_of_replay({}));
  const std::vector<Row> checkpointed = rows_of_page(3);
  EXPECT_EQ(checkpointed.size(), 28u);
  EXPECT_EQ(checkpointed, rows_of_replay({{{step::CallId(0), {}, false, true}}}));
}

}  // namespace
}  // namespace tidemark::memory
