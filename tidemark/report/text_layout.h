#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::report {

// Text in columns for people. Nothing that reports say is wider than this, except a dump.
inline constexpr std::size_t kMaxColumns = 100;

// How many columns UTF-8 text takes on a terminal; never too few.
std::size_t display_width(std::string_view text);

// `text`, cut with "..." at its end when it is wider than `columns`.
std::string elide(std::string_view text, std::size_t columns);

// `text` broken at spaces into lines of at most kMaxColumns, every line but the first indented by `indent` spaces;
// the first is taken to start there already. Ends with a line break.
std::string wrap(std::string_view text, std::size_t indent);

// "12.5 %", or "-" of nothing.
std::string percent(std::int64_t part, std::int64_t whole);

// Milliseconds, exactly: picoseconds have nine decimals.
double ms(std::int64_t ps);

// How a report looks where it is shown.
struct Style {
  bool is_bold = false;  // headings, by a terminal's control codes

  std::string heading(std::string_view text) const;
};

// "1 op", "1,200 ops".
std::string count_of(std::int64_t count, std::string_view noun);

// Rows of cells in aligned columns, two spaces apart. The last column is cut where the line would get too long.
//
//   Table table("<>");          // first column to the left, second to the right
//   table.row({"forward", "5"});
//   table.text(2)               // indented by two spaces
class Table {
 public:
  explicit Table(std::string alignment) : alignment_(std::move(alignment)) {}

  // Requires: one cell for each column.
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text(std::size_t indent) const;

 private:
  std::vector<std::size_t> widths() const;

  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tidemark::report
