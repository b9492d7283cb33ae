#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tidemark/planner/problem.h"
#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/time_lines.h"
#include "tidemark/verify/unit_ring.h"
#include "tidemark/verify/whole_units.h"

namespace tidemark::verify {

// What a path takes at least whose end is known: the way to an arc and those of its groups that are still to come, in
// one graph. Bounds are by prices (time_lines.h) and, where the question asks for them, by whole units (whole_units.h)
// and by residues (unit_ring.h). Passes over all ways to go on (path_check.h, two_sided_check.h) leave out by them what
// cannot be part of a path within the target.

struct PathQuestion {
  std::int64_t room_bytes = 0;
  std::int64_t target_ps = 0;
  std::int64_t max_entries = 0;  // ways looked at
  std::int64_t unit_bytes = 0;   // also bound ways by whole units of that size (whole_units.h); 0: not
  RingHint ring = {};            // also by residues (unit_ring.h); without a unit: not
};

// A way from a state to the end: its peak relative to what is kept before, and its time.
struct Way {
  std::int64_t peak = planner::kNoPeak;
  std::int64_t ps = 0;
};

// What a group has to be on every path within the target.
enum class Fate : std::uint8_t { kOpen, kSaved, kAgain };

// How far a path is known: from the end to before group `group` of the arc at hand, with its own recompute so far.
struct Known {
  std::int64_t ps = 0;
  std::int64_t peak = planner::kNoPeak;   // relative to what is kept before, with groups of the arc that are to come
  std::int64_t inner = planner::kNoPeak;  // relative to what is kept before the arc
  std::size_t group = 0;
};

class WayBounds {
 public:
  // All but the question has to outlive it.
  WayBounds(const planner::Episode& episode, const LeastPeaks& peaks, const TimeLines& lines,
            const PathQuestion& question);

  bool is_complete() const { return is_complete_; }  // false: it would have taken more entries
  std::int64_t entries() const { return entries_; }  // that tables took so far
  // Turns to an arc. False: no path that fits takes it.
  bool turn_to(std::uint32_t arc);
  // What each group of the arc has to be when one of `after` follows it. False: no path is within the target.
  bool decide(const std::vector<Way>& after, std::vector<Fate>& fates) const;
  // With that, what is to come at every group. False: no path leads there.
  bool add_up(const std::vector<Fate>& fates);
  // Before a list of ascending peaks.
  void begin_list() { line_ = 0; }
  // Whether a path that ends like this may fit and take at most the target.
  bool may_be(const Known& known) { return may_be_in_parts(known) && may_be_in_groups(known); }
  // By prices alone, and by units and residues, which take longer to prepare for an arc: that is done when they are
  // first asked for. False, too, where it would have taken more entries.
  bool may_be_in_parts(const Known& known);
  bool may_be_in_groups(const Known& known);

 private:
  void find_least_kept();
  void add_up_prices(const std::vector<Fate>& fates);
  bool add_up_groups();
  bool add_up_units();
  bool add_up_ring();
  bool may_be_whole(const Known& known, std::int64_t room, std::int64_t own_room) const;
  bool may_be_on_ring(const Known& known, std::int64_t room, std::int64_t own_room) const;

  const planner::Episode& e_;
  const LeastPeaks& peaks_;
  const TimeLines& lines_;
  PathQuestion q_;
  Int128 target_;
  std::size_t count_;                     // of prices
  std::vector<std::int64_t> least_kept_;  // by state: the fewest bytes that a way there keeps
  std::optional<WholeUnits> units_;
  std::optional<UnitRing> ring_;
  std::int64_t entries_ = 0;
  bool is_complete_ = true;

  // Of the arc at hand.
  const planner::Arc* arc_ = nullptr;
  std::int64_t cap_ = 0;
  std::vector<Int128> way_;  // by price: the way to it
  std::vector<Int128> narrow_way_;
  std::vector<Fate> fates_;         // by group
  bool has_groups_ = false;         // the rows and places below are of this arc
  std::vector<Int128> rest_;        // by position and price: the groups before it
  std::vector<UnitRow> rows_;       // by position, with whole units
  std::vector<RingRow> ring_rows_;  // by group that is open
  std::vector<RingPlace> places_;   // by position
  std::size_t line_ = 0;            // the price that was best last
};

}  // namespace tidemark::verify
