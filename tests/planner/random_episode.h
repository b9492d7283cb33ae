#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "../support/random.h"
#include "tidemark/planner/path.h"
#include "tidemark/planner/problem.h"

// Graphs made at random, in which everything that may bind does, and all their paths.

namespace tidemark::planner {

inline std::int64_t number(test::Random& random, int scale) {
  return scale == 0 ? random.between(0, 3) : random.between(0, scale == 1 ? 20 : 1000);
}

inline Arc random_arc(test::Random& random, std::uint32_t from, std::uint32_t to, int scale) {
  Arc arc;
  arc.from = from;
  arc.to = to;
  arc.keep_bytes = number(random, scale);
  arc.tail_bytes = number(random, scale) * random.between(1, 4);
  if (random.chance(30)) return arc;
  arc.candidate = 0;
  arc.base_ps = number(random, scale);
  const std::int64_t groups = random.between(0, 5);
  for (std::int64_t i = 0; i < groups; ++i)
    arc.groups.push_back({number(random, scale), number(random, scale),
                          random.chance(30) ? number(random, scale) * random.between(1, 5) : kNoPeak, 0});
  arc.before.resize(arc.groups.size() + 1);
  for (ArcGap& gap : arc.before) {
    if (random.chance(40)) gap.recompute_bytes = number(random, scale) * random.between(1, 5);
    if (random.chance(20)) gap.forward_bytes = number(random, scale) * random.between(1, 5);
  }
  arc.needs_saved = groups > 0 && random.chance(10);
  return arc;
}

inline Episode random_episode(test::Random& random) {
  Episode episode;
  const int scale = static_cast<int>(random.below(3));
  episode.state_count = static_cast<std::uint32_t>(random.between(2, 5));
  for (std::uint32_t state = 0; state + 1 < episode.state_count; ++state) {
    Arc plain = random_arc(random, state, state + 1, scale);
    plain.needs_saved = false;
    episode.arcs.push_back(plain);
    for (std::int64_t i = random.between(0, 2); i > 0; --i)
      episode.arcs.push_back(random_arc(
          random, state, static_cast<std::uint32_t>(random.between(state + 1, episode.state_count - 1)), scale));
  }
  episode.first_arc.assign(episode.state_count + 1, 0);
  for (const Arc& arc : episode.arcs) ++episode.first_arc[arc.from + 1];
  for (std::uint32_t i = 0; i < episode.state_count; ++i) episode.first_arc[i + 1] += episode.first_arc[i];
  return episode;
}

inline void for_each_path(const Episode& episode, std::uint32_t state, Path& path,
                          const std::function<void(const Path&)>& visit) {
  if (state + 1 == episode.state_count) return visit(path);
  for (std::uint32_t a = episode.first_arc[state]; a < episode.first_arc[state + 1]; ++a) {
    const Arc& arc = episode.arcs[a];
    for (std::uint32_t bits = 0; bits < (1u << arc.groups.size()); ++bits) {
      if (arc.needs_saved && bits == 0) continue;
      ArcUse use{a, {}};
      for (std::uint32_t j = 0; j < arc.groups.size(); ++j)
        if ((bits >> j & 1) != 0) use.saved.push_back(j);
      path.push_back(use);
      for_each_path(episode, arc.to, path, visit);
      path.pop_back();
    }
  }
}

inline std::int64_t path_count(const Episode& episode) {
  std::vector<std::int64_t> counts(episode.state_count, 0);
  counts.back() = 1;
  for (std::uint32_t state = episode.state_count - 1; state-- > 0;)
    for (std::uint32_t a = episode.first_arc[state]; a < episode.first_arc[state + 1]; ++a)
      counts[state] += counts[episode.arcs[a].to] << episode.arcs[a].groups.size();
  return counts[0];
}

}  // namespace tidemark::planner
