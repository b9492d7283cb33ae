#include <gtest/gtest.h>

#include <algorithm>

#include "../support/random.h"
#include "tidemark/planner/exact.h"

// n equal layers: "none" keeps K bytes, "full" keeps nothing and takes T; the backward of a layer needs tau >= K bytes
// beside what earlier layers keep and g for the gradient of every later layer; at the end the loss needs L.
//
// By hand: keeping m layers, the loss needs m K + L <= B. The last of them has m - 1 before it, so that its backward
// needs tau + (m - 1) K <= B: its own K lies within tau. Both suffice when the last m layers keep: the j-th of them has
// tau + j K + (m - 1 - j) g, which is largest at an end, and tau + (m - 1) g is no more than the first layer needs
// anyway, tau + (n - 1) g. So a plan exists iff B >= max(L, tau + (n - 1) g), and the least time is
// (n - min(n, floor((B - L) / K), floor((B - tau) / K) + 1)) T.

namespace tidemark::planner {
namespace {

Problem homogeneous(int layers, std::int64_t kept, std::int64_t time, std::int64_t tau, std::int64_t loss,
                    std::int64_t gradient) {
  Episode episode;
  episode.state_count = static_cast<std::uint32_t>(layers) + 2;
  for (std::uint32_t i = 0; i + 1 < episode.state_count; ++i) {
    episode.first_arc.push_back(static_cast<std::uint32_t>(episode.arcs.size()));
    Arc arc;
    arc.from = i;
    arc.to = i + 1;
    if (i == static_cast<std::uint32_t>(layers)) {
      arc.tail_bytes = loss;
      episode.arcs.push_back(arc);
      continue;
    }
    arc.tail_bytes = tau + gradient * (layers - 1 - static_cast<std::int64_t>(i));
    arc.keep_bytes = kept;
    episode.arcs.push_back(arc);
    arc.candidate = 0;
    arc.keep_bytes = 0;
    arc.base_ps = time;
    arc.before.resize(1);
    episode.arcs.push_back(arc);
  }
  episode.first_arc.push_back(static_cast<std::uint32_t>(episode.arcs.size()));
  episode.first_arc.push_back(static_cast<std::uint32_t>(episode.arcs.size()));
  Problem problem;
  problem.episodes.push_back(episode);
  return problem;
}

TEST(Homogeneous, TheClosedForm) {
  std::int64_t infeasible = 0;
  std::int64_t last_is_free = 0;
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    test::Random random(seed);
    const int layers = static_cast<int>(random.between(1, 24));
    const std::int64_t kept = random.between(1, 50);
    const std::int64_t time = random.between(1, 50);
    const std::int64_t tau = kept + random.between(0, 100);
    const std::int64_t loss = random.between(0, 200);
    const std::int64_t gradient = random.chance(30) ? 0 : random.between(0, 60);
    const std::int64_t floor = std::max(loss, tau + (layers - 1) * gradient);
    const std::int64_t budget = random.between(floor / 2, floor + layers * kept);
    const ExactSolver solver(homogeneous(layers, kept, time, tau, loss, gradient));
    ASSERT_EQ(solver.smallest_peak_bytes(), floor);
    const Solution solution = solver.solve({.budget_bytes = budget});
    if (budget < floor) {
      ASSERT_EQ(solution.end, SolveEnd::kInfeasible) << seed;
      ++infeasible;
      continue;
    }
    const std::int64_t by_loss = (budget - loss) / kept;
    const std::int64_t by_backward = (budget - tau) / kept + 1;
    const std::int64_t keeping = std::min({static_cast<std::int64_t>(layers), by_loss, by_backward});
    last_is_free += keeping == by_backward ? 1 : 0;
    ASSERT_EQ(solution.end, SolveEnd::kOptimal) << seed;
    ASSERT_EQ(solution.time_ps, (layers - keeping) * time) << seed;
  }
  EXPECT_GT(infeasible, 1000);
  EXPECT_GT(last_is_free, 1000);
}

}  // namespace
}  // namespace tidemark::planner
