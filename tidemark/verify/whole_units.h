#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/planner/problem.h"
#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/time_lines.h"

namespace tidemark::verify {

// What ways take at least when groups are saved whole: sizes are rounded down to multiples of a unit, and the least
// time is tabulated by how many units may be kept. Rounding down only makes saving cheaper, so that this is a bound for
// any unit. Ways that cannot be part of a path within the target are left out.

// Times for `first` units, first + 1, ...; fewer are not enough, more than the last do not help. Never rising.
struct UnitRow {
  std::int64_t first = 0;
  std::vector<std::int64_t> ps;

  std::int64_t at(std::int64_t units) const;  // kNoWay where they are not enough
  void cut(std::int64_t most_units);
  // How many cells there are after add_group().
  std::int64_t size_with(std::int64_t units, std::int64_t most_units) const;
  // Another group, which is saved or not.
  void add_group(std::int64_t units, std::int64_t time_ps, std::int64_t most_units);
};

// That are in memory at a time, of all states, and of the positions in an arc.
inline constexpr std::int64_t kMostCells = 30'000'000;

struct UnitQuestion {
  std::int64_t room_bytes = 0;
  std::int64_t target_ps = 0;
  std::int64_t unit_bytes = 1;
  std::int64_t max_cells = 0;  // made
};

class WholeUnits {
 public:
  WholeUnits(const planner::Episode& episode, const LeastPeaks& peaks, const TimeLines& lines,
             const UnitQuestion& question);

  bool is_complete() const { return is_complete_; }  // false: it would have taken more cells
  std::int64_t cells() const { return cells_; }
  std::int64_t units_of(std::int64_t bytes) const;  // rounded down
  const UnitRow& row(std::uint32_t state) const { return rows_[state]; }

 private:
  void trim(UnitRow& row, std::uint32_t state) const;

  const TimeLines& lines_;
  UnitQuestion q_;
  std::vector<UnitRow> rows_;  // by state
  std::int64_t cells_ = 0;
  bool is_complete_ = true;
};

}  // namespace tidemark::verify
