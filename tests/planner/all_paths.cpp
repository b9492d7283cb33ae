#include "all_paths.h"

#include <vector>

namespace tidemark::test {

namespace {

using planner::Arc;
using planner::Episode;
using planner::Path;

void go_on(const Episode& episode, std::uint32_t state, Path& path, const std::function<void(const Path&)>& visit) {
  if (state + 1 == episode.state_count) return visit(path);
  for (std::uint32_t a = episode.first_arc[state]; a < episode.first_arc[state + 1]; ++a) {
    const Arc& arc = episode.arcs[a];
    for (std::uint32_t set = arc.needs_saved ? 1 : 0; set < 1u << arc.groups.size(); ++set) {
      planner::ArcUse use{a, {}};
      for (std::uint32_t g = 0; g < arc.groups.size(); ++g)
        if ((set >> g & 1) != 0) use.saved.push_back(g);
      path.push_back(use);
      go_on(episode, arc.to, path, visit);
      path.pop_back();
    }
  }
}

}  // namespace

void for_each_path(const Episode& episode, const std::function<void(const Path&)>& visit) {
  Path path;
  go_on(episode, 0, path, visit);
}

std::int64_t path_count(const Episode& episode) {
  std::vector<std::int64_t> counts(episode.state_count, 0);
  counts.back() = 1;
  for (std::uint32_t state = episode.state_count - 1; state-- > 0;)
    for (std::uint32_t a = episode.first_arc[state]; a < episode.first_arc[state + 1]; ++a)
      counts[state] += counts[episode.arcs[a].to] << episode.arcs[a].groups.size();
  return counts[0];
}

}  // namespace tidemark::test
