#include "tidemark/planner/floors.h"

#include <algorithm>
#include <utility>

#include "tidemark/planner/convex.h"

namespace tidemark::planner {

namespace {

constexpr Int128 kFarPs = static_cast<Int128>(1) << 100;

}  // namespace

// Groups are saved only where that spares a peak.
std::int64_t floor_of(const Arc& arc, std::int64_t after, std::vector<std::uint32_t>* saved_groups) {
  constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  struct Way {
    std::int64_t peak, inner, kept;
    std::uint32_t saved;  // newest link of the groups it saves
    bool any() const { return saved != kNone; }
  };
  struct Link {
    std::uint32_t group, before;
  };
  std::vector<Way> ways;
  std::vector<Link> links;
  std::int64_t own = arc.tail_bytes;
  std::int64_t forward = kNoPeak;
  if (!arc.before.empty()) {
    own = std::max(own, arc.before.back().recompute_bytes);
    forward = arc.before.back().forward_bytes;
  }
  ways.push_back({std::max(after == kNoPeak ? kNoPeak : after + arc.keep_bytes, forward), own, 0, kNone});
  for (std::size_t j = arc.groups.size(); j-- > 0;) {
    const ArcGroup& group = arc.groups[j];
    std::vector<Way> next;
    const auto add = [&](Way way) {
      if (arc.before[j].recompute_bytes != kNoPeak)
        way.inner = std::max(way.inner, arc.before[j].recompute_bytes + way.kept);
      way.peak = std::max(way.peak, arc.before[j].forward_bytes);
      for (const Way& other : next)
        if (other.peak <= way.peak && other.inner <= way.inner && other.kept <= way.kept && other.any() >= way.any())
          return;
      std::erase_if(next, [&](const Way& other) {
        return way.peak <= other.peak && way.inner <= other.inner && way.kept <= other.kept && way.any() >= other.any();
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
      links.push_back({static_cast<std::uint32_t>(j), way.saved});
      saved.saved = static_cast<std::uint32_t>(links.size()) - 1;
      add(saved);
    }
    ways = std::move(next);
  }
  std::int64_t best = kNoPath;
  std::uint32_t best_saved = kNone;
  for (const Way& way : ways) {
    const std::int64_t peak = std::max({way.peak, way.inner, own});
    if ((arc.needs_saved && !way.any()) || peak >= best) continue;
    best = peak;
    best_saved = way.saved;
  }
  if (saved_groups != nullptr) {
    saved_groups->clear();
    for (std::uint32_t link = best_saved; link != kNone; link = links[link].before)
      saved_groups->push_back(links[link].group);  // the first group was added last
  }
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

Path floor_path(const Episode& episode, const std::vector<std::int64_t>& floors) {
  struct Choice {
    Int128 ps = kFarPs;
    ArcUse use;
  };
  std::vector<Choice> choices(episode.state_count);
  choices.back().ps = 0;
  std::vector<std::uint32_t> saved;
  for (std::uint32_t state = episode.state_count - 1; state-- > 0;)
    for (std::uint32_t a = episode.first_arc[state]; a < episode.first_arc[state + 1]; ++a) {
      const Arc& arc = episode.arcs[a];
      if (floors[arc.to] == kNoPath || floor_of(arc, floors[arc.to], &saved) != floors[state]) continue;
      Int128 ps = choices[arc.to].ps + arc.base_ps;
      for (const ArcGroup& group : arc.groups) ps += group.time_ps;
      for (const std::uint32_t group : saved) ps -= arc.groups[group].time_ps;
      if (ps < choices[state].ps) choices[state] = {ps, {a, saved}};
    }
  Path path;
  for (std::uint32_t state = 0; state + 1 < episode.state_count; state = episode.arcs[path.back().arc].to)
    path.push_back(choices[state].use);
  return path;
}

}  // namespace tidemark::planner
