#include "tidemark/planner/path.h"

#include <algorithm>

namespace tidemark::planner {

PathFigures measure(const Episode& episode, const Path& path) {
  PathFigures figures{kNoPeak, 0, 0};
  for (const ArcUse& use : path) {
    const Arc& arc = episode.arcs[use.arc];
    std::vector<std::uint8_t> is_saved(arc.groups.size(), 0);
    for (const std::uint32_t group : use.saved) is_saved[group] = 1;
    std::int64_t peak = arc.tail_bytes;
    std::int64_t after = 0;
    for (std::size_t j = arc.groups.size() + 1; j-- > 0;) {
      if (j < arc.groups.size()) {
        if (is_saved[j] != 0)
          after += arc.groups[j].bytes;
        else if (arc.groups[j].inside_bytes != kNoPeak)
          peak = std::max(peak, arc.groups[j].inside_bytes + after);
      }
      if (j < arc.before.size() && arc.before[j].recompute_bytes != kNoPeak)
        peak = std::max(peak, arc.before[j].recompute_bytes + after);
    }
    std::int64_t before = 0;
    std::int64_t ps = arc.base_ps;
    for (std::size_t j = 0; j < arc.before.size(); ++j) {
      if (arc.before[j].forward_bytes != kNoPeak) peak = std::max(peak, arc.before[j].forward_bytes + before);
      if (j == arc.groups.size()) break;
      if (is_saved[j] != 0)
        before += arc.groups[j].bytes;
      else
        ps += arc.groups[j].time_ps;
    }
    if (peak != kNoPeak) figures.peak_bytes = std::max(figures.peak_bytes, figures.kept_bytes + peak);
    figures.kept_bytes += arc.keep_bytes + before;
    figures.time_ps += ps;
  }
  return figures;
}

}  // namespace tidemark::planner
