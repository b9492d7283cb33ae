#include "tidemark/planner/problem.h"

#include <algorithm>

namespace tidemark::planner {

// Groups are saved only where that spares a peak.
std::int64_t floor_of(const Arc& arc, std::int64_t after) {
  struct Way {
    std::int64_t peak, inner, kept;
    bool any;
  };
  std::vector<Way> ways;
  std::int64_t own = arc.tail_bytes;
  std::int64_t forward = kNoPeak;
  if (!arc.before.empty()) {
    own = std::max(own, arc.before.back().recompute_bytes);
    forward = arc.before.back().forward_bytes;
  }
  ways.push_back({std::max(after == kNoPeak ? kNoPeak : after + arc.keep_bytes, forward), own, 0, false});
  for (std::size_t j = arc.groups.size(); j-- > 0;) {
    const ArcGroup& group = arc.groups[j];
    std::vector<Way> next;
    const auto add = [&](Way way) {
      if (arc.before[j].recompute_bytes != kNoPeak)
        way.inner = std::max(way.inner, arc.before[j].recompute_bytes + way.kept);
      way.peak = std::max(way.peak, arc.before[j].forward_bytes);
      for (const Way& other : next)
        if (other.peak <= way.peak && other.inner <= way.inner && other.kept <= way.kept && other.any >= way.any)
          return;
      std::erase_if(next, [&](const Way& other) {
        return way.peak <= other.peak && way.inner <= other.inner && way.kept <= other.kept && way.any >= other.any;
      });
      next.push_back(way);
    };
    for (const Way& way : ways) {
      Way again = way;
      if (group.inside_bytes != kNoPeak) again.inner = std::max(again.inner, group.inside_bytes + again.kept);
      add(again);
      if (group.inside_bytes == kNoPeak && !arc.needs_saved) continue;
      Way saved = way;
      saved.peak = saved.peak == kNoPeak ? kNoPeak : saved.peak + group.bytes;
      saved.kept += group.bytes;
      saved.any = true;
      add(saved);
    }
    ways = std::move(next);
  }
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (const Way& way : ways)
    if (!arc.needs_saved || way.any) best = std::min(best, std::max({way.peak, way.inner, own}));
  return best;
}

std::vector<std::int64_t> find_floors(const Episode& episode) {
  std::vector<std::int64_t> floors(episode.state_count, kNoPath);
  floors.back() = kNoPeak;
  for (std::uint32_t state = episode.state_count - 1; state-- > 0;)
    for (std::uint32_t a = episode.first_arc[state]; a < episode.first_arc[state + 1]; ++a) {
      const Arc& arc = episode.arcs[a];
      if (floors[arc.to] != kNoPath) floors[state] = std::min(floors[state], floor_of(arc, floors[arc.to]));
    }
  return floors;
}

}  // namespace tidemark::planner
