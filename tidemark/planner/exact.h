#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tidemark/planner/path.h"
#include "tidemark/planner/problem.h"
#include "tidemark/planner/space.h"

namespace tidemark::planner {

// The cheapest path through a problem under a budget: sweeps from the last state to the first (sweep.h) with rising
// targets, until one is met. For each target, prices leave out what cannot be part of such a path (narrow.h), and where
// too many paths look alike, whole groups tell them apart (residues.h, lattice.h). docs/how_plans_are_found.md has the
// proofs.

struct ExactOptions {
  std::int64_t budget_bytes = 0;
  std::int64_t max_work = 50'000'000;   // entries of lists, in all
  std::int64_t parts_work = 500'000;    // of one pass with bounds of parts; with more, sharper ones are worth theirs
  std::int64_t max_cells = 40'000'000;  // of those, in memory at a time
};

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

// The same of one episode.
struct EpisodeSolution {
  std::optional<Path> path;
  std::int64_t ps = 0;
  std::int64_t bound_ps = 0;
  bool is_limit = false;
};

// A problem with its smallest peaks, for many budgets.
class ExactSolver {
 public:
  explicit ExactSolver(Problem problem);

  const Problem& problem() const { return problem_; }
  // The smallest peak of any path, or less where arcs of the forward count, too.
  std::int64_t smallest_peak_bytes() const { return smallest_peak_bytes_; }
  Solution solve(const ExactOptions& options) const;
  // Paths of low peaks, each one by episode: the first has the lowest; where there are arcs of the forward, too, others
  // have the lowest there.
  std::vector<std::vector<Path>> smallest_paths() const;

 private:
  EpisodeSolution solve_episode(std::size_t episode, const ExactOptions& options, SolveStatistics& statistics) const;

  Problem problem_;
  std::vector<std::vector<std::int64_t>> floors_;  // by episode and state: the smallest peak from there
  std::vector<std::size_t> same_as_;               // by episode: the first one that is like it, perhaps itself
  std::int64_t smallest_peak_bytes_ = 0;
};

// The plan that paths through a problem mean, one path per episode.
plan::Plan plan_of(const Space& space, const Problem& problem, const std::vector<Path>& paths);

}  // namespace tidemark::planner
