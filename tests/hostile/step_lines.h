#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tidemark/step/violation.h"

namespace tidemark::test {

using Json = nlohmann::ordered_json;
using Table = step::Table;

// A record: a table and a position in it.
using Record = std::pair<Table, std::uint64_t>;

// What stands on one line of a step file.
struct Line {
  enum class Kind { kFirst, kHeader, kRow, kOptionalHeader, kOptionalRow };
  Kind kind = Kind::kFirst;
  Table table = Table::kMeta;  // of a header or row
  std::uint64_t id = 0;        // of a row
  std::size_t header = 0;      // number of its section's header, from 1
  std::size_t last = 0;        // number of its section's last line
};

// A step file as lines that are numbered from 1, with what the format says about each. It knows the format a second
// time, independently of the reader, so that a test can tell which line an error should name.
class StepLines {
 public:
  explicit StepLines(std::string_view text);

  std::size_t size() const { return lines_.size(); }
  const std::string& text(std::size_t number) const { return lines_[number - 1]; }
  const Line& line(std::size_t number) const { return kinds_[number - 1]; }
  std::string whole() const;

  void replace(std::size_t number, std::string text) { lines_[number - 1] = std::move(text); }

  // Whether `row`, which stands on that line, is a list of the right length with values of the right type and range,
  // whose ids name rows that exist. (Whether it agrees with the other rows is another matter.)
  bool fits_types(std::size_t number, const Json& row) const;

  // The records that a line is about: its own, those it refers to, and the storages behind tensors. Rows that cannot
  // be read are about nothing.
  std::set<Record> subjects(std::size_t number) const;

 private:
  std::uint64_t count(Table table) const { return counts_[static_cast<std::size_t>(table)]; }
  std::optional<Json> row(Table table, std::uint64_t id) const;
  void add_subjects(Table table, std::uint64_t id, std::set<Record>& all) const;
  void add_references(Table table, const Json& row, std::set<Record>& all) const;

  std::vector<std::string> lines_;
  std::vector<Line> kinds_;
  std::vector<std::uint64_t> counts_;       // rows by table
  std::vector<std::size_t> first_numbers_;  // line of the first row by table
};

}  // namespace tidemark::test
