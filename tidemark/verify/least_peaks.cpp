#include "tidemark/verify/least_peaks.h"

#include <algorithm>
#include <cstddef>

namespace tidemark::verify {

namespace {

using planner::Arc;
using planner::kNoPeak;

constexpr std::size_t kNothing = std::numeric_limits<std::size_t>::max();

bool is_over(std::int64_t peak, std::int64_t saved_bytes, std::int64_t most) {
  return peak != kNoPeak && peak + saved_bytes > most;
}

// Whether the arc, and what follows, keep within `most` with as few groups saved as that takes, and `also`.
bool keeps_within(const Arc& arc, std::int64_t after, std::int64_t most, std::size_t also) {
  std::vector<std::uint8_t> is_saved(arc.groups.size(), 0);
  std::int64_t saved_bytes = 0;
  if (is_over(arc.tail_bytes, 0, most)) return false;
  if (!arc.before.empty() && is_over(arc.before.back().recompute_bytes, 0, most)) return false;
  for (std::size_t j = arc.groups.size(); j-- > 0;) {
    if (j == also || is_over(arc.groups[j].inside_bytes, saved_bytes, most)) {
      is_saved[j] = 1;
      saved_bytes += arc.groups[j].bytes;
    }
    if (is_over(arc.before[j].recompute_bytes, saved_bytes, most)) return false;
  }
  if (is_over(after, arc.keep_bytes + saved_bytes, most)) return false;
  std::int64_t saved_before = 0;
  for (std::size_t j = 0; j < arc.before.size(); ++j) {
    if (is_over(arc.before[j].forward_bytes, saved_before, most)) return false;
    if (j < is_saved.size() && is_saved[j] != 0) saved_before += arc.groups[j].bytes;
  }
  return !arc.needs_saved || std::find(is_saved.begin(), is_saved.end(), 1) != is_saved.end();
}

bool can_keep_within(const Arc& arc, std::int64_t after, std::int64_t most) {
  if (keeps_within(arc, after, most, kNothing)) return true;
  if (!arc.needs_saved) return false;
  for (std::size_t j = 0; j < arc.groups.size(); ++j)
    if (keeps_within(arc, after, most, j)) return true;
  return false;
}

}  // namespace

std::int64_t least_peak(const Arc& arc, std::int64_t after) {
  if (arc.needs_saved && arc.groups.empty()) return kNoWay;
  std::int64_t low = std::max(arc.tail_bytes, after == kNoPeak ? kNoPeak : after + arc.keep_bytes);
  for (const planner::ArcGap& gap : arc.before) low = std::max({low, gap.recompute_bytes, gap.forward_bytes});
  if (can_keep_within(arc, after, low)) return low;
  std::int64_t high = low;  // with everything saved
  for (const planner::ArcGroup& group : arc.groups) high += group.bytes;
  while (low + 1 < high) {  // too little, enough
    const std::int64_t middle = low + (high - low) / 2;
    (can_keep_within(arc, after, middle) ? high : low) = middle;
  }
  return high;
}

LeastPeaks find_least_peaks(const planner::Episode& episode) {
  LeastPeaks peaks;
  peaks.from_state.assign(episode.state_count, kNoWay);
  peaks.through_arc.assign(episode.arcs.size(), kNoWay);
  peaks.from_state.back() = kNoPeak;
  for (std::size_t a = episode.arcs.size(); a-- > 0;) {  // by the state they come from
    const Arc& arc = episode.arcs[a];
    const std::int64_t after = peaks.from_state[arc.to];
    if (after == kNoWay) continue;
    peaks.through_arc[a] = least_peak(arc, after);
    peaks.from_state[arc.from] = std::min(peaks.from_state[arc.from], peaks.through_arc[a]);
  }
  return peaks;
}

}  // namespace tidemark::verify
