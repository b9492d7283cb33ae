#include "tidemark/report/text_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "tidemark/base/bytes.h"
#include "tidemark/base/duration.h"

namespace tidemark::report {

namespace {

// Columns of the character that starts with this byte of UTF-8, none for the bytes that continue one. From U+3000 on
// most characters are twice as wide.
std::size_t columns_of(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  if ((value & 0xC0) == 0x80) return 0;
  return value >= 0xE3 ? 2 : 1;
}

void trim_end(std::string& text) { text.erase(text.find_last_not_of(' ') + 1); }

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const char byte : text) width += columns_of(byte);
  return width;
}

std::string elide(std::string_view text, std::size_t columns) {
  constexpr std::string_view kDots = "...";
  if (display_width(text) <= columns) return std::string(text);
  const std::size_t room = columns < kDots.size() ? 0 : columns - kDots.size();
  std::size_t width = 0;
  std::size_t end = 0;
  while (end < text.size() && width + columns_of(text[end]) <= room) width += columns_of(text[end++]);
  return std::string(text.substr(0, end)).append(kDots);
}

std::string wrap(std::string_view text, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string word = elide(text.substr(0, space), kMaxColumns - indent);
    text.remove_prefix(space == text.npos ? text.size() : space + 1);
    const std::size_t width = display_width(word);
    if (column > indent && column + 1 + width > kMaxColumns) {
      result.append("\n").append(indent, ' ');
      column = indent;
    }
    if (column > indent) result += ' ';
    column += width + (column > indent ? 1 : 0);
    result += word;
  }
  return result += '\n';
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

double ms(std::int64_t ps) { return static_cast<double>(ps) / static_cast<double>(kPsPerMs); }

std::string Style::heading(std::string_view text) const {
  return is_bold ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}

std::string count_of(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths(alignment_.size(), 0);
  for (const auto& cells : rows_)
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], display_width(cells[i]));
  return widths;
}

std::string Table::text(std::size_t indent) const {
  const std::vector<std::size_t> widths = this->widths();
  std::string result;
  for (const auto& cells : rows_) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += "  ";
      const std::string padding(widths[i] - display_width(cells[i]), ' ');
      line += alignment_[i] == '>' ? padding + cells[i] : cells[i] + padding;
    }
    trim_end(line);
    result += elide(line, kMaxColumns) + '\n';
  }
  return result;
}

}  // namespace tidemark::report
