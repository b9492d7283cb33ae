#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tidemark/planner/problem.h"
#include "tidemark/planner/space.h"

namespace tidemark::planner {

// The cheapest path through a problem under a budget, by a sweep from the last state to the first. A path from a state
// to the end is told by two numbers, its peak relative to what is kept before and its time; those that are worse in
// both are dropped, and so are those that cannot become cheap enough: a convex function per state says how little the
// way there costs at least. The whole is repeated with rising targets until one is met. docs/how_plans_are_found.md has
// the proofs.

struct ExactOptions {
  std::int64_t budget_bytes = 0;
  std::int64_t max_work = 50'000'000;  // entries of lists, in all
};

// One step of a path.
struct ArcUse {
  std::uint32_t arc = 0;
  std::vector<std::uint32_t> saved;  // of the arc's groups, ascending

  friend bool operator==(const ArcUse&, const ArcUse&) = default;
};
using Path = std::vector<ArcUse>;

enum class SolveEnd : std::uint8_t {
  kOptimal,
  kInfeasible,
  kLimit,  // `path`, if there is one, fits; `bound_ps` holds
};

struct SolveStatistics {
  std::int64_t work = 0;    // entries made
  std::int64_t passes = 0;  // sweeps
  std::int64_t longest_list = 0;
};

struct Solution {
  SolveEnd end = SolveEnd::kInfeasible;
  std::vector<Path> paths;  // by episode; empty without one
  std::int64_t time_ps = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t bound_ps = 0;  // no path that fits is faster
  std::int64_t smallest_peak_bytes = 0;
  SolveStatistics statistics;
};

// A problem with its smallest peaks, for many budgets.
class ExactSolver {
 public:
  explicit ExactSolver(Problem problem);

  const Problem& problem() const { return problem_; }
  // The smallest peak of any path.
  std::int64_t smallest_peak_bytes() const { return smallest_peak_bytes_; }
  Solution solve(const ExactOptions& options) const;
  // A path with that peak, the cheapest of them within the work limit.
  Solution solve_smallest(std::int64_t max_work) const;

 private:
  Problem problem_;
  std::vector<std::vector<std::int64_t>> floors_;  // by episode and state: the smallest peak from there
  std::int64_t smallest_peak_bytes_ = 0;
};

// What a path means.
struct PathFigures {
  std::int64_t peak_bytes = 0;
  std::int64_t time_ps = 0;
  std::int64_t kept_bytes = 0;
};
PathFigures measure(const Episode& episode, const Path& path);

// The plan that paths through a problem mean, one path per episode.
plan::Plan plan_of(const Space& space, const Problem& problem, const std::vector<Path>& paths);

}  // namespace tidemark::planner
