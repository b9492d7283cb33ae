#include "tidemark/verify/unit_ring.h"

#include <algorithm>
#include <limits>

namespace tidemark::verify {

namespace {

using planner::Arc;
using planner::ArcGroup;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// The same figures on every processor, in fewer steps where it has wider registers.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx2", "default")))
#endif
void take_less(const std::int64_t* one, std::int64_t more, const std::int64_t* other, std::int64_t other_more,
               std::int64_t* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t a = one[i] + more;
    const std::int64_t b = other[i] + other_more;
    out[i] = a < b ? a : b;
  }
}

}  // namespace

UnitRing::UnitRing(const planner::Episode& episode, const TimeLines& lines, const RingHint& hint,
                   std::int64_t target_ps, std::int64_t max_cells)
    : hint_(hint),
      places_(episode.state_count),
      own_(episode.state_count, nullptr),
      rest_(episode.state_count, std::numeric_limits<std::int64_t>::max()) {
  is_complete_ = has_small_numbers(episode);
  if (!is_complete_) return;
  rest_[0] = 0;
  RingRow& start = rows_.emplace_back();
  for (std::int64_t i = 0; i < hint_.modulus; ++i) start.push_back(i * hint_.unit_cost);
  places_[0].row = &start;
  for (std::uint32_t a = 0; a < episode.arcs.size(); ++a) {  // by the state they come from
    const Arc& arc = episode.arcs[a];
    if (places_[arc.from].row == nullptr || lines.cap(a) < 0 || !decide(arc, lines, target_ps)) continue;
    RingPlace place = places_[arc.from];
    place.units += arc.keep_bytes / hint_.unit_bytes;
    place.cost += arc.base_ps * hint_.parts;
    std::size_t spare = 0;
    for (std::size_t g = 0; g < arc.groups.size(); ++g) {
      if (fates_[g] == 1) {
        add_saved(place, arc.groups[g]);
      } else if (fates_[g] == 0) {
        add_again(place, arc.groups[g]);
      } else if (arc.groups[g].bytes >= hint_.unit_bytes) {  // else it is saved for nothing
        add_group(*place.row, arc.groups[g], spare_[spare]);
        place.row = &spare_[spare];
        spare = 1 - spare;
      }
    }
    join(arc.to, place);
    rest_[arc.to] = std::min(rest_[arc.to], rest_[arc.from] + arc.keep_bytes % hint_.unit_bytes);
    if (cells_ > max_cells || static_cast<std::int64_t>(rows_.size()) > kMostRingCells / hint_.modulus) {
      is_complete_ = false;
      return;
    }
  }
}

// Ways that nothing joins and nothing is decided on need no row of their own.
void UnitRing::join(std::uint32_t state, const RingPlace& place) {
  RingPlace& to = places_[state];
  const bool is_spare = place.row == &spare_[0] || place.row == &spare_[1];
  if (to.row == nullptr) {
    to = place;
    if (!is_spare) return;
    to.row = &rows_.emplace_back(*place.row);
    cells_ += hint_.modulus;
    return;
  }
  if (own_[state] == nullptr) {
    own_[state] = &rows_.emplace_back(static_cast<std::size_t>(hint_.modulus), kNever);
    take_place(to, *own_[state]);
    to = {.row = own_[state], .units = 0, .cost = 0};
  }
  take_place(place, *own_[state]);
}

void UnitRing::take_place(const RingPlace& place, RingRow& row) {
  const std::int64_t shift = place.units % hint_.modulus;
  const std::int64_t more = place.cost + place.units * hint_.unit_cost;
  cells_ += hint_.modulus;
  take_less(row.data() + shift, 0, place.row->data(), more, row.data() + shift, hint_.modulus - shift);
  take_less(row.data(), 0, place.row->data() + hint_.modulus - shift, more, row.data(), shift);
}

// For every price, what all paths through the arc take at least, and what those that decide a group against its better
// side do.
bool UnitRing::decide(const Arc& arc, const TimeLines& lines, std::int64_t target_ps) {
  fates_.assign(arc.groups.size(), -1);
  for (std::size_t k = 0; k < lines.prices().size(); ++k) {
    const Int128 before = lines.before(arc.from, k);
    const Int128 after = lines.after(arc.to, k);
    if (before >= kFar || after >= kFar) return false;
    if (after <= -kFar) continue;
    const Int128 price = lines.prices()[k];
    Int128 least = before + scaled(arc.base_ps) + price * arc.keep_bytes + after;
    for (const ArcGroup& group : arc.groups) least += std::min(scaled(group.time_ps), price * group.bytes);
    if (least > scaled(target_ps)) return false;
    for (std::size_t g = 0; g < fates_.size(); ++g) {
      const Int128 more = scaled(arc.groups[g].time_ps) - price * arc.groups[g].bytes;
      if (least + (more < 0 ? -more : more) > scaled(target_ps)) fates_[g] = more > 0 ? 1 : 0;
    }
  }
  return true;
}

// Whether no sum of times, which may be below 0 (priced_side.h), and prices comes near 2^63.
bool UnitRing::has_small_numbers(const planner::Episode& episode) const {
  constexpr Int128 kMost = static_cast<Int128>(1) << 61;
  if (hint_.unit_bytes < 1 || hint_.modulus < 1 || hint_.modulus > kMostModulus || hint_.parts < 1 ||
      hint_.parts > kMostParts || hint_.unit_cost < 0 || hint_.unit_cost > kMostPrice)
    return false;
  std::vector<Int128> most(episode.state_count, 0);  // of all ways to a state
  const Int128 start = static_cast<Int128>(hint_.modulus) * hint_.unit_cost;
  for (const Arc& arc : episode.arcs) {  // by the state they come from
    Int128 sum = most[arc.from] + parts_of(arc.base_ps < 0 ? -arc.base_ps : arc.base_ps) +
                 static_cast<Int128>(arc.keep_bytes / hint_.unit_bytes) * hint_.unit_cost;
    for (const ArcGroup& group : arc.groups)
      sum += parts_of(group.time_ps) + static_cast<Int128>(group.bytes / hint_.unit_bytes) * hint_.unit_cost;
    if (start + sum > kMost) return false;
    most[arc.to] = std::max(most[arc.to], sum);
  }
  return true;
}

void UnitRing::add_group(const RingRow& row, const ArcGroup& group, RingRow& result) {
  const std::int64_t units = group.bytes / hint_.unit_bytes;
  const std::int64_t shift = units % hint_.modulus;
  const std::int64_t more = units * hint_.unit_cost;
  cells_ += hint_.modulus;
  const std::int64_t again = group.time_ps * hint_.parts;
  result.resize(row.size());
  take_less(row.data(), again, row.data() + hint_.modulus - shift, more, result.data(), shift);
  take_less(row.data() + shift, again, row.data(), more, result.data() + shift, hint_.modulus - shift);
}

void UnitRing::add_saved(RingPlace& place, const ArcGroup& group) const {
  place.units += group.bytes / hint_.unit_bytes;
}

void UnitRing::add_again(RingPlace& place, const ArcGroup& group) const { place.cost += group.time_ps * hint_.parts; }

Int128 UnitRing::at(const RingPlace& place, std::uint32_t state, std::int64_t bytes) const {
  const std::int64_t units = floor_div(bytes - rest_[state], hint_.unit_bytes) - place.units;
  const std::int64_t residue = units - floor_div(units, hint_.modulus) * hint_.modulus;
  return (*place.row)[static_cast<std::size_t>(residue)] + place.cost - static_cast<Int128>(hint_.unit_cost) * units;
}

}  // namespace tidemark::verify
