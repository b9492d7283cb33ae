// Every corruption of one field or one line of a valid file is refused with the right line, or still a valid step.
//
// What "the right line" means, for a field of line L:
//  1. When the new value is no value of the field's type (kind, range, an id of no row, a row of another length), the
//     error names exactly L.
//  2. When it is one, it can only make records contradict each other. Then the error names L or the line of a record
//     that is about the same thing: both refer to, or are, the same module, call, layout, storage, tensor, node,
//     argument list, region, op or save, before or after the change (a tensor stands for its storage too, an event for
//     what its row refers to). Strings, passes, calls and modules are shared by too many records to say much, so they
//     count only when the corrupted line is about them. Among events, the error names no event before L, unless an
//     alloc changed: it decides whether a storage is there at the start.
// For whole lines that are removed, repeated, swapped or cut, see the tests below: the error names that place, or the
// header whose count no longer fits.
//
// ctest tries a sample; with TIDEMARK_CAMPAIGN=1 (scripts/campaign) everything is tried, on more files.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../support/random.h"
#include "../support/random_step.h"
#include "../support/scratch_folder.h"
#include "step_lines.h"
#include "tidemark/base/error.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/write_step.h"

namespace tidemark::test {

namespace {

bool is_campaign() { return std::getenv("TIDEMARK_CAMPAIGN") != nullptr; }

std::vector<std::string> valid_files() {
  const std::string root = TIDEMARK_SOURCE_DIR;
  std::vector<std::string> files = {read_whole_file(root + "/fuzz/corpus/step_reader/every_table_and_event"),
                                    read_whole_file(root + "/fuzz/corpus/step_reader/optional_sections"),
                                    read_whole_file(root + "/examples/steps/two_layer_mlp.step.jsonl")};
  const std::uint64_t seeds = is_campaign() ? 40 : 4;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    files.push_back(step::step_text(random_step(seed, {.max_modules = 3, .max_ops_per_call = 2})));
  return files;
}

// One in `n` in a test run, all in a campaign; always the same ones.
class Sample {
 public:
  explicit Sample(std::size_t n) : n_(is_campaign() ? 1 : n) {}
  bool take() { return random_.below(n_) == 0; }

 private:
  std::uint64_t n_;
  Random random_{1};
};

struct Outcome {
  bool accepted = false;
  std::size_t line = 0;  // that the error names; 0 when it names none
  std::string message;
};

// "file, line 12: ops[3]" or "file, after line 12".
std::size_t line_in(std::string_view place) {
  const std::size_t at = place.find("line ");
  if (at == place.npos) return 0;
  std::size_t line = 0;
  std::from_chars(place.data() + at + 5, place.data() + place.size(), line);
  return line;
}

Outcome read(const std::string& text) {
  try {
    const step::Step step = step::parse_step(text, "file");
    const std::string written = step::step_text(step);
    EXPECT_EQ(step::parse_step(written), step);
    return {.accepted = true, .line = 0, .message = "accepted"};
  } catch (const Error& error) {
    EXPECT_NE(error.info().kind, ErrorKind::kInternal);
    return {.accepted = false, .line = line_in(error.info().place), .message = error.what()};
  }
}

// --- Fields.

// The positions of all values that are no lists or objects.
void find_leaves(const Json& value, const Json::json_pointer& at, std::vector<Json::json_pointer>& leaves) {
  if (!value.is_structured()) leaves.push_back(at);
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) find_leaves(value[i], at / i, leaves);
  if (value.is_object())
    for (const auto& [key, item] : value.items()) find_leaves(item, at / key, leaves);
}

// The row with the text `replacement`, which need not be JSON, in place of the value.
std::string replace_leaf(Json row, const Json::json_pointer& at, const std::string& replacement) {
  const std::string mark = "@@@";
  row[at] = mark;
  std::string text = row.dump();
  return text.replace(text.find('"' + mark + '"'), mark.size() + 2, replacement);
}

std::string remove_leaf(Json row, const Json::json_pointer& at) {
  Json& parent = row[at.parent_pointer()];
  if (parent.is_array())
    parent.erase(std::stoul(at.back()));
  else
    parent.erase(at.back());
  return row.dump();
}

struct FieldChange {
  std::string what;
  std::string line;
};

std::vector<FieldChange> changes_of(const Json& row, const Json::json_pointer& at) {
  const Json& old = row[at];
  std::vector<std::string> values = {
      "null",  "true", "-1",    "0",      "2147483648", "4294967296", "9007199254740992", "9223372036854775808",
      "1e400", "1.5",  R"("")", R"("x")", "[]",         "{}"};
  if (old.is_number_integer() && old != std::numeric_limits<std::int64_t>::max())
    values.push_back(std::to_string(old.get<std::int64_t>() + 1));
  std::vector<FieldChange> changes;
  for (const std::string& value : values) changes.push_back({"to " + value, replace_leaf(row, at, value)});
  if (at.empty()) return changes;  // the row is the value
  changes.push_back({"removed", remove_leaf(row, at)});
  const std::string key = row[at.parent_pointer()].is_object() ? Json(at.back()).dump() + ":" : "";
  changes.push_back({"repeated", replace_leaf(row, at, old.dump() + "," + key + old.dump())});
  return changes;
}

bool is_event_of(const StepLines& file, std::size_t number, std::initializer_list<std::string_view> kinds) {
  const auto is_kind = [&](std::string_view kind) {
    return file.text(number).starts_with(fmt::format("[\"{}\"", kind));
  };
  return file.line(number).table == Table::kEvents && std::any_of(kinds.begin(), kinds.end(), is_kind);
}

// Whether it says something that a record is about such a subject, when `number` is the corrupted line.
bool is_telling(const Record& subject, const StepLines& file, std::size_t number) {
  const Table table = file.line(number).table;
  const bool is_call = table == Table::kCalls || is_event_of(file, number, {"enter", "exit"});
  switch (subject.first) {
    case Table::kStrings:
      return table == Table::kStrings;
    case Table::kPasses:
      return table == Table::kPasses || is_event_of(file, number, {"phase"});
    case Table::kCalls:
      return is_call;
    case Table::kModules:
      return is_call || table == Table::kModules || table == Table::kBindings;
    default:
      return true;
  }
}

std::set<Record> all_subjects(const StepLines& before, const StepLines& after, std::size_t number) {
  std::set<Record> all = before.subjects(number);
  all.merge(after.subjects(number));
  return all;
}

// Rule 2 above.
bool is_related(const StepLines& before, const StepLines& after, std::size_t corrupted, std::size_t named) {
  if (named == corrupted) return true;
  if (named == 0 || named > before.size() || before.line(named).kind != Line::Kind::kRow) return false;
  const Line& a = before.line(corrupted);
  const Line& b = before.line(named);
  const bool alloc = is_event_of(before, corrupted, {"alloc"}) || is_event_of(after, corrupted, {"alloc"});
  if (a.table == Table::kEvents && b.table == Table::kEvents && named < corrupted && !alloc) return false;
  if (a.table == Table::kModules && b.table == Table::kModules) return true;  // roots must have different names
  const std::set<Record> theirs = all_subjects(before, after, named);
  for (const Record& subject : all_subjects(before, after, corrupted))
    if (is_telling(subject, before, corrupted) && theirs.contains(subject)) return true;
  return false;
}

// Counts of optional sections are found out late, because any JSON may be a row of theirs.
bool is_at_optional_section(const StepLines& file, std::size_t corrupted, std::size_t named) {
  const Line& line = file.line(corrupted);
  const bool optional = line.kind == Line::Kind::kOptionalHeader || line.kind == Line::Kind::kOptionalRow;
  return optional && ((named >= line.header && named <= line.last + 1) || named >= file.size() - 1);
}

void check_field(const StepLines& before, std::size_t number, const FieldChange& change) {
  StepLines after = before;
  after.replace(number, change.line);
  const Outcome outcome = read(after.whole());
  if (outcome.accepted) return;
  const Json row = Json::parse(change.line, nullptr, false);
  const bool is_row = before.line(number).kind == Line::Kind::kRow;
  const bool contradicts = is_row && !row.is_discarded() && after.fits_types(number, row);
  const bool right = outcome.line == number || is_at_optional_section(before, number, outcome.line) ||
                     (contradicts && is_related(before, after, number, outcome.line));
  EXPECT_TRUE(right) << "line " << number << ", " << before.text(number) << " -> " << change.line << " (" << change.what
                     << ")\n"
                     << outcome.message;
}

TEST(Corruption, OfOneFieldIsRefusedWithTheRightLineOrStillValid) {
  Sample sample(12);
  std::size_t tried = 0;
  for (const std::string& text : valid_files()) {
    const StepLines file(text);
    ASSERT_TRUE(read(text).accepted);
    for (std::size_t number = 1; number <= file.size(); ++number) {
      const Json row = Json::parse(file.text(number));
      std::vector<Json::json_pointer> leaves;
      find_leaves(row, Json::json_pointer(), leaves);
      for (const Json::json_pointer& leaf : leaves)
        for (const FieldChange& change : changes_of(row, leaf)) {
          if (!sample.take()) continue;
          check_field(file, number, change);
          ++tried;
        }
      if (HasFailure()) return;  // one line tells enough
    }
  }
  RecordProperty("tried", static_cast<int>(tried));
  fmt::print("{} corruptions of one field\n", tried);
}

// The second rule would be worth nothing if most records were about the same things.
TEST(Corruption, RuleTellsMostPairsOfLinesApart) {
  const StepLines file(read_whole_file(std::string(TIDEMARK_SOURCE_DIR) + "/examples/steps/two_layer_mlp.step.jsonl"));
  std::size_t pairs = 0;
  std::size_t related = 0;
  for (std::size_t corrupted = 1; corrupted <= file.size(); ++corrupted) {
    if (file.line(corrupted).kind != Line::Kind::kRow) continue;
    for (std::size_t named = 1; named <= file.size(); ++named) {
      if (file.line(named).kind != Line::Kind::kRow || named == corrupted) continue;
      ++pairs;
      related += is_related(file, file, corrupted, named) ? 1 : 0;
    }
  }
  EXPECT_LT(static_cast<double>(related) / static_cast<double>(pairs), 0.15);
}

// --- Lines. `number` is a line of the valid file; each returns the lines that an error may name.

using Lines = std::vector<std::string>;

Lines lines_of(const StepLines& file) {
  Lines lines;
  for (std::size_t i = 1; i <= file.size(); ++i) lines.push_back(file.text(i));
  return lines;
}

std::string join(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// The header of the section that stands before the line, or the first line.
std::size_t header_before(const StepLines& file, std::size_t number) {
  return number == 1 ? 1 : std::max<std::size_t>(1, file.line(number - 1).header);
}

void expect_lines(const StepLines& file, std::size_t number, const std::string& text, std::string_view what,
                  const std::vector<std::size_t>& right) {
  const Outcome outcome = read(text);
  if (outcome.accepted || is_at_optional_section(file, number, outcome.line)) return;
  EXPECT_TRUE(std::find(right.begin(), right.end(), outcome.line) != right.end())
      << "line " << number << " " << what << ": " << file.text(number) << "\n"
      << outcome.message << "\nexpected one of the lines " << fmt::format("{}", fmt::join(right, ", "));
}

// A row that is gone or repeated shows in the count of its section; a header that is gone makes rows of the section
// before; another line stands where it should not.
void check_removed_and_repeated(const StepLines& file, std::size_t number) {
  const bool is_row = file.line(number).kind == Line::Kind::kRow;
  Lines lines = lines_of(file);
  const auto at = lines.begin() + static_cast<std::ptrdiff_t>(number - 1);
  Lines removed = lines;
  removed.erase(removed.begin() + (at - lines.begin()));
  const bool is_end = number == file.size();
  expect_lines(file, number, join(removed), "removed",
               is_row   ? std::vector{file.line(number).header}
               : is_end ? std::vector{number - 1}
                        : std::vector{number, header_before(file, number)});
  lines.insert(at, file.text(number));
  expect_lines(file, number, join(lines), "repeated",
               is_row ? std::vector{file.line(number).header} : std::vector{number, number + 1});
}

void check_swapped(const StepLines& before, std::size_t number) {
  if (number == before.size()) return;
  StepLines after = before;
  after.replace(number, before.text(number + 1));
  after.replace(number + 1, before.text(number));
  const Line& a = before.line(number);
  const Line& b = before.line(number + 1);
  if (a.kind != Line::Kind::kRow || b.kind != Line::Kind::kRow) {
    expect_lines(before, number, after.whole(), "swapped with the next",
                 {number, number + 1, std::max<std::size_t>(1, a.header), header_before(before, number)});
    return;
  }
  const Outcome outcome = read(after.whole());
  if (outcome.accepted) return;
  EXPECT_TRUE(is_related(before, after, number, outcome.line) || is_related(before, after, number + 1, outcome.line))
      << "lines " << number << " and the next swapped: " << before.text(number) << "\n"
      << outcome.message;
}

void check_cut(const StepLines& file, std::size_t number) {
  StepLines cut = file;
  const std::string& line = file.text(number);
  cut.replace(number, line.substr(0, line.size() / 2));
  expect_lines(file, number, cut.whole(), "cut", {number});

  Lines lines = lines_of(file);
  lines.resize(number);
  const std::string ended = join(lines);
  if (number < file.size()) expect_lines(file, number, ended, "last in the file", {number});
  expect_lines(file, number, ended.substr(0, ended.size() - 1), "without its end", {number});
  expect_lines(file, number, ended.substr(0, ended.size() - line.size() / 2 - 1), "cut with the file", {number});
}

TEST(Corruption, OfOneLineIsRefusedWithTheRightLineOrStillValid) {
  Sample sample(3);
  std::size_t tried = 0;
  for (const std::string& text : valid_files()) {
    const StepLines file(text);
    for (std::size_t number = 1; number <= file.size(); ++number) {
      if (!sample.take()) continue;
      check_removed_and_repeated(file, number);
      check_swapped(file, number);
      check_cut(file, number);
      tried += 7;
      if (HasFailure()) return;
    }
  }
  fmt::print("{} corruptions of one line\n", tried);
}

}  // namespace

}  // namespace tidemark::test
