#include "tidemark/verify/path_check.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "tidemark/verify/whole_units.h"

namespace tidemark::verify {

namespace {

using planner::Arc;
using planner::ArcGap;
using planner::ArcGroup;
using planner::kNoPeak;

std::int64_t raised(std::int64_t peak, std::int64_t by) { return peak == kNoPeak ? kNoPeak : peak + by; }

// A way from a state to the end: its peak relative to what is kept before, and its time.
struct Way {
  std::int64_t peak = kNoPeak;
  std::int64_t ps = 0;
};

// A way in the middle of an arc. `peak` is relative to what is kept before, groups of the arc included; `inner` is what
// the arc's own recompute has come to, relative to what is kept before the arc.
struct Part {
  std::int64_t peak = kNoPeak;
  std::int64_t ps = 0;
  std::int64_t inner = kNoPeak;
  std::int64_t kept = 0;  // by the arc's groups from here on
  bool any_saved = false;
};

constexpr std::int64_t kCellsPerEntry = 16;  // which take so much less time

enum class Fate : std::uint8_t { kOpen, kSaved, kAgain };

// Peaks that cannot be the highest, whatever is saved, since what follows is above them.
Arc without_low_peaks(const Arc& arc, std::int64_t after) {
  Arc result = arc;
  const std::int64_t least = raised(after, arc.keep_bytes);
  const auto drop = [&](std::int64_t& peak) {
    if (peak <= least) peak = kNoPeak;
  };
  drop(result.tail_bytes);
  for (ArcGap& gap : result.before) {
    drop(gap.recompute_bytes);
    drop(gap.forward_bytes);
  }
  for (ArcGroup& group : result.groups) drop(group.inside_bytes);
  return result;
}

// Whether peak and time are all there is to tell of its parts.
bool is_plain(const Arc& arc) {
  return !arc.needs_saved &&
         std::all_of(arc.before.begin(), arc.before.end(), [](const ArcGap& gap) { return gap == ArcGap{}; }) &&
         std::all_of(arc.groups.begin(), arc.groups.end(),
                     [](const ArcGroup& group) { return group.inside_bytes == kNoPeak; });
}

class Pass {
 public:
  Pass(const planner::Episode& episode, const LeastPeaks& peaks, const TimeLines& lines, const PathQuestion& question)
      : e_(episode),
        peaks_(peaks),
        lines_(lines),
        q_(question),
        target_(scaled(question.target_ps)),
        count_(lines.prices().size()) {}

  PathCheck run() {
    find_least_kept();
    if (q_.unit_bytes > 0) {
      units_.emplace(e_, peaks_, lines_,
                     UnitQuestion{.room_bytes = q_.room_bytes,
                                  .target_ps = q_.target_ps,
                                  .unit_bytes = q_.unit_bytes,
                                  .max_cells = std::min(q_.max_entries, kNoWay / kCellsPerEntry) * kCellsPerEntry});
      check_.entries += (units_->cells() + kCellsPerEntry - 1) / kCellsPerEntry;
      if (!units_->is_complete()) return {PathAnswer::kTooManyEntries, check_.entries, 0};
    }
    if (q_.ring.unit_bytes > 0) {
      const std::int64_t left = std::min(q_.max_entries - check_.entries, kNoWay / kCellsPerEntry);
      ring_.emplace(e_, lines_, q_.ring, q_.target_ps, left * kCellsPerEntry);
      check_.entries += (ring_->cells() + kCellsPerEntry - 1) / kCellsPerEntry;
      if (!ring_->is_complete()) return {PathAnswer::kTooManyEntries, check_.entries, 0};
    }
    std::vector<std::uint32_t> first_user(e_.state_count, 0);  // after which a state's ways are not needed
    for (std::size_t a = e_.arcs.size(); a-- > 0;) first_user[e_.arcs[a].to] = e_.arcs[a].from;
    ways_.assign(e_.state_count, {});
    ways_.back().push_back({kNoPeak, 0});
    for (std::uint32_t state = e_.state_count - 1; state-- > 0;) {
      std::vector<Way> all;
      for (std::uint32_t a = e_.first_arc[state]; a < e_.first_arc[state + 1]; ++a) add_arc(a, all);
      ways_[state] = best_of(std::move(all));
      if (check_.entries > q_.max_entries) return {PathAnswer::kTooManyEntries, check_.entries, 0};
      for (std::uint32_t a = e_.first_arc[state]; a < e_.first_arc[state + 1]; ++a)
        if (first_user[e_.arcs[a].to] == state) ways_[e_.arcs[a].to] = {};
    }
    for (const Way& way : ways_[0]) {
      if (way.peak > q_.room_bytes || way.ps > q_.target_ps) continue;
      if (check_.answer == PathAnswer::kNone || way.ps < check_.found_ps) check_.found_ps = way.ps;
      check_.answer = PathAnswer::kFound;
    }
    return check_;
  }

 private:
  void find_least_kept() {
    least_kept_.assign(e_.state_count, kNoWay);
    least_kept_[0] = 0;
    for (const Arc& arc : e_.arcs)
      if (least_kept_[arc.from] != kNoWay)
        least_kept_[arc.to] = std::min(least_kept_[arc.to], least_kept_[arc.from] + arc.keep_bytes);
  }

  void add_arc(std::uint32_t a, std::vector<Way>& all) {
    const std::uint32_t from = e_.arcs[a].from;
    const std::vector<Way>& after = ways_[e_.arcs[a].to];
    if (after.empty() || peaks_.through_arc[a] > q_.room_bytes || !lines_.is_reached(from)) return;
    arc_ = without_low_peaks(e_.arcs[a], peaks_.from_state[e_.arcs[a].to]);
    cap_ = lines_.cap(a);
    way_.resize(count_);
    lines_.way_to(from, cap_, way_);
    check_.entries += static_cast<std::int64_t>(after.size());
    if (!decide_groups(after)) return;
    add_up_rest();
    if (units_ && !add_up_units(peaks_.from_state[arc_.to])) return;
    if (ring_ && !add_up_ring()) return;
    const bool is_plain_arc = is_plain(arc_);
    const ArcGap last = arc_.before.empty() ? ArcGap{} : arc_.before.back();
    std::vector<Part> parts;
    line_ = 0;
    for (const Way& way : after) {
      const Part part{.peak = std::max(raised(way.peak, arc_.keep_bytes), last.forward_bytes),
                      .ps = way.ps + arc_.base_ps,
                      .inner = is_plain_arc ? kNoPeak : std::max(arc_.tail_bytes, last.recompute_bytes)};
      if (may_stay(part, arc_.groups.size())) parts.push_back(part);
    }
    for (std::size_t j = arc_.groups.size(); j-- > 0 && !parts.empty() && check_.entries <= q_.max_entries;) {
      line_ = 0;
      if (is_plain_arc)
        pass_plain_group(j, parts);
      else
        pass_group(j, parts);
    }
    line_ = 0;
    for (Part& part : parts) {
      if (arc_.needs_saved && !part.any_saved) continue;
      part.peak = std::max({part.peak, part.inner, arc_.tail_bytes});
      part.inner = kNoPeak;
      if (may_stay(part, 0)) all.push_back({part.peak, part.ps});
    }
  }

  // What each group has to be for any path through the arc to take at most the target. False: none does.
  bool decide_groups(const std::vector<Way>& after) {
    fates_.assign(arc_.groups.size(), Fate::kOpen);
    for (std::size_t k = 0; k < count_; ++k) {
      const Int128 price = lines_.prices()[k];
      Int128 rest = kFar;  // time, and price of the bytes that the rest leaves room for
      for (const Way& way : after) rest = std::min(rest, scaled(way.ps) + price * (way.peak - q_.room_bytes));
      Int128 least = way_[k] + scaled(arc_.base_ps) + price * arc_.keep_bytes + rest;
      for (const ArcGroup& group : arc_.groups) least += std::min(scaled(group.time_ps), price * group.bytes);
      if (least > target_) return false;
      for (std::size_t g = 0; g < fates_.size(); ++g) {
        const Int128 more = scaled(arc_.groups[g].time_ps) - price * arc_.groups[g].bytes;
        if (least + (more < 0 ? -more : more) > target_) fates_[g] = more > 0 ? Fate::kSaved : Fate::kAgain;
      }
    }
    return true;
  }

  // By position and price: the least time and price of the groups before it.
  void add_up_rest() {
    rest_.assign((arc_.groups.size() + 1) * count_, 0);
    for (std::size_t g = 0; g < arc_.groups.size(); ++g)
      for (std::size_t k = 0; k < count_; ++k) {
        const Int128 again = scaled(arc_.groups[g].time_ps);
        const Int128 saved = static_cast<Int128>(lines_.prices()[k]) * arc_.groups[g].bytes;
        const Int128 least = fates_[g] == Fate::kOpen    ? std::min(again, saved)
                             : fates_[g] == Fate::kSaved ? saved
                                                         : again;
        rest_[(g + 1) * count_ + k] = rest_[g * count_ + k] + least;
      }
  }

  // By position: the least time of the way to the arc and the groups before it, by the units that may be kept.
  // False: they are too many.
  bool add_up_units(std::int64_t after) {
    const std::int64_t most = units_->units_of(q_.room_bytes - after) - units_->units_of(arc_.keep_bytes);
    rows_.assign(arc_.groups.size() + 1, {});
    rows_[0] = units_->row(arc_.from);
    rows_[0].cut(units_->units_of(cap_));
    std::int64_t cells = 0;
    for (std::size_t g = 0; g < arc_.groups.size(); ++g) {
      const std::int64_t units = units_->units_of(arc_.groups[g].bytes);
      cells += rows_[g].size_with(units, most);
      if (cells > kMostCells) {
        check_.entries = q_.max_entries + 1;
        return false;
      }
      rows_[g + 1] = rows_[g];
      if (fates_[g] == Fate::kOpen)
        rows_[g + 1].add_group(units, arc_.groups[g].time_ps, most);
      else if (fates_[g] == Fate::kSaved)
        rows_[g + 1].first += units;
      else
        for (std::int64_t& ps : rows_[g + 1].ps) ps += arc_.groups[g].time_ps;
    }
    check_.entries += cells / kCellsPerEntry;
    return true;
  }

  // The same by residues. False: they are too many, or no way leads there.
  bool add_up_ring() {
    const auto size = static_cast<std::int64_t>(arc_.groups.size() + 1) * q_.ring.modulus;
    if (ring_->place(arc_.from).row == nullptr) return false;
    if (size > kMostRingCells) {
      check_.entries = q_.max_entries + 1;
      return false;
    }
    const std::int64_t before = ring_->cells();
    ring_rows_.resize(arc_.groups.size());
    places_.assign(arc_.groups.size() + 1, ring_->place(arc_.from));
    for (std::size_t g = 0; g < arc_.groups.size(); ++g) {
      RingPlace& next = places_[g + 1];
      next = places_[g];
      if (fates_[g] == Fate::kSaved) {
        ring_->add_saved(next, arc_.groups[g]);
      } else if (fates_[g] == Fate::kAgain) {
        ring_->add_again(next, arc_.groups[g]);
      } else if (arc_.groups[g].bytes >= q_.ring.unit_bytes) {  // else it is saved for nothing
        ring_->add_group(*next.row, arc_.groups[g], ring_rows_[g]);
        next.row = &ring_rows_[g];
      }
    }
    check_.entries += (ring_->cells() - before) / kCellsPerEntry;
    return true;
  }

  bool may_stay_on_ring(const Part& part, std::size_t j, std::int64_t room, std::int64_t own_room) const {
    const Int128 left = ring_->parts_of(q_.target_ps) - ring_->parts_of(part.ps);
    return ring_->at(places_[j], arc_.from, room) <= left &&
           (own_room >= room || ring_->at(places_[0], arc_.from, own_room) <= left);
  }

  bool may_stay_in_groups(const Part& part, std::size_t j, std::int64_t room, std::int64_t own_room) const {
    return (!units_ || may_stay_whole(part, j, room, own_room)) &&
           (!ring_ || may_stay_on_ring(part, j, room, own_room));
  }

  // The same by whole units.
  bool may_stay_whole(const Part& part, std::size_t j, std::int64_t room, std::int64_t own_room) const {
    std::int64_t least = rows_[j].at(units_->units_of(room));
    if (own_room < room && least != kNoWay) least = std::max(least, rows_[0].at(units_->units_of(own_room)));
    return least != kNoWay && part.ps <= q_.target_ps && least <= q_.target_ps - part.ps;
  }

  // Whether a path that ends like this, with the groups before `j` still to come, may fit and take at most the target.
  bool may_stay(const Part& part, std::size_t j) {
    const std::int64_t room = q_.room_bytes - part.peak;
    const std::int64_t own_room = q_.room_bytes - part.inner;
    if (std::min(room, own_room) < least_kept_[arc_.from]) return false;
    const Int128 left = target_ - scaled(part.ps);
    if (own_room < cap_ && own_room < room) {
      lines_.way_to(arc_.from, own_room, narrow_way_);
      for (std::size_t k = 0; k < count_; ++k)
        if (narrow_way_[k] + rest_[j * count_ + k] - static_cast<Int128>(lines_.prices()[k]) * room > left)
          return false;
      return may_stay_in_groups(part, j, room, own_room);
    }
    // Values rise and then fall with the price; parts mostly come in the order of their peaks.
    const auto value = [&](std::size_t k) {
      return way_[k] + rest_[j * count_ + k] - static_cast<Int128>(lines_.prices()[k]) * room;
    };
    Int128 best = value(line_);
    while (line_ + 1 < count_) {
      const Int128 next = value(line_ + 1);
      if (next < best) break;
      best = next;
      ++line_;
    }
    while (line_ > 0) {
      const Int128 next = value(line_ - 1);
      if (next <= best) break;
      best = next;
      --line_;
    }
    return best <= left && may_stay_in_groups(part, j, room, own_room);
  }

  // Parts ascend in their peaks and descend in their times, before and after.
  void pass_plain_group(std::size_t j, std::vector<Part>& parts) {
    const ArcGroup& group = arc_.groups[j];
    if (fates_[j] != Fate::kOpen) {
      for (Part& part : parts) {
        if (fates_[j] == Fate::kSaved)
          part.peak = raised(part.peak, group.bytes);
        else
          part.ps += group.time_ps;
      }
      return;
    }
    std::vector<Part> result;
    std::size_t again = 0;
    std::size_t saved = 0;
    while (again < parts.size() || saved < parts.size()) {
      Part if_again;
      Part if_saved;
      if (again < parts.size()) {
        if_again = parts[again];
        if_again.ps += group.time_ps;
      }
      if (saved < parts.size()) {
        if_saved = parts[saved];
        if_saved.peak = raised(if_saved.peak, group.bytes);
      }
      const bool takes_again = saved == parts.size() ||
                               (again < parts.size() && (if_again.peak != if_saved.peak ? if_again.peak < if_saved.peak
                                                                                        : if_again.ps <= if_saved.ps));
      const Part& part = takes_again ? if_again : if_saved;
      ++(takes_again ? again : saved);
      ++check_.entries;
      if (!result.empty() && part.ps >= result.back().ps) continue;
      if (may_stay(part, j)) result.push_back(part);
    }
    parts = std::move(result);
  }

  void pass_group(std::size_t j, std::vector<Part>& parts) {
    const ArcGroup& group = arc_.groups[j];
    const ArcGap& gap = arc_.before[j];
    std::vector<Part> made;
    const auto add = [&](Part part) {
      ++check_.entries;
      part.inner = std::max(part.inner, raised(gap.recompute_bytes, part.kept));
      part.peak = std::max(part.peak, gap.forward_bytes);
      if (may_stay(part, j)) made.push_back(part);
    };
    for (const Part& part : parts) {
      if (fates_[j] != Fate::kSaved) {
        Part again = part;
        again.ps += group.time_ps;
        again.inner = std::max(again.inner, raised(group.inside_bytes, again.kept));
        add(again);
      }
      if (fates_[j] != Fate::kAgain) {
        Part saved = part;
        saved.peak = raised(saved.peak, group.bytes);
        saved.kept += group.bytes;
        saved.any_saved = true;
        add(saved);
      }
    }
    parts = best_of(j, std::move(made));
  }

  // Of two parts, one that is no better in anything is left out.
  std::vector<Part> best_of(std::size_t j, std::vector<Part> parts) const {
    // The highest that the recompute may still come to, without what is saved.
    std::int64_t highest = kNoPeak;
    for (std::size_t i = 0; i < j; ++i)
      highest = std::max({highest, arc_.before[i].recompute_bytes, arc_.groups[i].inside_bytes});
    for (Part& part : parts) {
      // The peak is certain; what is below it, and stays there, makes no difference.
      part.inner = std::max(part.inner, part.peak);
      part.kept = std::max(part.kept, part.peak - highest);
      if (!arc_.needs_saved) part.any_saved = true;
    }
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      if (a.peak != b.peak) return a.peak < b.peak;
      if (a.ps != b.ps) return a.ps < b.ps;
      if (a.inner != b.inner) return a.inner < b.inner;
      if (a.kept != b.kept) return a.kept < b.kept;
      return a.any_saved && !b.any_saved;
    });
    std::vector<Part> result;
    for (const Part& part : parts) {
      bool is_worse = false;
      for (std::size_t i = result.size(); i-- > 0 && !is_worse;)
        is_worse = result[i].ps <= part.ps && result[i].inner <= part.inner && result[i].kept <= part.kept &&
                   (result[i].any_saved || !part.any_saved);
      if (!is_worse) result.push_back(part);
    }
    return result;
  }

  static std::vector<Way> best_of(std::vector<Way> ways) {
    std::sort(ways.begin(), ways.end(),
              [](const Way& a, const Way& b) { return a.peak != b.peak ? a.peak < b.peak : a.ps < b.ps; });
    std::vector<Way> result;
    for (const Way& way : ways)
      if (result.empty() || way.ps < result.back().ps) result.push_back(way);
    return result;
  }

  const planner::Episode& e_;
  const LeastPeaks& peaks_;
  const TimeLines& lines_;
  PathQuestion q_;
  Int128 target_;
  std::size_t count_;                     // of prices
  std::vector<std::int64_t> least_kept_;  // by state: the fewest bytes that a way there keeps
  std::vector<std::vector<Way>> ways_;    // by state
  PathCheck check_;
  std::optional<WholeUnits> units_;
  std::optional<UnitRing> ring_;

  // Of the arc at hand.
  Arc arc_;
  std::int64_t cap_ = 0;
  std::vector<Int128> way_;  // by price: the way to it
  std::vector<Int128> narrow_way_ = std::vector<Int128>(lines_.prices().size());
  std::vector<Int128> rest_;        // by position and price
  std::vector<Fate> fates_;         // by group
  std::vector<UnitRow> rows_;       // by position, with whole units
  std::vector<RingRow> ring_rows_;  // by group that is open
  std::vector<RingPlace> places_;   // by position
  std::size_t line_ = 0;            // the price that was best last
};

}  // namespace

PathCheck look_for_path(const planner::Episode& episode, const LeastPeaks& peaks, const TimeLines& lines,
                        const PathQuestion& question) {
  return Pass(episode, peaks, lines, question).run();
}

}  // namespace tidemark::verify
