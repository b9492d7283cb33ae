#include "tidemark/verify/time_lines.h"

#include <algorithm>
#include <utility>

namespace tidemark::verify {

namespace {

// Time plus price of an arc, with each group saved or not, whichever is less.
Int128 cost_of(const planner::Arc& arc, std::int64_t price) {
  Int128 cost = scaled(arc.base_ps) + static_cast<Int128>(price) * arc.keep_bytes;
  for (const planner::ArcGroup& group : arc.groups)
    cost += std::min(scaled(group.time_ps), static_cast<Int128>(price) * group.bytes);
  return cost;
}

}  // namespace

std::vector<std::int64_t> from_zero(const std::vector<std::int64_t>& prices) {
  std::vector<std::int64_t> all = {0};
  all.insert(all.end(), prices.begin(), prices.end());
  return all;
}

TimeLines::TimeLines(const planner::Episode& episode, const LeastPeaks& peaks, std::int64_t room_bytes,
                     std::vector<std::int64_t> prices)
    : prices_(std::move(prices)) {
  const std::size_t count = prices_.size();
  before_.assign(episode.state_count * count, kFar);
  after_.assign(episode.state_count * count, kFar);
  std::fill_n(before_.begin(), count, 0);
  std::vector<std::uint8_t> fits(episode.arcs.size(), 0);
  std::vector<Int128> costs(episode.arcs.size() * count, 0);
  std::vector<Int128> lines(count);
  for (std::uint32_t a = 0; a < episode.arcs.size(); ++a) {  // by the state they come from
    const planner::Arc& arc = episode.arcs[a];
    fits[a] = peaks.through_arc[a] <= room_bytes ? 1 : 0;
    cap_.push_back(fits[a] == 0 ? 0 : room_bytes - peaks.through_arc[a]);
    if (arc.from == 0) cap_.back() = 0;  // nothing comes before
    if (fits[a] == 0 || !is_reached(arc.from)) continue;
    way_to(arc.from, cap_[a], lines);
    for (std::size_t k = 0; k < count; ++k) {
      costs[a * count + k] = cost_of(arc, prices_[k]);
      Int128& best = before_[arc.to * count + k];
      best = std::min(best, lines[k] + costs[a * count + k]);
    }
  }
  // At the end nothing is left, whatever is kept: true for the price of nothing alone.
  for (std::size_t k = 0; k < count; ++k) after_[(episode.state_count - 1) * count + k] = prices_[k] == 0 ? 0 : -kFar;
  for (std::uint32_t a = static_cast<std::uint32_t>(episode.arcs.size()); a-- > 0;) {
    const planner::Arc& arc = episode.arcs[a];
    if (fits[a] == 0 || !is_reached(arc.from) || after_[arc.to * count] >= kFar) continue;
    Int128 best = -kFar;
    for (std::size_t k = 0; k < count; ++k) {
      const Int128 capped = static_cast<Int128>(prices_[k]) * cap_[a];
      if (after_[arc.to * count + k] > -kFar)
        best = std::max(best, after_[arc.to * count + k] + costs[a * count + k] + capped);
      Int128& least = after_[arc.from * count + k];
      least = std::min(least, best > -kFar ? best - capped : -kFar);
    }
  }
}

void TimeLines::way_to(std::uint32_t state, std::int64_t cap, std::vector<Int128>& lines) const {
  Int128 best = -kFar;
  for (std::size_t k = prices_.size(); k-- > 0;) {
    const Int128 capped = static_cast<Int128>(prices_[k]) * cap;
    best = std::max(best, before(state, k) - capped);
    lines[k] = best + capped;
  }
}

}  // namespace tidemark::verify
