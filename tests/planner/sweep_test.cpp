#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "../support/random.h"
#include "tidemark/planner/exact.h"

// The solver on graphs made at random, where everything that may bind does: against all paths with all sets of groups.

namespace tidemark::planner {
namespace {

std::int64_t number(test::Random& random, int scale) {
  return scale == 0 ? random.between(0, 3) : random.between(0, scale == 1 ? 20 : 1000);
}

Arc random_arc(test::Random& random, std::uint32_t from, std::uint32_t to, int scale) {
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

Episode random_episode(test::Random& random) {
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

void for_each_path(const Episode& episode, std::uint32_t state, Path& path,
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

std::int64_t path_count(const Episode& episode) {
  std::vector<std::int64_t> counts(episode.state_count, 0);
  counts.back() = 1;
  for (std::uint32_t state = episode.state_count - 1; state-- > 0;)
    for (std::uint32_t a = episode.first_arc[state]; a < episode.first_arc[state + 1]; ++a)
      counts[state] += counts[episode.arcs[a].to] << episode.arcs[a].groups.size();
  return counts[0];
}

void check(std::uint64_t seed) {
  test::Random random(seed);
  const Episode episode = random_episode(random);
  if (path_count(episode) > 20000) return;
  std::vector<PathFigures> all;
  Path path;
  for_each_path(episode, 0, path, [&](const Path& p) { all.push_back(measure(episode, p)); });
  std::set<std::int64_t> peaks;
  for (const PathFigures& one : all) peaks.insert(one.peak_bytes);
  Problem problem;
  problem.episodes.push_back(episode);
  problem.ground_bytes = kNoPeak;
  const ExactSolver solver(problem);
  ASSERT_EQ(solver.smallest_peak_bytes(), *peaks.begin()) << "seed " << seed;
  std::int64_t tried = 0;
  for (const std::int64_t peak : peaks)
    for (const std::int64_t budget : {peak - 1, peak}) {
      if (++tried > 60) return;
      const PathFigures* best = nullptr;
      for (const PathFigures& one : all)
        if (one.peak_bytes <= budget && (best == nullptr || one.time_ps < best->time_ps)) best = &one;
      // With the lattice from the first entry on, with one whose unit is so large that most groups are remainders, and
      // without it.
      for (const auto& [lattice_after, lattice_cells] :
           {std::pair<std::int64_t, std::int64_t>{0, 1'000'000}, {0, 12}, {500'000, 1}}) {
        const Solution s =
            solver.solve({.budget_bytes = budget, .lattice_after = lattice_after, .lattice_cells = lattice_cells});
        ASSERT_EQ(s.end == SolveEnd::kInfeasible, best == nullptr) << "seed " << seed << " budget " << budget;
        if (best == nullptr) continue;
        ASSERT_EQ(s.end, SolveEnd::kOptimal);
        ASSERT_EQ(s.time_ps, best->time_ps) << "seed " << seed << " budget " << budget;
        ASSERT_EQ(s.bound_ps, best->time_ps);
        const PathFigures found = measure(solver.problem().episodes[0], s.paths[0]);
        ASSERT_LE(found.peak_bytes, budget) << "seed " << seed;
        ASSERT_EQ(found.time_ps, s.time_ps) << "seed " << seed;
      }
    }
}

TEST(Sweep, EqualsAllPaths) {
  const std::uint64_t count = std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 200'000 : 400;
  for (std::uint64_t seed = 1; seed <= count && !HasFatalFailure(); ++seed) check(seed);
}

}  // namespace
}  // namespace tidemark::planner
