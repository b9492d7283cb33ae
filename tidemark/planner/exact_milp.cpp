#include "tidemark/planner/exact_milp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tidemark/base/error.h"
#include "tidemark/planner/floors.h"

namespace tidemark::planner {

namespace {

constexpr double kLargest = 1 << 20;  // of what HiGHS's tolerances are good for

double scale_for(double largest) {
  double scale = 1;
  while (largest * scale > kLargest) scale /= 2;
  return scale;
}

std::int64_t most_kept(const Arc& arc) {
  std::int64_t bytes = arc.keep_bytes;
  for (const ArcGroup& group : arc.groups) bytes += group.bytes;
  return bytes;
}

class Builder {
 public:
  Builder(const Problem& problem, std::int64_t budget_bytes) : problem_(problem), budget_bytes_(budget_bytes) {
    double bytes = std::abs(static_cast<double>(budget_bytes));
    double ps = 0;
    for (const auto* side : {&problem.episodes, &problem.forward_episodes})
      for (const Episode& episode : *side)
        for (const Arc& arc : episode.arcs) bytes = std::max(bytes, static_cast<double>(most_kept(arc)));
    for (const Episode& episode : problem.episodes)
      for (const Arc& arc : episode.arcs) {
        double of_arc = static_cast<double>(arc.base_ps);
        for (const ArcGroup& group : arc.groups) of_arc += static_cast<double>(group.time_ps);
        ps = std::max(ps, of_arc);
      }
    model_.bytes_scale = scale_for(bytes);
    model_.time_scale = scale_for(ps);
  }

  ExactMilp build() {
    model_.linear.name = "plan";
    for (std::size_t e = 0; e < problem_.episodes.size(); ++e) add(problem_.episodes[e], e);
    return std::move(model_);
  }

 private:
  double scaled_bytes(std::int64_t bytes) const { return static_cast<double>(bytes) * model_.bytes_scale; }
  double scaled_ps(std::int64_t ps) const { return static_cast<double>(ps) * model_.time_scale; }

  void add(const Episode& episode, std::size_t e) {
    add_columns(episode, e);
    add_flow(episode, e);
    side_ = "";
    add_bytes(episode, e);
    if (problem_.forward_episodes.empty()) return;
    side_ = "f";
    add_bytes(problem_.forward_episodes[e], e);
  }

  void add_bytes(const Episode& episode, std::size_t e) {
    const std::vector<std::uint32_t> kept = add_kept(episode, e);
    const std::vector<std::int64_t> most = most_before(episode);
    for (std::uint32_t a = 0; a < episode.arcs.size(); ++a) {
      const Arc& arc = episode.arcs[a];
      add_peaks(arc, a, e, kept[arc.from], most[arc.from]);
    }
  }

  void add_columns(const Episode& episode, std::size_t e) {
    model_.arcs.emplace_back();
    for (std::uint32_t a = 0; a < episode.arcs.size(); ++a) {
      const Arc& arc = episode.arcs[a];
      std::int64_t ps = arc.base_ps;
      for (const ArcGroup& group : arc.groups) ps += group.time_ps;
      const std::uint32_t taken = model_.linear.add(
          {.name = fmt::format("x{}_{}", e, a), .cost = scaled_ps(ps), .upper = 1, .is_integer = true});
      model_.arcs[e].push_back({taken, taken + 1});
      Row any{.name = fmt::format("any{}_{}", e, a), .lower = 0, .terms = {{taken, -1}}};
      for (std::uint32_t j = 0; j < arc.groups.size(); ++j) {
        const std::uint32_t saved = model_.linear.add({.name = fmt::format("v{}_{}_{}", e, a, j),
                                                       .cost = -scaled_ps(arc.groups[j].time_ps),
                                                       .upper = 1,
                                                       .is_integer = true});
        model_.linear.rows.push_back(
            {.name = fmt::format("on{}_{}_{}", e, a, j), .upper = 0, .terms = {{saved, 1}, {taken, -1}}});
        any.terms.push_back({saved, 1});
      }
      if (arc.needs_saved) model_.linear.rows.push_back(std::move(any));
    }
  }

  void add_flow(const Episode& episode, std::size_t e) {
    std::vector<Row> rows(episode.state_count);
    for (std::uint32_t state = 0; state < episode.state_count; ++state) {
      const double out = (state == 0 ? 1 : 0) - (state + 1 == episode.state_count ? 1 : 0);
      rows[state] = {.name = fmt::format("flow{}_{}", e, state), .lower = out, .upper = out, .terms = {}};
    }
    for (std::uint32_t a = 0; a < episode.arcs.size(); ++a) {
      rows[episode.arcs[a].from].terms.push_back({model_.arcs[e][a].taken, 1});
      rows[episode.arcs[a].to].terms.push_back({model_.arcs[e][a].taken, -1});
    }
    for (Row& row : rows) model_.linear.rows.push_back(std::move(row));
  }

  // By state: the column of what the arcs from earlier states keep; none for the first.
  std::vector<std::uint32_t> add_kept(const Episode& episode, std::size_t e) {
    std::vector<std::uint32_t> columns(episode.state_count, kNone);
    for (std::uint32_t state = 0; state + 1 < episode.state_count; ++state) {
      const std::uint32_t next =
          model_.linear.add({.name = fmt::format("{}k{}_{}", side_, e, state + 1), .cost = 0, .lower = -kUnbounded});
      columns[state + 1] = next;
      Row row{.name = fmt::format("{}keep{}_{}", side_, e, state + 1), .lower = 0, .upper = 0, .terms = {{next, 1}}};
      if (state > 0) row.terms.push_back({columns[state], -1});
      for (std::uint32_t a = episode.first_arc[state]; a < episode.first_arc[state + 1]; ++a) {
        const Arc& arc = episode.arcs[a];
        if (arc.keep_bytes != 0) row.terms.push_back({model_.arcs[e][a].taken, -scaled_bytes(arc.keep_bytes)});
        for (std::uint32_t j = 0; j < arc.groups.size(); ++j)
          if (arc.groups[j].bytes != 0)
            row.terms.push_back({model_.arcs[e][a].first_group + j, -scaled_bytes(arc.groups[j].bytes)});
      }
      model_.linear.rows.push_back(std::move(row));
    }
    return columns;
  }

  // By state: the most that any path keeps on arcs from earlier states.
  static std::vector<std::int64_t> most_before(const Episode& episode) {
    std::vector<std::int64_t> at(episode.state_count, kNoPeak);  // kept on the way to a state
    std::vector<std::int64_t> before(episode.state_count, 0);
    at[0] = 0;
    for (std::uint32_t state = 0; state < episode.state_count; ++state) {
      if (state > 0) before[state] = before[state - 1];
      if (state > 0)
        for (std::uint32_t a = episode.first_arc[state - 1]; a < episode.first_arc[state]; ++a) {
          const Arc& arc = episode.arcs[a];
          if (at[arc.from] == kNoPeak) continue;
          const std::int64_t kept = at[arc.from] + most_kept(arc);
          before[state] = std::max(before[state], kept);
          at[arc.to] = std::max(at[arc.to], kept);
        }
    }
    return before;
  }

  // k + constant * taken + saved bytes of groups [begin, end) <= budget, if the arc is taken; with `unless`, and that
  // group is not saved.
  struct Peak {
    std::int64_t constant_bytes;
    std::uint32_t begin, end;
    std::uint32_t unless = kNone;
  };

  void add_peaks(const Arc& arc, std::uint32_t a, std::size_t e, std::uint32_t kept, std::int64_t most_before) {
    const auto groups = static_cast<std::uint32_t>(arc.groups.size());
    int count = 0;
    const auto add = [&](const Peak& peak) {
      if (peak.constant_bytes == kNoPeak) return;
      std::int64_t most = most_before;
      for (std::uint32_t j = peak.begin; j < peak.end; ++j) most += arc.groups[j].bytes;
      if (most + peak.constant_bytes <= budget_bytes_) return;
      const ExactMilp::ArcColumns& columns = model_.arcs[e][a];
      // k <= budget holds without the arc, or the row gives way by what k may be above it.
      const double way = scaled_bytes(std::max<std::int64_t>(0, most_before - budget_bytes_));
      Row row{.name = fmt::format("{}peak{}_{}_{}", side_, e, a, count++),
              .upper = scaled_bytes(budget_bytes_) + way,
              .terms = {}};
      if (kept != kNone) row.terms.push_back({kept, 1});
      row.terms.push_back({columns.taken, scaled_bytes(peak.constant_bytes) + way});
      for (std::uint32_t j = peak.begin; j < peak.end; ++j)
        if (arc.groups[j].bytes != 0) row.terms.push_back({columns.first_group + j, scaled_bytes(arc.groups[j].bytes)});
      // Then the row gives way by all that it asks too much at most.
      if (peak.unless != kNone)
        row.terms.push_back(
            {columns.first_group + peak.unless, -scaled_bytes(most + peak.constant_bytes - budget_bytes_)});
      model_.linear.rows.push_back(std::move(row));
    };
    add({arc.tail_bytes, 0, 0});
    for (std::uint32_t j = 0; j < arc.before.size(); ++j) {
      add({arc.before[j].recompute_bytes, j, groups});
      add({arc.before[j].forward_bytes, 0, j});
    }
    for (std::uint32_t j = 0; j < groups; ++j) add({arc.groups[j].inside_bytes, j + 1, groups, j});
  }

  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  const Problem& problem_;
  std::int64_t budget_bytes_;
  std::string_view side_;  // before names
  ExactMilp model_;
};

}  // namespace

ExactMilp exact_milp(const Problem& problem, std::int64_t budget_bytes) {
  return Builder(problem, budget_bytes).build();
}

std::vector<Path> paths_of(const Problem& problem, const ExactMilp& model, std::span<const double> values) {
  std::vector<Path> paths;
  for (std::size_t e = 0; e < problem.episodes.size(); ++e) {
    const Episode& episode = problem.episodes[e];
    Path path;
    for (std::uint32_t state = 0; state + 1 < episode.state_count;) {
      std::uint32_t best = episode.first_arc[state];
      for (std::uint32_t a = best; a < episode.first_arc[state + 1]; ++a)
        if (values[model.arcs[e][a].taken] > values[model.arcs[e][best].taken]) best = a;
      TIDEMARK_CHECK(best < episode.first_arc[state + 1], "a path goes on from every state it visits");
      ArcUse use{best, {}};
      for (std::uint32_t j = 0; j < episode.arcs[best].groups.size(); ++j)
        if (values[model.arcs[e][best].first_group + j] > 0.5) use.saved.push_back(j);
      state = episode.arcs[best].to;
      path.push_back(std::move(use));
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

Solution solve_exact_milp(const Problem& problem, std::int64_t budget_bytes, const Highs& highs,
                          const HighsOptions& options) {
  Solution result;
  result.smallest_peak_bytes = problem.ground_bytes;
  for (const auto* side : {&problem.episodes, &problem.forward_episodes})
    for (const Episode& episode : *side)
      result.smallest_peak_bytes = std::max(result.smallest_peak_bytes, find_floors(episode)[0]);
  if (problem.ground_bytes > budget_bytes) return result;
  const ExactMilp model = exact_milp(problem, budget_bytes);
  const LinearSolution solution = highs.solve(model.linear, options);
  result.statistics.passes = 1;
  result.statistics.work = solution.nodes;
  if (solution.end == LinearEnd::kInfeasible) return result;
  result.end = solution.end == LinearEnd::kOptimal ? SolveEnd::kOptimal : SolveEnd::kLimit;
  const bool is_scaled = model.bytes_scale != 1 || model.time_scale != 1;
  const double bound = solution.bound / model.time_scale * (is_scaled ? 1 - 1e-9 : 1);
  // Whole numbers: what is above the last one below by more than a solver tolerates is the next.
  result.bound_ps = bound > 0 ? static_cast<std::int64_t>(std::ceil(bound - 1e-3 - bound * 1e-12)) : 0;
  if (solution.values.empty()) return result;
  result.paths = paths_of(problem, model, solution.values);
  result.peak_bytes = problem.ground_bytes;
  for (std::size_t e = 0; e < result.paths.size(); ++e) {
    const PathFigures figures = measure(problem.episodes[e], result.paths[e]);
    result.peak_bytes = std::max(result.peak_bytes, figures.peak_bytes);
    result.time_ps += figures.time_ps;
    if (problem.forward_episodes.empty()) continue;
    result.peak_bytes = std::max(result.peak_bytes, measure(problem.forward_episodes[e], result.paths[e]).peak_bytes);
  }
  return result;
}

}  // namespace tidemark::planner
