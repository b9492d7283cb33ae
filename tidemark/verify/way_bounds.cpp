#include "tidemark/verify/way_bounds.h"

#include <algorithm>

namespace tidemark::verify {

namespace {

using planner::Arc;
using planner::ArcGroup;

constexpr std::int64_t kCellsPerEntry = 16;  // which take so much less time

std::int64_t entries_of(std::int64_t cells) { return (cells + kCellsPerEntry - 1) / kCellsPerEntry; }

std::int64_t cells_of(std::int64_t entries) { return std::min(entries, kNoWay / kCellsPerEntry) * kCellsPerEntry; }

}  // namespace

WayBounds::WayBounds(const planner::Episode& episode, const LeastPeaks& peaks, const TimeLines& lines,
                     const PathQuestion& question)
    : e_(episode),
      peaks_(peaks),
      lines_(lines),
      q_(question),
      target_(scaled(question.target_ps)),
      count_(lines.prices().size()),
      way_(count_),
      narrow_way_(count_) {
  find_least_kept();
  if (q_.unit_bytes > 0) {
    units_.emplace(e_, peaks_, lines_,
                   UnitQuestion{.room_bytes = q_.room_bytes,
                                .target_ps = q_.target_ps,
                                .unit_bytes = q_.unit_bytes,
                                .max_cells = cells_of(q_.max_entries)});
    entries_ += entries_of(units_->cells());
    is_complete_ = units_->is_complete();
  }
  if (is_complete_ && q_.ring.unit_bytes > 0) {
    ring_.emplace(e_, lines_, q_.ring, q_.target_ps, cells_of(q_.max_entries - entries_));
    entries_ += entries_of(ring_->cells());
    is_complete_ = ring_->is_complete();
  }
}

void WayBounds::find_least_kept() {
  least_kept_.assign(e_.state_count, kNoWay);
  least_kept_[0] = 0;
  for (const Arc& arc : e_.arcs)
    if (least_kept_[arc.from] != kNoWay)
      least_kept_[arc.to] = std::min(least_kept_[arc.to], least_kept_[arc.from] + arc.keep_bytes);
}

bool WayBounds::turn_to(std::uint32_t arc) {
  arc_ = &e_.arcs[arc];
  if (peaks_.through_arc[arc] > q_.room_bytes || !lines_.is_reached(arc_->from)) return false;
  cap_ = lines_.cap(arc);
  lines_.way_to(arc_->from, cap_, way_);
  return true;
}

bool WayBounds::decide(const std::vector<Way>& after, std::vector<Fate>& fates) const {
  for (std::size_t k = 0; k < count_; ++k) {
    const Int128 price = lines_.prices()[k];
    Int128 rest = kFar;  // time, and price of the bytes that the rest leaves room for
    for (const Way& way : after) rest = std::min(rest, scaled(way.ps) + price * (way.peak - q_.room_bytes));
    Int128 least = way_[k] + scaled(arc_->base_ps) + price * arc_->keep_bytes + rest;
    for (const ArcGroup& group : arc_->groups) least += std::min(scaled(group.time_ps), price * group.bytes);
    if (least > target_) return false;
    for (std::size_t g = 0; g < fates.size(); ++g) {
      const Int128 more = scaled(arc_->groups[g].time_ps) - price * arc_->groups[g].bytes;
      if (least + (more < 0 ? -more : more) > target_) fates[g] = more > 0 ? Fate::kSaved : Fate::kAgain;
    }
  }
  return true;
}

bool WayBounds::add_up(const std::vector<Fate>& fates) {
  add_up_prices(fates);
  fates_ = fates;
  has_groups_ = false;
  return !ring_ || ring_->place(arc_->from).row != nullptr;
}

bool WayBounds::add_up_groups() {
  has_groups_ = true;
  return (!units_ || add_up_units()) && (!ring_ || add_up_ring());
}

// By position and price: the least time and price of the groups before it.
void WayBounds::add_up_prices(const std::vector<Fate>& fates) {
  rest_.assign((arc_->groups.size() + 1) * count_, 0);
  for (std::size_t g = 0; g < arc_->groups.size(); ++g)
    for (std::size_t k = 0; k < count_; ++k) {
      const Int128 again = scaled(arc_->groups[g].time_ps);
      const Int128 saved = static_cast<Int128>(lines_.prices()[k]) * arc_->groups[g].bytes;
      const Int128 least = fates[g] == Fate::kOpen ? std::min(again, saved) : fates[g] == Fate::kSaved ? saved : again;
      rest_[(g + 1) * count_ + k] = rest_[g * count_ + k] + least;
    }
}

// By position: the least time of the way to the arc and the groups before it, by the units that may be kept.
bool WayBounds::add_up_units() {
  const std::int64_t after = peaks_.from_state[arc_->to];
  const std::int64_t most = units_->units_of(q_.room_bytes - after) - units_->units_of(arc_->keep_bytes);
  rows_.assign(arc_->groups.size() + 1, {});
  rows_[0] = units_->row(arc_->from);
  rows_[0].cut(units_->units_of(cap_));
  std::int64_t cells = 0;
  for (std::size_t g = 0; g < arc_->groups.size(); ++g) {
    const std::int64_t units = units_->units_of(arc_->groups[g].bytes);
    cells += rows_[g].size_with(units, most);
    if (cells > kMostCells) {
      is_complete_ = false;
      return false;
    }
    rows_[g + 1] = rows_[g];
    if (fates_[g] == Fate::kOpen)
      rows_[g + 1].add_group(units, arc_->groups[g].time_ps, most);
    else if (fates_[g] == Fate::kSaved)
      rows_[g + 1].first += units;
    else
      for (std::int64_t& ps : rows_[g + 1].ps) ps += arc_->groups[g].time_ps;
  }
  entries_ += cells / kCellsPerEntry;
  return true;
}

// The same by residues.
bool WayBounds::add_up_ring() {
  if (static_cast<std::int64_t>(arc_->groups.size() + 1) * q_.ring.modulus > kMostRingCells) {
    is_complete_ = false;
    return false;
  }
  const std::int64_t before = ring_->cells();
  ring_rows_.resize(arc_->groups.size());
  places_.assign(arc_->groups.size() + 1, ring_->place(arc_->from));
  for (std::size_t g = 0; g < arc_->groups.size(); ++g) {
    RingPlace& next = places_[g + 1];
    next = places_[g];
    if (fates_[g] == Fate::kSaved) {
      ring_->add_saved(next, arc_->groups[g]);
    } else if (fates_[g] == Fate::kAgain) {
      ring_->add_again(next, arc_->groups[g]);
    } else if (arc_->groups[g].bytes >= q_.ring.unit_bytes) {  // else it is saved for nothing
      ring_->add_group(*next.row, arc_->groups[g], ring_rows_[g]);
      next.row = &ring_rows_[g];
    }
  }
  entries_ += (ring_->cells() - before) / kCellsPerEntry;
  return true;
}

bool WayBounds::may_be_in_parts(const Known& known) {
  const std::int64_t room = q_.room_bytes - known.peak;
  const std::int64_t own_room = q_.room_bytes - known.inner;
  if (std::min(room, own_room) < least_kept_[arc_->from]) return false;
  const Int128 left = target_ - scaled(known.ps);
  const Int128* rest = &rest_[known.group * count_];
  const std::vector<std::int64_t>& prices = lines_.prices();
  if (own_room < cap_ && own_room < room) {
    lines_.way_to(arc_->from, own_room, narrow_way_);
    for (std::size_t k = 0; k < count_; ++k)
      if (narrow_way_[k] + rest[k] - static_cast<Int128>(prices[k]) * room > left) return false;
    return true;
  }
  // Values rise and then fall with the price; lists mostly are in the order of their peaks.
  const auto value = [&](std::size_t k) { return way_[k] + rest[k] - static_cast<Int128>(prices[k]) * room; };
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
  return best <= left;
}

bool WayBounds::may_be_in_groups(const Known& known) {
  if (!units_ && !ring_) return true;
  if ((!has_groups_ && !add_up_groups()) || !is_complete_) return false;
  const std::int64_t room = q_.room_bytes - known.peak;
  const std::int64_t own_room = q_.room_bytes - known.inner;
  return (!units_ || may_be_whole(known, room, own_room)) && (!ring_ || may_be_on_ring(known, room, own_room));
}

bool WayBounds::may_be_whole(const Known& known, std::int64_t room, std::int64_t own_room) const {
  std::int64_t least = rows_[known.group].at(units_->units_of(room));
  if (own_room < room && least != kNoWay) least = std::max(least, rows_[0].at(units_->units_of(own_room)));
  return least != kNoWay && static_cast<Int128>(least) + known.ps <= q_.target_ps;
}

bool WayBounds::may_be_on_ring(const Known& known, std::int64_t room, std::int64_t own_room) const {
  const Int128 left = ring_->parts_of(q_.target_ps) - ring_->parts_of(known.ps);
  return ring_->at(places_[known.group], arc_->from, room) <= left &&
         (own_room >= room || ring_->at(places_[0], arc_->from, own_room) <= left);
}

}  // namespace tidemark::verify
