#include "tidemark/planner/residues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "all_paths.h"
#include "random_problem.h"
#include "tidemark/planner/floors.h"
#include "tidemark/planner/ways.h"

// What residues say of ways, against all of them.

namespace tidemark::planner {
namespace {

void index_arcs(Episode& episode) {
  episode.first_arc.assign(episode.state_count + 1, 0);
  for (const Arc& arc : episode.arcs) ++episode.first_arc[arc.from + 1];
  for (std::uint32_t i = 0; i < episode.state_count; ++i) episode.first_arc[i + 1] += episode.first_arc[i];
}

constexpr std::int64_t kPs = 1'000'000;  // prices come from whole numbers of ps, of which there should be some

// The same layer over and over: kept as it is, or run again with some of its groups saved. Nothing but the sum of what
// is kept matters, up to the last arc.
Episode equal_layers(test::Random& random, std::uint32_t layers) {
  Episode episode;
  episode.state_count = layers + 2;
  Arc plain;
  plain.keep_bytes = random.between(20, 60);
  Arc unit;
  unit.candidate = 0;
  unit.keep_bytes = random.between(0, 6);
  unit.base_ps = kPs * random.between(5, 50);
  for (std::int64_t i = random.between(1, 3); i > 0; --i)
    unit.groups.push_back({random.between(1, 12), kPs * random.between(1, 60), kNoPeak, 0});
  unit.before.resize(unit.groups.size() + 1);
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    for (Arc arc : {plain, unit}) {
      arc.from = layer;
      arc.to = layer + 1;
      episode.arcs.push_back(arc);
    }
  Arc last;
  last.from = layers;
  last.to = layers + 1;
  last.tail_bytes = random.between(0, 10);
  episode.arcs.push_back(last);
  index_arcs(episode);
  return episode;
}

struct Tally {
  int all = 0;
  int used = 0;   // there were residues
  int sharp = 0;  // and they said more than parts of groups do
  int exact = 0;  // and were the optimum
};

void check(const Episode& episode, std::int64_t budget, Tally& tally, std::uint64_t seed) {
  const std::vector<std::int64_t> floors = find_floors(episode);
  if (floors[0] > budget) return;
  const Bounds bounds(episode, floors, budget,
                      find_prices(episode, floors, budget, find_ways(episode, floors, budget)));
  std::optional<Residues> residues = Residues::make(episode, floors, budget, bounds, {.max_cells = 1'000'000});
  if (bounds.prices()[0] == 0) return;
  ++tally.all;
  if (!residues) return;
  ++tally.used;
  std::int64_t best = Convex::kNotEnough;
  test::for_each_path(episode, [&](const Path& p) {
    const PathFigures all = measure(episode, p);
    if (all.peak_bytes > budget) return;
    best = std::min(best, all.time_ps);
    Path way;
    for (const ArcUse& use : p) {
      way.push_back(use);
      const PathFigures one = measure(episode, way);
      const std::uint32_t state = episode.arcs[use.arc].to;
      if (state + 1 == episode.state_count) break;
      ASSERT_LE(residues->to_state(state, one.kept_bytes), one.time_ps) << "seed " << seed << " budget " << budget;
    }
  });
  ASSERT_LE(residues->bound_ps(), best) << "seed " << seed << " budget " << budget;
  tally.sharp += residues->bound_ps() > bounds.bound_ps() ? 1 : 0;
  tally.exact += residues->bound_ps() == best ? 1 : 0;
}

TEST(Residues, AreBelowAllPaths) {
  const std::uint64_t count = std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 100'000 : 1000;
  Tally tally;
  for (std::uint64_t seed = 1; seed <= count && !HasFatalFailure(); ++seed) {
    test::Random random(seed);
    const Episode episode = test::random_episode(random, {.most = random.pick<std::int64_t>({3, 20, 1000})});
    if (test::path_count(episode) > 5000) continue;
    const std::int64_t floor = find_floors(episode)[0];
    for (int i = 0; i < 3 && !HasFatalFailure(); ++i) check(episode, floor + random.between(0, 60), tally, seed);
  }
  EXPECT_GT(tally.used * 20, tally.all);
}

TEST(Residues, AreSharpWhereLayersAreEqual) {
  const std::uint64_t count = std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 20'000 : 150;
  Tally tally;
  for (std::uint64_t seed = 1; seed <= count && !HasFatalFailure(); ++seed) {
    test::Random random(seed);
    const auto layers = static_cast<std::uint32_t>(random.between(3, 5));
    const Episode episode = equal_layers(random, layers);
    if (test::path_count(episode) > 60'000) continue;
    const std::int64_t floor = find_floors(episode)[0];
    for (int i = 0; i < 3 && !HasFatalFailure(); ++i) check(episode, floor + random.between(10, 120), tally, seed);
  }
  std::printf("%d budgets, %d with residues, %d of them sharper than parts of groups, %d the optimum\n", tally.all,
              tally.used, tally.sharp, tally.exact);
  EXPECT_GT(tally.used * 2, tally.all);
  EXPECT_GT(tally.sharp * 2, tally.used);
  EXPECT_GT(tally.exact * 2, tally.used);
}

}  // namespace
}  // namespace tidemark::planner
