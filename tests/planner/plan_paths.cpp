#include "plan_paths.h"

#include <algorithm>
#include <utility>

namespace tidemark::test {

using namespace planner;
using step::OpId;

std::optional<std::vector<Path>> paths_of(const Space& space, const Problem& problem, const plan::Plan& plan) {
  std::vector<Path> paths;
  std::size_t units = 0;
  for (const Episode& episode : problem.episodes) {
    Path path;
    for (std::uint32_t state = 0; state + 1 < episode.state_count;) {
      std::optional<ArcUse> chosen;
      bool is_unit = false;
      for (std::uint32_t a = episode.first_arc[state]; a < episode.first_arc[state + 1]; ++a) {
        const Arc& arc = episode.arcs[a];
        if (!arc.is_unit()) {
          if (!is_unit) chosen = ArcUse{a, {}};
          continue;
        }
        const Candidate& c = space.candidates[arc.candidate];
        const auto unit =
            std::find_if(plan.units.begin(), plan.units.end(), [&](const plan::Unit& u) { return u.call == c.call; });
        if (unit == plan.units.end()) continue;
        if (!is_unit) chosen.reset();
        is_unit = true;
        ArcUse use{a, {}};
        std::vector<std::uint8_t> saved(c.choices.size(), 0);
        for (const std::uint32_t choice : arc.always_saved) saved[choice] = 1;
        for (std::uint32_t j = 0; j < arc.groups.size(); ++j) {
          const OpId first = c.choices[arc.groups[j].choice].savers.front();
          if (unit->decision(first) != plan::Decision::kSave) continue;
          use.saved.push_back(j);
          saved[arc.groups[j].choice] = 1;
        }
        if (make_unit(c, saved) == *unit && (!arc.needs_saved || !use.saved.empty())) chosen = use;
      }
      if (!chosen) return std::nullopt;
      if (is_unit) ++units;
      path.push_back(*chosen);
      state = episode.arcs[chosen->arc].to;
    }
    paths.push_back(std::move(path));
  }
  if (units != plan.units.size()) return std::nullopt;
  return paths;
}

std::optional<PathFigures> model_of_plan(const Space& space, const Problem& problem, const plan::Plan& plan) {
  const auto paths = paths_of(space, problem, plan);
  if (!paths) return std::nullopt;
  PathFigures sum{.peak_bytes = problem.ground_bytes};
  for (std::size_t i = 0; i < paths->size(); ++i) {
    const PathFigures figures = measure(problem.episodes[i], (*paths)[i]);
    sum.peak_bytes = std::max(sum.peak_bytes, figures.peak_bytes);
    sum.time_ps += figures.time_ps;
    sum.kept_bytes += figures.kept_bytes;
    if (!problem.forward_episodes.empty())
      sum.peak_bytes = std::max(sum.peak_bytes, measure(problem.forward_episodes[i], (*paths)[i]).peak_bytes);
  }
  return sum;
}

}  // namespace tidemark::test
