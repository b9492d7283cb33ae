// The file as a format: versions, sections that are unknown, where errors are said to be.

#include <gtest/gtest.h>

#include "../support/scratch_folder.h"
#include "../support/small_step.h"
#include "tidemark/base/atomic_file.h"
#include "tidemark/base/error.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/write_step.h"

namespace tidemark::step {
namespace {

// Lines: 1 the first, 2 meta, 3 strings (6 rows), 10 modules (1), 12 passes (2), 15 calls (1), 17 sources, 18 layouts
// (1), 20 storages (3), 24 tensors (3), 28 bindings, 29 nodes (1), 31 args, 32 regions, 33 ops (2), 36 saves (1), 38
// notes, 39 events (17), 57 end.
std::string small_text() {
  test::SmallStep s;
  s.add_events();
  return step_text(std::move(s.b).finish());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    parse_step(text, "f");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(StepFile, AHigherMajorVersionIsRefusedAndAMinorOneIsNot) {
  EXPECT_EQ(
      error_of(replaced(small_text(), "[1,0]", "[2,0]")),
      "[f, line 1] the file has a format that this version cannot read; expected major version 1, got 2; try: use the "
      "tidemark that wrote it, or write it again");
  EXPECT_EQ(error_of(replaced(small_text(), "[1,0]", "[1,7]")), "no error");
}

TEST(StepFile, UnknownOptionalSectionsSurvive) {
  const std::string extra = "{\"section\":\"later\",\"count\":2,\"optional\":true}\n{\"any\": [1, 2.50]}\n[null]\n";
  const std::string text = replaced(small_text(), "{\"section\":\"end\"", extra + "{\"section\":\"end\"");
  const Step step = parse_step(text);
  ASSERT_EQ(step.tables().extras.size(), 1u);
  EXPECT_EQ(step.tables().extras[0].rows[0], "{\"any\": [1, 2.50]}");
  EXPECT_EQ(step_text(step), text);
  EXPECT_EQ(
      error_of(replaced(text, ",\"optional\":true", "")),
      "[f, line 57] the section is unknown; expected a section of docs/step_format.md, got \"later\"; try: use a newer "
      "tidemark: it may know this section");
}

TEST(StepFile, ErrorsNameLineRecordAndField) {
  EXPECT_EQ(error_of(replaced(small_text(), "[null,0,1]", "[null,0]")),
            "[f, line 11: modules[0].type] the row has too few values; expected an id, got the end of the list");
  EXPECT_EQ(error_of(replaced(small_text(), "[null,0,1]", "[null,0,77]")),
            "[f, line 11: modules[0].type] a reference leads nowhere; expected an id of strings from 0 to 5, got 77");
  EXPECT_EQ(
      error_of(replaced(small_text(), "[\"free\",1]", "[\"fre\",1]")),
      "[f, line 47: events[7].kind] the word is unknown; expected one of phase, enter, exit, begin, end, alloc, free, "
      "resize, pack, unpack, drop, release, node, done, got \"fre\"");
}

TEST(StepFile, AWrongCountIsNamedAtTheSection) {
  EXPECT_EQ(
      error_of(replaced(small_text(), "\"tensors\",\"count\":3", "\"tensors\",\"count\":4")),
      "[f, line 24: count] the section \"tensors\" has fewer rows than it says; expected 4 rows, got 3, then another "
      "section on line 28");
  EXPECT_EQ(error_of(replaced(small_text(), "\"tensors\",\"count\":3", "\"tensors\",\"count\":2")),
            "[f, line 24: count] the section \"tensors\" has more rows than it says; expected 2 rows, got another row "
            "on line 27");
}

TEST(StepFile, LimitsAreTheReadersToSet) {
  const test::ScratchFolder scratch;
  write_file_atomically(scratch.path("s"), small_text());
  EXPECT_THROW(read_step(scratch.path("s"), {.max_line_bytes = 10}), Error);
  EXPECT_THROW(read_step(scratch.path("s"), {.max_total_bytes = 100}), Error);
  EXPECT_NO_THROW(read_step(scratch.path("s")));
}

}  // namespace
}  // namespace tidemark::step
