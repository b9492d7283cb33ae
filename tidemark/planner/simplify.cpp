#include "tidemark/planner/simplify.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tidemark/planner/floors.h"

namespace tidemark::planner {

namespace {

void forget_what_cannot_matter(Arc& arc, std::int64_t after) {
  const std::int64_t least = after == kNoPeak ? kNoPeak : after + arc.keep_bytes;
  const auto forget = [&](std::int64_t& peak) {
    if (peak <= least) peak = kNoPeak;
  };
  forget(arc.tail_bytes);
  for (ArcGap& gap : arc.before) {
    forget(gap.recompute_bytes);
    forget(gap.forward_bytes);
  }
  for (ArcGroup& group : arc.groups) forget(group.inside_bytes);
}

bool does_nothing(const Arc& arc) {
  return !arc.is_unit() && arc.keep_bytes == 0 && arc.base_ps == 0 && arc.tail_bytes == kNoPeak && arc.groups.empty() &&
         std::all_of(arc.before.begin(), arc.before.end(), [](const ArcGap& gap) { return gap == ArcGap{}; });
}

// Everything about an arc but where it begins.
void write(const Arc& arc, std::vector<std::int64_t>& key) {
  key.insert(key.end(), {arc.to, arc.candidate, arc.needs_saved ? 1 : 0, arc.keep_bytes, arc.base_ps, arc.tail_bytes,
                         static_cast<std::int64_t>(arc.groups.size()), static_cast<std::int64_t>(arc.before.size()),
                         static_cast<std::int64_t>(arc.always_saved.size())});
  for (const ArcGroup& group : arc.groups)
    key.insert(key.end(), {group.bytes, group.time_ps, group.inside_bytes, group.choice});
  for (const ArcGap& gap : arc.before) key.insert(key.end(), {gap.recompute_bytes, gap.forward_bytes});
  key.insert(key.end(), arc.always_saved.begin(), arc.always_saved.end());
}

struct KeyHash {
  std::size_t operator()(const std::vector<std::int64_t>& key) const {
    std::uint64_t hash = 0x9E3779B97F4A7C15u;
    for (const std::int64_t value : key) {
      hash ^= static_cast<std::uint64_t>(value);
      hash *= 0xFF51AFD7ED558CCDu;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

}  // namespace

void simplify(Episode& episode) {
  const std::vector<std::int64_t> floors = find_floors(episode);
  const std::uint32_t last = episode.state_count - 1;
  // By state: the one that stands for it, never an earlier one, so that arcs still lead to later states.
  std::vector<std::uint32_t> stands(episode.state_count, last);
  std::unordered_map<std::vector<std::int64_t>, std::uint32_t, KeyHash> known;
  for (std::uint32_t state = last; state-- > 0;) {
    std::vector<std::int64_t> key;
    const std::uint32_t begin = episode.first_arc[state];
    const std::uint32_t end = episode.first_arc[state + 1];
    for (std::uint32_t a = begin; a < end; ++a) {
      Arc& arc = episode.arcs[a];
      if (floors[arc.to] != kNoPath) forget_what_cannot_matter(arc, floors[arc.to]);
      arc.to = stands[arc.to];
      write(arc, key);
    }
    if (end - begin == 1 && does_nothing(episode.arcs[begin]))
      stands[state] = episode.arcs[begin].to;
    else
      stands[state] = known.emplace(std::move(key), state).first->second;
  }

  // Numbered anew in the same order, as far as they can be reached.
  std::vector<std::uint8_t> is_reached(episode.state_count, 0);
  is_reached[stands[0]] = 1;
  is_reached[last] = 1;
  std::vector<std::uint32_t> number(episode.state_count, 0);
  Episode result;
  result.state_count = 0;
  for (std::uint32_t state = 0; state <= last; ++state) {
    if (is_reached[state] == 0) continue;
    number[state] = result.state_count++;
    result.first_arc.push_back(static_cast<std::uint32_t>(result.arcs.size()));
    if (state == last) break;
    for (std::uint32_t a = episode.first_arc[state]; a < episode.first_arc[state + 1]; ++a) {
      is_reached[episode.arcs[a].to] = 1;
      result.arcs.push_back(std::move(episode.arcs[a]));
      result.arcs.back().from = number[state];
    }
  }
  result.first_arc.push_back(static_cast<std::uint32_t>(result.arcs.size()));
  for (Arc& arc : result.arcs) arc.to = number[arc.to];
  episode = std::move(result);
}

}  // namespace tidemark::planner
