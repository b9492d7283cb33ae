#include "tidemark/verify/whole_units.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tidemark::verify {

namespace {

// Both lead to the same state.
void join(UnitRow& row, UnitRow other) {
  if (other.ps.empty()) return;
  if (row.ps.empty()) {
    row = std::move(other);
    return;
  }
  if (row.first > other.first) std::swap(row, other);
  const auto shift = static_cast<std::size_t>(other.first - row.first);
  const std::size_t end = std::max(row.ps.size(), shift + other.ps.size());
  row.ps.resize(end, row.ps.back());
  for (std::size_t c = shift; c < end; ++c)
    row.ps[c] = std::min(row.ps[c], other.ps[std::min(c - shift, other.ps.size() - 1)]);
}

}  // namespace

std::int64_t UnitRow::at(std::int64_t units) const {
  if (ps.empty() || units < first) return kNoWay;
  return ps[std::min(static_cast<std::size_t>(units - first), ps.size() - 1)];
}

void UnitRow::cut(std::int64_t most_units) {
  const std::int64_t keep = std::max<std::int64_t>(most_units - first + 1, 0);
  if (keep < static_cast<std::int64_t>(ps.size())) ps.resize(static_cast<std::size_t>(keep));
}

std::int64_t UnitRow::size_with(std::int64_t units, std::int64_t most_units) const {
  const auto size = static_cast<std::int64_t>(ps.size());
  if (units == 0 || size == 0) return size;
  return std::max<std::int64_t>(std::min(size + units, most_units - first + 1), 0);
}

void UnitRow::add_group(std::int64_t units, std::int64_t time_ps, std::int64_t most_units) {
  if (units == 0 || ps.empty()) return;  // saved for nothing
  const auto size = static_cast<std::int64_t>(ps.size());
  const std::int64_t count = size_with(units, most_units);
  std::vector<std::int64_t> result(static_cast<std::size_t>(count));
  for (std::int64_t c = 0; c < count; ++c) {
    std::int64_t best = ps[static_cast<std::size_t>(std::min(c, size - 1))] + time_ps;
    if (c >= units) best = std::min(best, ps[static_cast<std::size_t>(std::min(c - units, size - 1))]);
    result[static_cast<std::size_t>(c)] = best;
  }
  ps = std::move(result);
}

WholeUnits::WholeUnits(const planner::Episode& episode, const LeastPeaks& peaks, const TimeLines& lines,
                       const UnitQuestion& question)
    : lines_(lines), q_(question), rows_(episode.state_count) {
  rows_[0].ps = {0};
  std::int64_t kept_cells = 0;
  for (std::uint32_t a = 0; a < episode.arcs.size(); ++a) {  // by the state they come from
    const planner::Arc& arc = episode.arcs[a];
    if (arc.from > 0 && a == episode.first_arc[arc.from]) trim(rows_[arc.from], arc.from);
    if (peaks.through_arc[a] > q_.room_bytes || !lines.is_reached(arc.from)) continue;
    UnitRow row = rows_[arc.from];
    row.cut(units_of(lines.cap(a)));
    const std::int64_t keep_units = units_of(arc.keep_bytes);
    const std::int64_t most = units_of(q_.room_bytes - peaks.from_state[arc.to]) - keep_units;
    for (const planner::ArcGroup& group : arc.groups) {
      const std::int64_t size = row.size_with(units_of(group.bytes), most);
      cells_ += size;
      if (cells_ > q_.max_cells || size > kMostCells) {
        is_complete_ = false;
        return;
      }
      row.add_group(units_of(group.bytes), group.time_ps, most);
    }
    row.first += keep_units;
    for (std::int64_t& ps : row.ps) ps += arc.base_ps;
    trim(row, arc.to);
    if (row.ps.empty()) continue;
    const UnitRow& other = rows_[arc.to];
    const std::int64_t apart = other.ps.empty() ? 0 : std::max(row.first - other.first, other.first - row.first);
    const auto most_cells = static_cast<std::int64_t>(row.ps.size() + other.ps.size()) + apart;
    cells_ += most_cells;
    kept_cells += most_cells - static_cast<std::int64_t>(other.ps.size());
    if (cells_ > q_.max_cells || kept_cells > kMostCells) {
      is_complete_ = false;
      return;
    }
    join(rows_[arc.to], std::move(row));
  }
}

std::int64_t WholeUnits::units_of(std::int64_t bytes) const {
  const std::int64_t units = bytes / q_.unit_bytes;
  return bytes % q_.unit_bytes < 0 ? units - 1 : units;
}

// Leaves out, from both ends, ways that take too long with the least that comes after them; and ends that do not help.
void WholeUnits::trim(UnitRow& row, std::uint32_t state) const {
  const std::vector<std::int64_t>& prices = lines_.prices();
  const auto is_too_long = [&](std::size_t cell) {
    const std::int64_t bytes = (row.first + static_cast<std::int64_t>(cell)) * q_.unit_bytes;
    const Int128 left = scaled(q_.target_ps) - scaled(row.ps[cell]);
    for (std::size_t k = 0; k < prices.size(); ++k)
      if (lines_.after(state, k) > -kFar && lines_.after(state, k) + static_cast<Int128>(prices[k]) * bytes > left)
        return true;
    return false;
  };
  while (row.ps.size() > 1 && row.ps[row.ps.size() - 2] == row.ps.back()) row.ps.pop_back();
  while (!row.ps.empty() && is_too_long(row.ps.size() - 1)) row.ps.pop_back();
  std::size_t first = 0;
  while (first < row.ps.size() && is_too_long(first)) ++first;
  row.ps.erase(row.ps.begin(), row.ps.begin() + static_cast<std::ptrdiff_t>(first));
  row.first += static_cast<std::int64_t>(first);
}

}  // namespace tidemark::verify
