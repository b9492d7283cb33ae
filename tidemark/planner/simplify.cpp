#include "tidemark/planner/simplify.h"

#include <algorithm>
#include <array>
#include <span>
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

// `sides` have the same states and arcs but for bytes.
void simplify(std::span<Episode* const> sides) {
  const Episode& first = *sides[0];
  std::vector<std::vector<std::int64_t>> floors;
  for (const Episode* side : sides) floors.push_back(find_floors(*side));
  const std::uint32_t last = first.state_count - 1;
  // By state: the one that stands for it, never an earlier one, so that arcs still lead to later states.
  std::vector<std::uint32_t> stands(first.state_count, last);
  std::unordered_map<std::vector<std::int64_t>, std::uint32_t, KeyHash> known;
  for (std::uint32_t state = last; state-- > 0;) {
    std::vector<std::int64_t> key;
    const std::uint32_t begin = first.first_arc[state];
    const std::uint32_t end = first.first_arc[state + 1];
    bool is_nothing = end - begin == 1;
    for (std::uint32_t a = begin; a < end; ++a)
      for (std::size_t i = 0; i < sides.size(); ++i) {
        Arc& arc = sides[i]->arcs[a];
        if (floors[i][arc.to] != kNoPath) forget_what_cannot_matter(arc, floors[i][arc.to]);
        arc.to = stands[arc.to];
        write(arc, key);
        is_nothing = is_nothing && does_nothing(arc);
      }
    stands[state] = is_nothing ? first.arcs[begin].to : known.emplace(std::move(key), state).first->second;
  }

  // Numbered anew in the same order, as far as they can be reached.
  std::vector<std::uint8_t> is_reached(first.state_count, 0);
  is_reached[stands[0]] = 1;
  is_reached[last] = 1;
  std::vector<std::uint32_t> number(first.state_count, 0);
  std::vector<Episode> results(sides.size());
  for (Episode& result : results) result.state_count = 0;
  for (std::uint32_t state = 0; state <= last; ++state) {
    if (is_reached[state] == 0) continue;
    number[state] = results[0].state_count;
    for (std::uint32_t a = first.first_arc[state]; state < last && a < first.first_arc[state + 1]; ++a)
      is_reached[first.arcs[a].to] = 1;
    for (std::size_t i = 0; i < sides.size(); ++i) {
      ++results[i].state_count;
      results[i].first_arc.push_back(static_cast<std::uint32_t>(results[i].arcs.size()));
      for (std::uint32_t a = first.first_arc[state]; state < last && a < first.first_arc[state + 1]; ++a) {
        results[i].arcs.push_back(std::move(sides[i]->arcs[a]));
        results[i].arcs.back().from = number[state];
      }
    }
  }
  for (std::size_t i = 0; i < sides.size(); ++i) {
    results[i].first_arc.push_back(static_cast<std::uint32_t>(results[i].arcs.size()));
    for (Arc& arc : results[i].arcs) arc.to = number[arc.to];
  }
  for (std::size_t i = 0; i < sides.size(); ++i) *sides[i] = std::move(results[i]);
}

}  // namespace

void simplify(Episode& episode) { simplify(std::array{&episode}); }

void simplify(Episode& episode, Episode& forward) { simplify(std::array{&episode, &forward}); }

}  // namespace tidemark::planner
