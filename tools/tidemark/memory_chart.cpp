#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "memory_report.h"
#include "text_layout.h"
#include "tidemark/base/bytes.h"

namespace tidemark::cli {

namespace {

using namespace memory;

constexpr std::size_t kColumns = 72;
constexpr std::size_t kRows = 8;
constexpr std::size_t kEighths = 8;  // of a character cell
constexpr std::array<std::string_view, kEighths + 1> kBars = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                                              "\u2585", "\u2586", "\u2587", "\u2588"};

// What one column shows: the highest of the moments that fall into it.
struct Column {
  std::int64_t most = 0;
  char pass = ' ';
};

char letter_of(step::PassKind kind, bool recomputes) {
  if (recomputes) return 'r';
  return name_of(kind).front();
}

struct Columns {
  std::vector<Column> list;
  std::size_t peak = 0;  // the column of the peak
};

// Changes in the order in which they happen, spread evenly; the start is the first moment.
Columns make_columns(const MemoryReport& report) {
  const Timeline& timeline = report.timeline;
  const std::size_t moments = timeline.changes.size() + 1;
  Columns columns;
  columns.list.resize(std::min(moments, kColumns));
  const auto column_of = [&](std::size_t moment) { return moment * columns.list.size() / moments; };
  columns.list[0].most = timeline.start_bytes;
  columns.peak = column_of(static_cast<std::size_t>(timeline.peak_change));
  step::PassKind kind = step::PassKind::kForward;
  std::size_t next_event = 0;
  for (std::size_t i = 0; i < timeline.changes.size(); ++i) {
    const Change& change = timeline.changes[i];
    const bool recomputes = change.unit != kNoUnit;
    if (!recomputes) {  // within a recompute, events are those of the forward
      for (; next_event <= change.event; ++next_event) {
        const step::Event& event = report.step.tables().events[next_event];
        if (event.kind == step::EventKind::kPhase) kind = report.step[step::PassId(event.id)].kind;
      }
    }
    Column& column = columns.list[column_of(i + 1)];
    if (change.total_bytes < column.most && column.pass != ' ') continue;
    column.most = std::max(column.most, change.total_bytes);
    column.pass = letter_of(kind, recomputes);
  }
  return columns;
}

// How much of the row's cell a bar fills, in eighths; rows count from the bottom.
std::size_t filled(std::int64_t bytes, std::int64_t most, std::size_t row) {
  if (most == 0) return 0;
  const double part = static_cast<double>(bytes) / static_cast<double>(most);
  const auto height = static_cast<std::size_t>(part * (kRows * kEighths));
  const std::size_t below = row * kEighths;
  return height <= below ? 0 : std::min(kEighths, height - below);
}

}  // namespace

std::string memory_chart(const MemoryReport& report) {
  const Columns columns = make_columns(report);
  const std::int64_t most = report.timeline.peak.total_bytes;
  std::string text;
  for (std::size_t row = kRows; row-- > 0;) {
    text += fmt::format("  {:>10} ", row + 1 == kRows ? format_bytes(most) : "");
    std::string line;
    for (const Column& column : columns.list) line += kBars[filled(column.most, most, row)];
    text += line.substr(0, line.find_last_not_of(' ') + 1);
    while (text.ends_with(' ')) text.pop_back();
    text += '\n';
  }
  std::string passes;
  for (const Column& column : columns.list) passes += column.pass;
  text += fmt::format("  {:>10} {}\n", "", passes);
  text += fmt::format("  {:>10} {}\u25b2 peak\n", "", std::string(columns.peak, ' '));
  return text;
}

}  // namespace tidemark::cli
