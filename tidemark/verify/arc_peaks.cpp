#include "tidemark/verify/arc_peaks.h"

#include <algorithm>

namespace tidemark::verify {

using planner::Arc;
using planner::ArcGap;
using planner::ArcGroup;
using planner::kNoPeak;

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

bool is_plain(const Arc& arc) {
  return !arc.needs_saved &&
         std::all_of(arc.before.begin(), arc.before.end(), [](const ArcGap& gap) { return gap == ArcGap{}; }) &&
         std::all_of(arc.groups.begin(), arc.groups.end(),
                     [](const ArcGroup& group) { return group.inside_bytes == kNoPeak; });
}

std::int64_t own_peak(const Arc& arc) {
  std::int64_t peak = arc.tail_bytes;
  for (const ArcGap& gap : arc.before) peak = std::max({peak, gap.recompute_bytes, gap.forward_bytes});
  return peak;
}

}  // namespace tidemark::verify
