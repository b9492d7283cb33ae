#include "tidemark/base/line_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "tidemark/base/error.h"

namespace tidemark {
namespace {

std::vector<std::string> lines_of(const std::string& text, const LineLimits& limits = {1 << 24, 1 << 30}) {
  LineReader reader(make_memory_source(text), "f", limits);
  std::vector<std::string> lines;
  while (const auto line = reader.next()) {
    lines.emplace_back(*line);
    EXPECT_EQ(reader.line(), static_cast<std::int64_t>(lines.size()));
  }
  return lines;
}

std::string error_of(const std::string& text, const LineLimits& limits) {
  try {
    lines_of(text, limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(LineReader, SplitsAtLineEnds) {
  EXPECT_EQ(lines_of(""), (std::vector<std::string>{}));
  EXPECT_EQ(lines_of("a\n\nbc\n"), (std::vector<std::string>{"a", "", "bc"}));
}

TEST(LineReader, LinesMayCrossItsBuffer) {
  std::string text;
  std::vector<std::string> expected;
  for (std::size_t length : {1u, 100000u, 262143u, 262144u, 262145u, 1000000u, 2u}) {
    expected.emplace_back(length, static_cast<char>('a' + length % 26));
    text += expected.back() + "\n";
  }
  EXPECT_EQ(lines_of(text), expected);
}

TEST(LineReader, NamesTheLineThatBreaksALimit) {
  EXPECT_EQ(error_of("ok\n0123456789\n", {9, 100}),
            "[f, line 2] the line is too long; expected at most 9 B; try: check that this is the right file; one "
            "record stands "
            "on one line");
  EXPECT_EQ(error_of("0123456789\n", {10, 100}), "no error");
  EXPECT_NE(error_of("aaa\nbbb\nccc\n", {9, 11}).find("[f, line 3] the file is too long"), std::string::npos);
  EXPECT_EQ(error_of("aaa\nbbb\nccc\n", {9, 12}), "no error");
}

TEST(LineReader, AnEndlessLineStopsAtTheLimit) {
  EXPECT_NE(error_of(std::string(10 << 20, '['), {1 << 20, 1 << 30}).find("line 1] the line is too long"),
            std::string::npos);
}

TEST(LineReader, ACutLastLineIsAnError) {
  EXPECT_NE(error_of("a\nb", {9, 100}).find("[f, line 2] the last line has no end"), std::string::npos);
}

}  // namespace
}  // namespace tidemark
