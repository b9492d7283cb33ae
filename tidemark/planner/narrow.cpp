#include "tidemark/planner/narrow.h"

#include <algorithm>
#include <utility>

#include "tidemark/planner/floors.h"
#include "tidemark/planner/ways.h"

namespace tidemark::planner {

namespace {

constexpr Int128 kFar = static_cast<Int128>(1) << 120;

Int128 scaled(std::int64_t ps) { return static_cast<Int128>(ps) << kPriceBits; }

// Rounded up: a path's time is a whole number.
std::int64_t ps_of(Int128 value) {
  const Int128 unit = static_cast<Int128>(1) << kPriceBits;
  const Int128 ps = value >= 0 ? (value + unit - 1) / unit : -(-value / unit);
  return static_cast<std::int64_t>(ps);
}

std::int64_t raised(std::int64_t peak, std::int64_t by) { return peak == kNoPeak ? kNoPeak : peak + by; }

}  // namespace

Path Narrowed::widened(const Path& path) const {
  Path result;
  for (const ArcUse& use : path) {
    const NarrowedArc& from = origin[use.arc];
    ArcUse wide{from.arc, from.saved};
    for (const std::uint32_t group : use.saved) wide.saved.push_back(from.open[group]);
    std::sort(wide.saved.begin(), wide.saved.end());
    result.push_back(std::move(wide));
  }
  return result;
}

Bounds::Bounds(const Episode& episode, const std::vector<std::int64_t>& floors, std::int64_t budget_bytes,
               std::vector<std::int64_t> prices)
    : episode_(episode), prices_(std::move(prices)) {
  for (const Arc& arc : episode.arcs) {
    const bool fits = floors[arc.from] != kNoPath && floors[arc.to] != kNoPath && floors[arc.from] <= budget_bytes &&
                      least_peak(arc) <= budget_bytes;
    fits_.push_back(fits ? 1 : 0);
    // What is kept before the arc is at most that, so that the price may fall here.
    const std::int64_t fall = prices_[arc.from] - prices_[arc.to];
    weight_.push_back(!fits ? kFar
                            : weight_of(arc) - static_cast<Int128>(fall) * most_before(arc, floors, budget_bytes));
  }
  before_.assign(episode.state_count, kFar);
  after_.assign(episode.state_count, kFar);
  before_.front() = 0;
  after_.back() = 0;
  for (std::uint32_t a = 0; a < episode.arcs.size(); ++a) {  // by the state they come from
    const Arc& arc = episode.arcs[a];
    if (fits_[a] != 0 && before_[arc.from] < kFar)
      before_[arc.to] = std::min(before_[arc.to], before_[arc.from] + weight_[a]);
  }
  for (std::uint32_t a = static_cast<std::uint32_t>(episode.arcs.size()); a-- > 0;) {
    const Arc& arc = episode.arcs[a];
    if (fits_[a] != 0 && after_[arc.to] < kFar)
      after_[arc.from] = std::min(after_[arc.from], after_[arc.to] + weight_[a]);
  }
}

Int128 Bounds::weight_of(const Arc& arc) const {
  const auto price = static_cast<Int128>(prices_[arc.to]);
  Int128 weight = scaled(arc.base_ps) + price * arc.keep_bytes;
  for (const ArcGroup& group : arc.groups) weight += std::min(scaled(group.time_ps), price * group.bytes);
  return weight;
}

std::int64_t Bounds::bound_ps() const {
  return before_.back() < kFar ? std::max<std::int64_t>(ps_of(before_.back()), 0) : Convex::kNotEnough;
}

std::int64_t Bounds::rest_ps(std::uint32_t state, std::int64_t bytes) const {
  if (after_[state] >= kFar) return Convex::kNotEnough / 2;
  return std::max<std::int64_t>(ps_of(after_[state] + static_cast<Int128>(prices_[state]) * bytes), 0);
}

Int128 Bounds::through(std::uint32_t a) const {
  const Arc& arc = episode_.arcs[a];
  if (fits_[a] == 0 || before_[arc.from] >= kFar || after_[arc.to] >= kFar) return kFar;
  return before_[arc.from] + weight_[a] + after_[arc.to];
}

Narrowed Bounds::narrow(std::int64_t target_ps) const {
  Narrowed result;
  result.episode.state_count = episode_.state_count;
  result.episode.first_arc.reserve(episode_.state_count + 1);
  for (std::uint32_t state = 0; state < episode_.state_count; ++state) {
    result.episode.first_arc.push_back(static_cast<std::uint32_t>(result.episode.arcs.size()));
    if (state + 1 == episode_.state_count) break;
    for (std::uint32_t a = episode_.first_arc[state]; a < episode_.first_arc[state + 1]; ++a) {
      const Int128 through_arc = through(a);
      if (through_arc >= kFar) continue;
      if (const std::int64_t ps = ps_of(through_arc); ps > target_ps) {
        result.next_ps = std::min(result.next_ps, ps);
        continue;
      }
      const Arc& arc = episode_.arcs[a];
      const auto price = static_cast<Int128>(prices_[arc.to]);
      std::vector<std::int8_t> decided(arc.groups.size(), -1);
      NarrowedArc origin{a, {}, {}};
      for (std::uint32_t g = 0; g < arc.groups.size(); ++g) {
        const Int128 more = scaled(arc.groups[g].time_ps) - price * arc.groups[g].bytes;
        const std::int64_t ps = ps_of(through_arc + (more < 0 ? -more : more));
        if (ps <= target_ps) {
          origin.open.push_back(g);
          continue;
        }
        result.next_ps = std::min(result.next_ps, ps);
        decided[g] = more > 0 ? 1 : 0;
        if (more > 0) origin.saved.push_back(g);
      }
      Arc narrowed = decide_groups(arc, decided);
      if (narrowed.needs_saved && narrowed.groups.empty()) continue;  // would need what was decided otherwise
      result.episode.arcs.push_back(std::move(narrowed));
      result.origin.push_back(std::move(origin));
    }
  }
  result.episode.first_arc.push_back(static_cast<std::uint32_t>(result.episode.arcs.size()));
  return result;
}

Arc decide_groups(const Arc& arc, const std::vector<std::int8_t>& decided) {
  Arc result = arc;
  if (arc.groups.empty()) return result;
  result.groups.clear();
  result.before.clear();
  std::int64_t saved_bytes = 0;
  for (std::size_t j = 0; j < decided.size(); ++j) {
    if (decided[j] == 1) {
      saved_bytes += arc.groups[j].bytes;
      result.needs_saved = false;
    } else if (decided[j] == 0) {
      result.base_ps += arc.groups[j].time_ps;
    }
  }
  result.keep_bytes += saved_bytes;
  // From the end, as the recompute sees them: saved groups count until they are reached, in the forward from there on.
  std::int64_t after = 0;
  ArcGap gap;
  const auto pass = [&](const ArcGap& at) {
    gap.recompute_bytes = std::max(gap.recompute_bytes, raised(at.recompute_bytes, after));
    gap.forward_bytes = std::max(gap.forward_bytes, raised(at.forward_bytes, saved_bytes - after));
  };
  pass(arc.before.back());
  for (std::size_t j = arc.groups.size(); j-- > 0;) {
    const ArcGroup& group = arc.groups[j];
    if (decided[j] < 0) {
      result.before.push_back(gap);
      gap = {};
      result.groups.push_back({group.bytes, group.time_ps, raised(group.inside_bytes, after), group.choice});
    } else if (decided[j] == 1) {
      after += group.bytes;
    } else {
      gap.recompute_bytes = std::max(gap.recompute_bytes, raised(group.inside_bytes, after));
    }
    pass(arc.before[j]);
  }
  result.before.push_back(gap);
  std::reverse(result.groups.begin(), result.groups.end());
  std::reverse(result.before.begin(), result.before.end());
  return result;
}

}  // namespace tidemark::planner
