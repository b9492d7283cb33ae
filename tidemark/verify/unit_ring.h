#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tidemark/planner/problem.h"
#include "tidemark/verify/time_lines.h"

namespace tidemark::verify {

// What ways take at least when groups are saved whole, by what their kept units leave when divided by a modulus. Sizes
// are rounded down to multiples of a unit, each of which has a price; by residue, a row has the least of time and price
// of all ways to a state. Of a way that keeps U units,
//
//   time  =  (time + price * U) - price * U  >=  row[Q mod modulus] - price * Q    for every Q >= U
//
// since rows fall by at most a price from one residue to the next. Any unit, modulus and price give true bounds.

// Costs are in parts of a ps.
struct RingHint {
  std::int64_t unit_bytes = 0;  // 0: there is none
  std::int64_t modulus = 0;     // in units
  std::int64_t unit_cost = 0;
  std::int64_t parts = 1;  // of a ps

  friend bool operator==(const RingHint&, const RingHint&) = default;
};
inline constexpr std::int64_t kMostModulus = std::int64_t{1} << 20;
inline constexpr std::int64_t kMostRingCells = 45'000'000;  // of all states, in memory
inline constexpr std::int64_t kMostParts = std::int64_t{1} << 30;

using RingRow = std::vector<std::int64_t>;  // by residue; empty: no way leads there

// A row with groups that are decided: so many units are kept beside, and so many parts of a ps come on top.
struct RingPlace {
  const RingRow* row = nullptr;
  std::int64_t units = 0;
  std::int64_t cost = 0;
};

class UnitRing {
 public:
  // Rows for the ways to all states that may be part of a path within the target. `lines` says which are not, and what
  // may be kept before arcs.
  UnitRing(const planner::Episode& episode, const TimeLines& lines, const RingHint& hint, std::int64_t target_ps,
           std::int64_t max_cells);

  bool is_complete() const { return is_complete_; }  // false: it would have taken more cells, or too large numbers
  std::int64_t cells() const { return cells_; }
  // Where the ways to a state are; without a row: no way leads there.
  const RingPlace& place(std::uint32_t state) const { return places_[state]; }
  // With another group, which is saved or not.
  void add_group(const RingRow& row, const planner::ArcGroup& group, RingRow& result);
  // With one that is saved, or run again, for sure.
  void add_saved(RingPlace& place, const planner::ArcGroup& group) const;
  void add_again(RingPlace& place, const planner::ArcGroup& group) const;
  // In parts of a ps, what a way to the state and what the place has after it take at least, when at most so many bytes
  // are kept. Requires: the row is not empty.
  Int128 at(const RingPlace& place, std::uint32_t state, std::int64_t bytes) const;
  Int128 parts_of(std::int64_t ps) const { return static_cast<Int128>(ps) * hint_.parts; }

 private:
  bool has_small_numbers(const planner::Episode& episode) const;
  void join(std::uint32_t state, const RingPlace& place);
  void take_place(const RingPlace& place, RingRow& row);
  // Which groups are decided on all paths through the arc within the target; false: there are none.
  bool decide(const planner::Arc& arc, const TimeLines& lines, std::int64_t target_ps);

  RingHint hint_;
  std::deque<RingRow> rows_;
  std::vector<RingPlace> places_;   // by state
  std::vector<RingRow*> own_;       // by state: its row, where ways join in it
  std::vector<std::int64_t> rest_;  // by state: the fewest bytes that rounding takes off
  RingRow spare_[2];
  std::vector<std::int8_t> fates_;  // by group: 1 saved, 0 run again, -1 open
  std::int64_t cells_ = 0;
  bool is_complete_ = true;
};

}  // namespace tidemark::verify
