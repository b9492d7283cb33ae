#include "frontier_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "text_layout.h"
#include "tidemark/base/bytes.h"

namespace tidemark::cli {

namespace {

constexpr std::size_t kColumns = 72;
constexpr std::size_t kRows = 12;
constexpr std::size_t kLabel = 8;  // of the upright axis

// Where values fall on `count` cells.
struct Axis {
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::size_t count = 1;

  std::size_t cell(std::int64_t value) const {
    if (most <= least) return 0;
    const double part = static_cast<double>(std::clamp(value, least, most) - least) / static_cast<double>(most - least);
    return std::min(count - 1, static_cast<std::size_t>(part * static_cast<double>(count - 1) + 0.5));
  }
  std::int64_t value(std::size_t at) const {
    const double part = static_cast<double>(at) / static_cast<double>(count - 1);
    return least + static_cast<std::int64_t>(part * static_cast<double>(most - least));
  }
};

// The least time known for a budget: that of the last point that needs no more.
std::int64_t time_at(const planner::Frontier& frontier, std::int64_t budget) {
  std::int64_t ps = frontier.points.front().recompute_ps;
  for (const planner::FrontierPoint& point : frontier.points)
    if (point.peak_bytes <= budget) ps = point.recompute_ps;
  return ps;
}

}  // namespace

char mark_of(const plan::Policy& policy) {
  switch (policy.kind) {
    case plan::PolicyKind::kNone:
      return 'N';
    case plan::PolicyKind::kFull:
      return 'F';
    case plan::PolicyKind::kEvery:
      return static_cast<char>('0' + policy.every % 10);
    case plan::PolicyKind::kSelective:
      return 'S';
  }
  return '?';
}

std::string frontier_plot(const FrontierReport& report) {
  const planner::Frontier& frontier = report.frontier;
  Axis across{frontier.smallest_peak_bytes, frontier.unplanned_peak_bytes, kColumns};
  Axis up{0, 1, kRows};
  for (const planner::FrontierPoint& point : frontier.points) up.most = std::max(up.most, point.recompute_ps);
  for (const planner::PolicyFigures& policy : frontier.policies) up.most = std::max(up.most, policy.recompute_ps);

  std::vector<std::string> grid(kRows, std::string(kColumns, ' '));
  for (std::size_t column = 0; column < kColumns; ++column)
    grid[up.cell(time_at(frontier, across.value(column)))][column] = '*';
  for (std::size_t i = frontier.policies.size(); i-- > 0;) {  // the first one on top
    const planner::PolicyFigures& policy = frontier.policies[i];
    grid[up.cell(policy.recompute_ps)][across.cell(policy.peak_bytes)] = mark_of(policy.policy);
  }

  std::string text;
  for (std::size_t row = kRows; row-- > 0;) {
    const bool has_label = row == 0 || row + 1 == kRows || row == kRows / 2;
    const std::string label = has_label ? percent(up.value(row), report.ops.time_ps) : "";
    std::string line = fmt::format("  {:>{}} |{}", label, kLabel, grid[row]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  text += fmt::format("  {:>{}} +{}\n", "", kLabel, std::string(kColumns, '-'));
  const std::string left = format_bytes(frontier.smallest_peak_bytes + report.reserve_bytes);
  const std::string right = format_bytes(frontier.unplanned_peak_bytes + report.reserve_bytes);
  const std::string middle = format_bytes(across.value(kColumns / 2) + report.reserve_bytes);
  const std::size_t half = kColumns / 2 - left.size() + middle.size() / 2;
  text +=
      fmt::format("  {:>{}}  {}{:>{}}{:>{}}\n", "", kLabel, left, middle, half, right, kColumns - left.size() - half);
  return text;
}

}  // namespace tidemark::cli
