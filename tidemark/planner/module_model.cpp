#include "tidemark/planner/module_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "tidemark/base/error.h"

namespace tidemark::planner {

namespace {

using sac::ModuleGraph;
using sac::ModuleNode;
using sac::ModuleStats;

constexpr double kMiB = 1024.0 * 1024.0;
constexpr std::uint32_t kNone = 0xFFFFFFFFu;

[[noreturn]] void refuse(std::string place, std::string problem, std::string expected, std::string got) {
  throw Error({.kind = ErrorKind::kInput,
               .place = std::move(place),
               .problem = std::move(problem),
               .expected = std::move(expected),
               .got = std::move(got),
               .remedy = {}});
}

// A node with its columns.
struct Candidate {
  std::uint32_t node = 0;
  double made_bytes = 0;  // A: at least what autograd keeps
  double kept_bytes = 0;  // I
  std::uint32_t chosen = kNone, part = kNone, time = kNone;

  // Of s, with the module checkpointed and a part given up.
  double saved_bytes(double y, double r) const { return made_bytes * r - (made_bytes - kept_bytes) * y; }
};

struct Model {
  LinearModel linear;
  std::vector<Candidate> candidates;        // in forward post-order
  std::vector<double> load_bytes;           // by node: its sum without what is saved
  std::vector<std::uint32_t> saved_before;  // by node: how many candidates come before it in post-order
  bool is_hopeless = false;
};

class Builder {
 public:
  Builder(const ModuleGraph& graph, const ModuleModelOptions& options) : graph_(graph), options_(options) {
    if (options.world_size < 1)
      refuse("world size", "there are too few ranks", "at least 1", fmt::format("{}", options.world_size));
    if (options.budget_bytes < 0)
      refuse("budget", "the budget is negative", "a size", fmt::format("{}", options.budget_bytes));
    for (const ModuleNode& node : graph.nodes) known_.insert(node.stats.fqn);
    if (options.units) check_known(*options.units, "units");
    check_known(options.fsdp_units, "FSDP units");
  }

  Model build() {
    model_.linear.name = "modules";
    find_loads();
    find_candidates();
    add_columns();
    add_nesting();
    add_fits();
    add_memory();
    return std::move(model_);
  }

 private:
  void check_known(const std::vector<std::string>& names, const char* what) const {
    for (const std::string& name : names)
      if (!known_.contains(name))
        refuse(what, "no module of this name ran", "full names, with the class of the root first", name);
  }

  const ModuleStats& stats(std::uint32_t node) const { return graph_.nodes[node].stats; }

  void find_loads() {
    const auto world = static_cast<double>(options_.world_size);
    const bool is_b = options_.rules == sac::Rules::kReferenceB;
    const bool is_sharded = !options_.fsdp_units.empty();
    double constant = 0;
    double gathered = 0;
    if (is_b && !graph_.nodes.empty()) {
      constant = static_cast<double>(options_.optimizer_bytes + stats(0).parameter_bytes) / (is_sharded ? world : 1);
      gathered = 4 * static_cast<double>(largest_unit_bytes());
    }
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const ModuleStats& s = stats(i);
      const auto activations = static_cast<double>(s.activations_after_bytes + s.activation_gradient_bytes);
      const double rest = is_b ? constant + gathered +
                                     static_cast<double>(s.gradients_before_bytes - stats(0).gradients_before_bytes) /
                                         (is_sharded ? world : 1)
                               : static_cast<double>(stats(0).parameter_bytes + s.gradients_before_bytes) / world;
      model_.load_bytes.push_back(activations + rest);
    }
  }

  // A unit's parameters without those of units inside it.
  std::int64_t largest_unit_bytes() const {
    std::vector<std::int64_t> own(graph_.nodes.size(), 0);
    const std::unordered_set<std::string_view> units(options_.fsdp_units.begin(), options_.fsdp_units.end());
    std::int64_t largest = 0;
    for (const std::uint32_t i : graph_.forward_post_order) {
      if (!units.contains(stats(i).fqn)) continue;
      own[i] += stats(i).parameter_bytes;
      for (auto above = graph_.nodes[i].parent; above; above = graph_.nodes[*above].parent) own[*above] -= own[i];
      largest = std::max(largest, own[i]);
    }
    return largest;
  }

  bool may_be_unit(std::uint32_t i) const {
    const ModuleStats& s = stats(i);
    if (s.is_leaf || std::max(s.sac_bytes, s.kept_bytes) <= 0) return false;
    if (options_.units && std::find(options_.units->begin(), options_.units->end(), s.fqn) == options_.units->end())
      return false;
    for (const std::string& unit : options_.fsdp_units)
      for (std::uint32_t below = i + 1; below <= graph_.nodes[i].last_descendant; ++below)
        if (stats(below).fqn == unit) return false;
    return true;
  }

  void find_candidates() {
    model_.saved_before.assign(graph_.nodes.size(), 0);
    candidate_of_.assign(graph_.nodes.size(), kNone);
    for (const std::uint32_t i : graph_.forward_post_order) {
      model_.saved_before[i] = static_cast<std::uint32_t>(model_.candidates.size());
      if (!may_be_unit(i)) continue;
      candidate_of_[i] = static_cast<std::uint32_t>(model_.candidates.size());
      const auto kept = static_cast<double>(stats(i).kept_bytes);
      model_.candidates.push_back(
          {.node = i, .made_bytes = std::max(kept, static_cast<double>(stats(i).sac_bytes)), .kept_bytes = kept});
    }
  }

  void add_columns() {
    for (Candidate& c : model_.candidates) {
      c.chosen = model_.linear.add({.name = fmt::format("y{}", c.node), .cost = 0, .upper = 1, .is_integer = true});
      c.part = model_.linear.add({.name = fmt::format("r{}", c.node), .cost = 0, .upper = 1});
      c.time = model_.linear.add({.name = fmt::format("t{}", c.node), .cost = 1});
    }
  }

  // One row for every way from the root to a candidate that has none below it: at most one on it is chosen.
  void add_nesting() {
    for (const Candidate& c : model_.candidates) {
      bool is_lowest = true;
      for (std::uint32_t below = c.node + 1; below <= graph_.nodes[c.node].last_descendant; ++below)
        is_lowest = is_lowest && candidate_of_[below] == kNone;
      if (!is_lowest) continue;
      Row row{.name = fmt::format("way{}", c.node), .upper = 1, .terms = {{c.chosen, 1}}};
      for (auto above = graph_.nodes[c.node].parent; above; above = graph_.nodes[*above].parent)
        if (candidate_of_[*above] != kNone) row.terms.push_back({model_.candidates[candidate_of_[*above]].chosen, 1});
      if (row.terms.size() > 1) model_.linear.rows.push_back(std::move(row));
    }
  }

  void add_fits() {
    for (const Candidate& c : model_.candidates) {
      model_.linear.rows.push_back(
          {.name = fmt::format("most{}", c.node), .upper = 0, .terms = {{c.part, 1}, {c.chosen, -most_part(c)}}});
      model_.linear.rows.push_back(
          {.name = fmt::format("least{}", c.node),
           .lower = 0,
           .terms = {{c.part, c.made_bytes / kMiB}, {c.chosen, -(c.made_bytes - c.kept_bytes) / kMiB}}});
      const ModuleStats& s = stats(c.node);
      const sac::PiecewiseLine& fit = s.trade_off.fit;
      for (std::size_t piece = 0; piece < fit.slopes.size(); ++piece)
        model_.linear.rows.push_back(
            {.name = fmt::format("fit{}_{}", c.node, piece),
             .lower = 0,
             .terms = {
                 {c.time, 1}, {c.part, -s.sac_ms * fit.slopes[piece]}, {c.chosen, -s.sac_ms * fit.intercepts[piece]}}});
    }
  }

  // Auto-SAC's branch knows what is stored whatever is given up.
  double most_part(const Candidate& c) const {
    if (options_.rules != sac::Rules::kReferenceB) return 1;
    return std::max(0.0, (c.made_bytes - static_cast<double>(stats(c.node).stored_bytes)) / c.made_bytes);
  }

  void add_memory() {
    // s after k candidates has to be at least this for the nodes between them.
    std::vector<double> needs(model_.candidates.size() + 1, 0);
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      double& need = needs[model_.saved_before[i]];
      need = std::max(need, model_.load_bytes[i] - static_cast<double>(options_.budget_bytes));
    }
    model_.is_hopeless = needs[0] > 0;
    std::uint32_t before = kNone;
    for (std::size_t k = 0; k < model_.candidates.size(); ++k) {
      const Candidate& c = model_.candidates[k];
      const std::uint32_t after =
          model_.linear.add({.name = fmt::format("s{}", k + 1), .cost = 0, .lower = needs[k + 1] / kMiB});
      Row row{.name = fmt::format("save{}", k + 1),
              .lower = 0,
              .upper = 0,
              .terms = {{after, 1}, {c.part, -c.made_bytes / kMiB}, {c.chosen, (c.made_bytes - c.kept_bytes) / kMiB}}};
      if (before != kNone) row.terms.push_back({before, -1});
      model_.linear.rows.push_back(std::move(row));
      before = after;
    }
  }

  const ModuleGraph& graph_;
  const ModuleModelOptions& options_;
  std::unordered_set<std::string_view> known_;
  std::vector<std::uint32_t> candidate_of_;  // by node
  Model model_;
};

}  // namespace

std::optional<LinearModel> module_model(const ModuleGraph& graph, const ModuleModelOptions& options) {
  Model model = Builder(graph, options).build();
  if (model.is_hopeless) return std::nullopt;
  return std::move(model.linear);
}

ModuleChoice solve_module_model(const ModuleGraph& graph, const ModuleModelOptions& options, const Highs& highs,
                                const HighsOptions& solver) {
  const Model model = Builder(graph, options).build();
  ModuleChoice choice;
  choice.end = LinearEnd::kInfeasible;
  if (model.is_hopeless) return choice;
  const LinearSolution solution = highs.solve(model.linear, solver);
  choice.end = solution.end;
  choice.bound_ms = std::max(0.0, solution.bound);
  if (solution.values.empty()) return choice;
  std::vector<double> saved(1, 0);
  std::vector<std::pair<std::uint32_t, double>> chosen;  // by node
  for (const Candidate& c : model.candidates) {
    const double y = std::round(solution.values[c.chosen]);
    const double r = y > 0 ? std::clamp(solution.values[c.part], 0.0, 1.0) : 0;
    saved.push_back(saved.back() + c.saved_bytes(y, r));
    if (y == 0) continue;
    chosen.emplace_back(c.node, r);
    const ModuleStats& s = graph.nodes[c.node].stats;
    double part = 0;
    for (std::size_t piece = 0; piece < s.trade_off.fit.slopes.size(); ++piece)
      part = std::max(part, s.trade_off.fit.slopes[piece] * r + s.trade_off.fit.intercepts[piece]);
    choice.recompute_ms += s.sac_ms * part;
  }
  std::sort(chosen.begin(), chosen.end());
  for (const auto& [node, r] : chosen) choice.ratios.push_back({graph.nodes[node].stats.fqn, r});
  double peak = 0;
  for (std::size_t i = 0; i < model.load_bytes.size(); ++i)
    peak = std::max(peak, model.load_bytes[i] - saved[model.saved_before[i]]);
  choice.peak_bytes = static_cast<std::int64_t>(std::ceil(peak));
  return choice;
}

}  // namespace tidemark::planner
