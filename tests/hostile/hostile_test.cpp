// Every file of tests/hostile/data is refused, with the message that stands in hostile_rows.cpp, and cheaply.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "cost.h"
#include "hostile_rows.h"
#include "tidemark/base/error.h"
#include "tidemark/step/read_step.h"

namespace tidemark::test {

namespace {

const std::string kFolder = std::string(TIDEMARK_SOURCE_DIR) + "/tests/hostile/data";

std::string refusal_of(const std::string& path) {
  try {
    step::read_step(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

// One test for all of them: a process for each would cost more than the reading.
TEST(HostileFiles, AreRefusedWithTheirMessageAndCheaply) {
  for (const HostileRow& row : hostile_rows()) {
    SCOPED_TRACE(row.file);
    const std::string path = fmt::format("{}/{}", kFolder, row.file);
    std::string refusal;
    const Cost cost = measure([&] { refusal = refusal_of(path); });
    const std::string separator = row.place.empty() ? "" : ", ";
    EXPECT_EQ(refusal, fmt::format("[{}{}{}] {}", path, separator, row.place, row.message));
    expect_cheap(cost);
  }
}

TEST(HostileFiles, AllHaveARowAndAllRowsHaveAFile) {
  std::set<std::string> rows;
  for (const HostileRow& row : hostile_rows())
    EXPECT_TRUE(rows.emplace(row.file).second) << row.file << " stands twice";
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) files.insert(entry.path().filename());
  EXPECT_THAT(files, testing::ContainerEq(rows));
}

}  // namespace

}  // namespace tidemark::test
