#include "tidemark/planner/exact.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tidemark/planner/convex.h"
#include "tidemark/planner/floors.h"
#include "tidemark/planner/lattice.h"
#include "tidemark/planner/narrow.h"
#include "tidemark/planner/residues.h"
#include "tidemark/planner/simplify.h"
#include "tidemark/planner/sweep.h"
#include "tidemark/planner/two_sides.h"
#include "tidemark/planner/ways.h"

namespace tidemark::planner {

namespace {

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kBeam = 64;               // entries of the lists of a quick pass
constexpr std::size_t kWideBeam = 64;           // and where every path counts
constexpr std::int64_t kBeamWork = 10'000'000;  // that a quick pass gets in any case
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;
constexpr std::int64_t kCellsPerEntry = 64;             // cells take so much less time than entries
constexpr std::int64_t kFree = Convex::kNotEnough - 1;  // the target that leaves nothing out
// Targets are above the bound by one part in so many: at first; with residues, far from the optimum and near it; and in
// single passes.
constexpr std::int64_t kFirstStep = 4096;
constexpr std::int64_t kLeastStep = 100'000;
constexpr std::int64_t kCoarseStep = 256;
constexpr std::int64_t kCoarseWork = 4;  // times as much for a pass that may show that a path in hand is the cheapest
constexpr std::int64_t kBackStep = 8;    // back from a target that was too far, to one part in so many of the way
constexpr std::int64_t kFarStep = 256;
constexpr std::int64_t kNearStep = 1 << 11;
constexpr std::int64_t kFineStep = 1 << 20;
constexpr std::int64_t kLatticeStep = 4096;  // with a lattice, passes rise by so much less than targets
// With residues, passes that are longer than this are left to a lattice, unless all that is open is one part in so
// many.
constexpr std::int64_t kModerateWork = 2'000'000;
constexpr std::int64_t kCloseStep = 1 << 13;
constexpr std::int64_t kUselessStep = 1024;  // residues whose bound is lower than that of parts by one part in so many
constexpr std::int64_t kFarShare = 4;        // far from the optimum, a coarser ring will do
constexpr std::int64_t kLongEpisode = 4096;  // states; entries of longer ones take longer, since less is in caches

// What paths up to a target may use of an episode.
struct Reach {
  Narrowed narrowed;
  std::vector<std::int64_t> floors;
  std::vector<Convex> ways;  // by state; none until a pass needs them
};

// The search in one episode. Everything found so far is between `bound_ps` and `ps`.
class Search {
 public:
  Search(const Episode& episode, const std::vector<std::int64_t>& floors, const ExactOptions& options,
         SolveStatistics& statistics)
      : budget_(options.budget_bytes),
        max_work_(options.max_work),
        parts_work_(options.parts_work),
        max_cells_(options.max_cells),
        statistics_(statistics),
        bounds_(episode, floors, budget_, find_prices(episode, floors, budget_, find_ways(episode, floors, budget_))),
        bound_ps_(bounds_.bound_ps()) {}

  void run() {
    enum class Stage : std::uint8_t { kParts, kFar, kNear, kLattice } stage = Stage::kParts;
    std::int64_t parts_step = 0;
    std::int64_t step = std::max(kLeastStep, bound_ps_ / kFirstStep);
    while (bound_ps_ < ps_) {
      const std::int64_t target = std::min(bound_ps_ + step, ps_ - 1);
      step *= 2;
      Reach reach = reach_of(target);
      if (reach.floors[0] > budget_) {
        raise_bound(std::max(target + 1, reach.narrowed.next_ps));
        continue;
      }
      if (stage == Stage::kParts) {
        parts_step = step;
        const bool is_coarse = target - bound_ps_ > bound_ps_ / kCoarseStep;
        const std::int64_t parts_work = is_coarse && path_ ? kCoarseWork * parts_work_ : parts_work_;
        if (try_target(reach, target, std::min(left(), parts_work))) continue;
        // A target far above the bound has many paths below it that one closer to the answer leaves out.
        if (is_coarse && left() > 0) {
          if (!path_) sweep(reach, nullptr, target, kBeam, std::max(left(), kBeamWork));
          step = (target - bound_ps_) / kBackStep;
          continue;
        }
        stage = Stage::kFar;  // too many paths look alike in parts
        step = std::max(step, bound_ps_ / kFarStep);
        continue;
      }
      if (stage != Stage::kLattice) {
        if (left() > 0 && try_with_residues(reach, target, stage == Stage::kFar)) {
          // Where the bound lies, much less of the graph matters.
          if (stage == Stage::kFar && bound_ps_ <= target) {
            stage = Stage::kNear;
            step = std::max(kLeastStep, bound_ps_ / kNearStep);
          }
          step *= 2;
          continue;
        }
        stage = Stage::kLattice;
        step = parts_step;
        continue;
      }
      step *= 2;
      if (try_with_lattice(reach, target, step / kLatticeStep)) continue;
      is_limit_ = true;
      find_any(target, step);
      break;
    }
    if (!is_limit_ && needs_tie_) break_tie();
  }

  bool is_limit() const { return is_limit_; }
  std::int64_t bound_ps() const { return bound_ps_; }
  std::int64_t ps() const { return ps_; }
  const std::optional<Path>& path() const { return path_; }

 private:
  std::int64_t left() const { return max_work_ - statistics_.work; }
  void raise_bound(std::int64_t ps) { bound_ps_ = std::clamp(ps, bound_ps_, ps_); }

  Reach reach_of(std::int64_t target) const {
    Reach reach{bounds_.narrow(target), {}, {}};
    reach.floors = find_floors(reach.narrowed.episode);
    return reach;
  }

  SweepResult sweep(Reach& reach, GroupBound* groups, std::int64_t target, std::size_t width, std::int64_t max_work) {
    ++statistics_.passes;
    const Narrowed& narrowed = reach.narrowed;
    if (reach.ways.empty()) reach.ways = find_ways(narrowed.episode, reach.floors, budget_);
    Sweep pass(narrowed.episode, reach.ways, budget_, groups);
    const std::int64_t entry_work = 1 + narrowed.episode.state_count / kLongEpisode;
    SweepResult result = pass.run(target, width, max_work / entry_work);
    result.next_ps = std::min(result.next_ps, narrowed.next_ps);
    statistics_.work += pass.work() * entry_work;
    if (groups != nullptr) statistics_.work += groups->take_work() / kCellsPerEntry;
    statistics_.longest_list = std::max(statistics_.longest_list, static_cast<std::int64_t>(pass.longest()));
    const bool is_better = result.found && result.ps < ps_;
    if (is_better || (result.found && result.is_whole && result.ps == ps_)) {
      ps_ = result.ps;
      path_ = narrowed.widened(pass.path());
      needs_tie_ = !result.is_whole;  // of paths that take the same time, a cut list may have lost the better one
    }
    return result;
  }

  // Whether the pass reached its end; everything up to its target is settled then.
  bool try_target(Reach& reach, std::int64_t target, std::int64_t max_work, GroupBound* groups = nullptr,
                  std::size_t width = kAny) {
    const SweepResult result = sweep(reach, groups, target, width, max_work);
    if (result.is_whole) raise_bound(result.found ? ps_ : std::max(target + 1, result.next_ps));
    return result.is_whole;
  }

  // Whether something was settled: everything up to the target, or that a lower one will do. Far from the optimum, only
  // the bound is wanted.
  bool try_with_residues(Reach& reach, std::int64_t target, bool is_far) {
    std::optional<Residues> residues = Residues::make(reach.narrowed.episode, reach.floors, budget_, bounds_,
                                                      {.max_cells = max_cells_ / (is_far ? kFarShare : 1)});
    if (!residues) return false;
    statistics_.work += residues->take_work() / kCellsPerEntry;
    // A ring that is far too coarse for the episode's length tells nothing.
    if (residues->bound_ps() < bound_ps_ - bound_ps_ / kUselessStep) return false;
    raise_bound(std::min(residues->bound_ps(), reach.narrowed.next_ps));
    if (is_far) return true;
    // The bound is often the answer, or the next thing that is possible is.
    std::int64_t step = bound_ps_ / kFineStep + 1;
    const auto near = [&] { return std::min({bound_ps_ + step, ps_ - 1, target}); };
    const auto is_open = [&] { return bound_ps_ < ps_ && bound_ps_ <= target; };
    const auto quick_work = [&] { return std::max(left(), kBeamWork); };
    while (is_open() && try_target(reach, near(), quick_work(), &*residues, kBeam)) step *= 4;
    for (const std::int64_t any : {std::min(bound_ps_ + bound_ps_ / kCloseStep, target), target})
      if (is_open() && ps_ == Convex::kNotEnough) sweep(reach, &*residues, any, kBeam, quick_work());
    if (ps_ < Convex::kNotEnough) step = std::max(step, (ps_ - bound_ps_) / 4);
    for (; is_open(); step *= 4) {
      const bool is_close = ps_ - bound_ps_ < bound_ps_ / kCloseStep;
      const std::int64_t max_work = is_close ? left() : std::min(left(), kModerateWork);
      if (left() <= 0 || !try_target(reach, near(), max_work, &*residues)) return false;
    }
    return true;
  }

  // The same with all sums of sizes, which are rounded more.
  bool try_with_lattice(Reach& reach, std::int64_t target, std::int64_t fine) {
    if (left() <= 0) return false;
    std::optional<Lattice> lattice = Lattice::make(reach.narrowed.episode, reach.floors, budget_, bounds_,
                                                   {.target_ps = target, .max_cells = max_cells_});
    if (!lattice) return try_target(reach, target, left());
    statistics_.work += lattice->take_work() / kCellsPerEntry;
    raise_bound(std::min(lattice->bound_ps(), reach.narrowed.next_ps));
    if (lattice->bound_ps() <= target) sweep(reach, &*lattice, target, kBeam, std::max(left(), kBeamWork));
    if (ps_ - bound_ps_ < (target - bound_ps_) / 2) return true;  // much less of the graph matters now
    for (fine = std::max<std::int64_t>(fine, 1); bound_ps_ < ps_ && bound_ps_ <= target; fine *= 4) {
      if (left() <= 0) return false;
      const std::int64_t near = std::min({bound_ps_ + fine, ps_ - 1, target});
      if (!try_target(reach, near, left(), &*lattice)) return false;
    }
    return true;
  }

  // A path that fits, by passes with short lists: near the bound if there is one, else any.
  void find_any(std::int64_t near, std::int64_t more) {
    constexpr int kTries = 4;
    for (int i = 1; i <= kTries && !path_; ++i, more *= 4) {
      const std::int64_t target = i < kTries ? near + std::min(more, near) : kFree;
      Reach reach = reach_of(target);
      if (reach.floors[0] <= budget_) sweep(reach, nullptr, target, i < kTries ? kBeam : kWideBeam, kNoLimit);
    }
  }

  // Of the paths with the best time, one with the fewest units, as far as a pass without residues shows them all.
  void break_tie() {
    Reach reach = reach_of(ps_);
    if (reach.floors[0] <= budget_ && left() > 0) sweep(reach, nullptr, ps_, kAny, std::min(left(), parts_work_));
  }

  std::int64_t budget_;
  std::int64_t max_work_;
  std::int64_t parts_work_;
  std::int64_t max_cells_;
  SolveStatistics& statistics_;
  Bounds bounds_;
  std::int64_t bound_ps_;
  std::int64_t ps_ = Convex::kNotEnough;
  std::optional<Path> path_;
  bool needs_tie_ = false;
  bool is_limit_ = false;
};

// Whether they are the same but for which calls their units are: micro-batches mostly are.
bool are_alike(const Episode& a, const Episode& b) {
  if (a.state_count != b.state_count || a.first_arc != b.first_arc || a.arcs.size() != b.arcs.size()) return false;
  for (std::size_t i = 0; i < a.arcs.size(); ++i) {
    Arc other = b.arcs[i];
    if (a.arcs[i].is_unit() && other.is_unit()) other.candidate = a.arcs[i].candidate;
    if (a.arcs[i] != other) return false;
  }
  return true;
}

EpisodeSolution solve_alone(const Episode& episode, const std::vector<std::int64_t>& floors,
                            const ExactOptions& options, SolveStatistics& statistics) {
  SolveStatistics own;
  Search search(episode, floors, options, own);
  search.run();
  statistics.work += own.work;
  statistics.passes += own.passes;
  statistics.longest_list = std::max(statistics.longest_list, own.longest_list);
  return {search.path(), search.ps(), search.bound_ps(), search.is_limit()};
}

}  // namespace

ExactSolver::ExactSolver(Problem problem) : problem_(std::move(problem)) {
  smallest_peak_bytes_ = problem_.ground_bytes;
  for (std::size_t i = 0; i < problem_.episodes.size(); ++i) {
    Episode& episode = problem_.episodes[i];
    if (problem_.forward_episodes.empty()) {
      simplify(episode);
    } else {
      simplify(episode, problem_.forward_episodes[i]);
      smallest_peak_bytes_ = std::max(smallest_peak_bytes_, find_floors(problem_.forward_episodes[i])[0]);
    }
    const std::vector<std::int64_t>& floor = floors_.emplace_back(find_floors(episode));
    smallest_peak_bytes_ = std::max(smallest_peak_bytes_, floor[0]);
    std::size_t same = 0;
    const auto is_same = [&](std::size_t j) {
      return are_alike(problem_.episodes[j], episode) &&
             (problem_.forward_episodes.empty() ||
              are_alike(problem_.forward_episodes[j], problem_.forward_episodes[i]));
    };
    while (same < i && !is_same(same)) ++same;
    same_as_.push_back(same);
  }
}

// The cheapest path of one episode, on both of its sides if it has two. One side has the sharper bounds, also with a
// price on what the other one keeps.
EpisodeSolution ExactSolver::solve_episode(std::size_t i, const ExactOptions& options,
                                           SolveStatistics& statistics) const {
  const Episode& episode = problem_.episodes[i];
  const Episode* forward = problem_.forward_episodes.empty() ? nullptr : &problem_.forward_episodes[i];
  const Sides sides = fitting_sides(episode, forward, options.budget_bytes);
  EpisodeSolution known;
  const auto left = [&] { return std::max<std::int64_t>(options.max_work - statistics.work, 0); };
  const auto solve_on = [&](const Episode& side, std::int64_t max_work) {
    const std::vector<std::int64_t> floors = find_floors(side);
    if (floors[0] > options.budget_bytes) return EpisodeSolution{std::nullopt, 0, Convex::kNotEnough, false};
    ExactOptions rest = options;
    rest.max_work = max_work;  // micro-batches share what is allowed
    EpisodeSolution found = solve_alone(side, floors, rest, statistics);
    if (found.path) found.path = sides.widened(*found.path);
    return found;
  };
  // Whether what is found there is the answer, which `known` is then.
  const auto is_solved_on = [&](const Episode& side) {
    const std::int64_t bound_ps = known.bound_ps;
    known = solve_on(side, left());
    known.bound_ps = std::max(known.bound_ps, bound_ps);
    if (!known.path) return !known.is_limit;
    return measure(episode, *known.path).peak_bytes <= options.budget_bytes &&
           (forward == nullptr || measure(*forward, *known.path).peak_bytes <= options.budget_bytes);
  };
  if (forward == nullptr) {
    is_solved_on(sides.here);
    return known;
  }
  // Where one side alone binds in parts, its cheapest path mostly fits the other, too.
  std::int64_t share = choose_share(sides, options.budget_bytes);
  if (share == 0 && is_solved_on(sides.here)) return known;
  if (share == kShares && is_solved_on(sides.forward)) return known;
  if (share == 0 || share == kShares) {  // whole groups of the other one bind, too
    share = std::clamp(share, kLittleShare, kShares - kLittleShare);
    if (is_solved_on(mixture(sides.here, sides.forward, share))) return known;
  }
  TwoSidesOptions both_options{.budget_bytes = options.budget_bytes,
                               .prices = find_prices(sides, options.budget_bytes, share)};
  const View priced = priced_view(sides, kShares, both_options.prices.here, options.budget_bytes);
  known.bound_ps = std::max(known.bound_ps, solve_on(priced.episode, left() / 2).bound_ps);
  both_options.max_work = left();
  both_options.bound_ps = known.bound_ps;
  TwoSidesResult both = find_cheapest(sides, both_options);
  statistics.work += both.work;
  statistics.passes += both.passes;
  statistics.longest_list = std::max(statistics.longest_list, both.longest_list);
  return {std::move(both.path), both.ps, both.bound_ps, both.is_limit};
}

Solution ExactSolver::solve(const ExactOptions& options) const {
  Solution solution;
  solution.smallest_peak_bytes = smallest_peak_bytes_;
  if (options.budget_bytes < smallest_peak_bytes_) return solution;
  solution.end = SolveEnd::kOptimal;
  solution.peak_bytes = problem_.ground_bytes;
  bool has_all = true;
  std::vector<EpisodeSolution> all;
  all.reserve(problem_.episodes.size());
  for (std::size_t i = 0; i < problem_.episodes.size(); ++i) {
    const EpisodeSolution& found =
        all.emplace_back(same_as_[i] < i ? all[same_as_[i]] : solve_episode(i, options, solution.statistics));
    if (!found.path && !found.is_limit) {
      solution.end = SolveEnd::kInfeasible;
      solution.paths.clear();
      return solution;
    }
    if (found.is_limit) solution.end = SolveEnd::kLimit;
    solution.bound_ps += found.bound_ps;
    if (!found.path) {
      has_all = false;
      continue;
    }
    solution.time_ps += found.ps;
    solution.paths.push_back(*found.path);
    solution.peak_bytes = std::max(solution.peak_bytes, measure(problem_.episodes[i], *found.path).peak_bytes);
    if (!problem_.forward_episodes.empty())
      solution.peak_bytes =
          std::max(solution.peak_bytes, measure(problem_.forward_episodes[i], *found.path).peak_bytes);
  }
  if (!has_all) solution.paths.clear();
  return solution;
}

std::vector<std::vector<Path>> ExactSolver::smallest_paths() const {
  std::vector<std::vector<Path>> all(problem_.forward_episodes.empty() ? 1 : 2);
  for (std::size_t i = 0; i < problem_.episodes.size(); ++i) {
    all[0].push_back(floor_path(problem_.episodes[i], floors_[i]));
    if (problem_.forward_episodes.empty()) continue;
    const Episode& forward = problem_.forward_episodes[i];
    all[1].push_back(floor_path(forward, find_floors(forward)));
  }
  return all;
}

plan::Plan plan_of(const Space& space, const Problem& problem, const std::vector<Path>& paths) {
  plan::Plan plan;
  for (std::size_t e = 0; e < paths.size(); ++e)
    for (const ArcUse& use : paths[e]) {
      const Arc& arc = problem.episodes[e].arcs[use.arc];
      if (!arc.is_unit()) continue;
      const Candidate& c = space.candidates[arc.candidate];
      std::vector<std::uint8_t> saved(c.choices.size(), 0);
      for (const std::uint32_t choice : arc.always_saved) saved[choice] = 1;
      for (const std::uint32_t group : use.saved) saved[arc.groups[group].choice] = 1;
      plan.units.push_back(make_unit(c, saved));
    }
  return plan;
}

}  // namespace tidemark::planner
