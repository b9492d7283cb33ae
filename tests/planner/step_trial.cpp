#include "step_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <tuple>

#include "../support/random.h"
#include "../support/random_training.h"
#include "../support/random_workspace.h"
#include "brute_force.h"
#include "plan_paths.h"
#include "step_cost.h"
#include "tidemark/base/rounding.h"
#include "tidemark/planner/prepared.h"

namespace tidemark::test {

namespace {

using namespace step;
using planner::PlannerOptions;
using planner::PlanResult;
using planner::Termination;

constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMostFaults = 20;
constexpr std::size_t kFewestUnits = 3;
constexpr std::size_t kFewestPlans = 20;
constexpr std::uint64_t kTrivialShare = 4;  // of steps on which no unit alone lowers the peak, one in so many is tried
// What a campaign has to have seen for its zeros to mean something, from so many steps on.
constexpr std::int64_t kManySteps = 10'000;
constexpr std::int64_t kAskedMedianPlans = 100;
constexpr std::int64_t kAskedMedianBudgets = 5;  // one breakpoint has three or fewer beside it, and the budget between

// What the steps of a campaign are, by seed.
struct Kind {
  RandomTrainingOptions training;
  bool has_workspace = false;
  bool is_rounded = false;
};

Kind kind_of(std::uint64_t seed) {
  Random random(seed * 31 + 7);
  Kind kind;
  kind.training.max_children = static_cast<int>(random.between(2, 4));
  kind.training.max_ops = static_cast<int>(random.between(2, 3));
  kind.training.light_backward = random.chance(80);
  kind.training.is_random = random.chance(40);
  const std::uint64_t which = random.below(20);
  kind.training.has_casts = which >= 11 && which < 13;
  kind.is_rounded = which >= 13 && which < 17;
  kind.has_workspace = which >= 15 && which < 18;
  kind.training.may_be_odd = which >= 18;
  if (random.chance(75)) {  // most peaks are in backward, where plans differ
    kind.training.saved_percent = static_cast<int>(random.between(50, 75));
    kind.training.freed_percent = static_cast<int>(random.between(80, 100));
    kind.training.light_backward = true;
  }
  return kind;
}

// Storages that several module calls keep, as saves of theirs or as inputs.
std::int64_t count_shared(const Step& step) {
  const StepTables& t = step.tables();
  std::set<std::pair<StorageId, CallId>> keeps;
  std::vector<CallId> call_of_node(t.nodes.size());
  for (const Op& op : t.ops)
    if (op.node.has_value() && call_of_node[op.node.index()].is_none()) call_of_node[op.node.index()] = op.call;
  for (const Save& save : t.saves) keeps.emplace(step[save.tensor].storage, call_of_node[save.node.index()]);
  for (std::uint32_t i = 0; i < t.calls.size(); ++i)
    for (const TensorId input : step.inputs(t.calls[i])) keeps.emplace(step[input].storage, CallId(i));
  std::int64_t count = 0;
  for (auto at = keeps.begin(); at != keeps.end();) {
    auto next = at;
    std::int64_t keepers = 0;
    for (; next != keeps.end() && next->first == at->first; ++next) ++keepers;
    if (keepers > 1 && step[at->first].role == Role::kPlain) ++count;
    at = next;
  }
  return count;
}

using Flags = std::array<bool, kFeatureNames.size()>;
bool& flag(Flags& flags, Feature feature) { return flags[static_cast<std::size_t>(feature)]; }

Flags features_of(const RandomTraining& t, const Kind& kind, std::int64_t shared) {
  const StepTables& tables = t.step.tables();
  Flags flags = {};
  flag(flags, Feature::kSharedStorages) = shared > 0;
  flag(flags, Feature::kWorkspace) = kind.has_workspace;
  flag(flags, Feature::kRounded) = kind.is_rounded;
  flag(flags, Feature::kOdd) = kind.training.may_be_odd;
  flag(flags, Feature::kCasts) = kind.training.has_casts;
  for (const Storage& storage : tables.storages) {
    if (storage.bytes == 0) flag(flags, Feature::kZeroBytes) = true;
    if (storage.bytes >= std::int64_t{1} << 53) flag(flags, Feature::kHugeBytes) = true;
  }
  for (const std::int64_t ps : t.times.op_ps)
    if (ps == 0) flag(flags, Feature::kZeroTimes) = true;
  for (const Call& call : tables.calls) {
    if (call.parent.has_value() && t.step[call.parent].parent.has_value()) flag(flags, Feature::kNested) = true;
    if (call.index > 0) flag(flags, Feature::kCalledTwice) = true;
  }
  for (const Pass& pass : tables.passes)
    if (pass.micro_batch > 0) flag(flags, Feature::kMicroBatches) = true;
  std::map<StorageId, std::set<CallId>> readers;
  std::map<StorageId, std::uint32_t> made_in;  // how many calls had been entered
  std::uint32_t entered = 0;
  for (const Event& event : tables.events) {
    if (event.kind == EventKind::kEnter) ++entered;
    if (event.kind == EventKind::kAlloc) made_in[StorageId(event.id)] = entered;
    if (event.kind != EventKind::kBegin) continue;
    const Op& op = tables.ops[event.id];
    if (op.flags.has(OpFlag::kRandom)) flag(flags, Feature::kRandom) = true;
    if (op.flags.has(OpFlag::kMustSave)) flag(flags, Feature::kMustSave) = true;
    for (const Output& output : t.step.outputs(op))
      if (output.alias == AliasKind::kMutates) flag(flags, Feature::kInPlace) = true;
    const PassKind pass = t.step[op.pass].kind;
    if (pass != PassKind::kForward && pass != PassKind::kLoss) continue;
    for (const TensorId input : t.step.inputs(op)) {
      const StorageId storage = t.step[input].storage;
      if (t.step[storage].role == Role::kParameter && readers[storage].insert(op.call).second &&
          readers[storage].size() > 1)
        flag(flags, Feature::kTiedWeights) = true;
      const auto made = made_in.find(storage);
      if (made != made_in.end() && made->second + 1 < entered) flag(flags, Feature::kSkips) = true;
    }
  }
  return flags;
}

// The least time by peak: peaks rise, times fall.
std::vector<std::pair<std::int64_t, std::int64_t>> frontier_of(const std::vector<Tried>& tried) {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (const Tried& one : tried) all.emplace_back(one.peak_bytes, one.time_ps);
  std::sort(all.begin(), all.end());
  std::vector<std::pair<std::int64_t, std::int64_t>> frontier;
  for (const auto& point : all)
    if (frontier.empty() || point.second < frontier.back().second) frontier.push_back(point);
  return frontier;
}

// Whether some unit that saves nothing lowers the peak: where none does, mostly no plan is below plain training.
bool helps(const Step& step, const planner::Space& space, const PlannerOptions& options) {
  const memory::Replayer replayer(step, planner::replay_options(options));
  const std::int64_t plain_bytes = replayer.run({}).peak.total_bytes;
  return std::any_of(space.candidates.begin(), space.candidates.end(), [&](const planner::Candidate& candidate) {
    const std::vector<std::uint8_t> nothing(candidate.choices.size(), 0);
    return replayer.run({{planner::make_unit(candidate, nothing)}}).peak.total_bytes < plain_bytes;
  });
}

class Comparison {
 public:
  Comparison(const ComparedStep& compared, const planner::PreparedStep& prepared, const std::vector<Tried>& tried,
             TrialCounts& counts)
      : compared_(compared),
        prepared_(prepared),
        tried_(tried),
        frontier_(frontier_of(tried)),
        counts_(counts),
        ties_(prepared.step(), prepared.space()) {
    const planner::Problem& problem = prepared.solver().problem();
    words_ = fmt::format("{}{}", problem.is_exact ? "" : " inexact", problem.given_count == 0 ? "" : " given");
  }

  void run() {
    note();
    check_model();
    std::int64_t checked = 0;
    PlannerOptions options = prepared_.options();
    PlanResult last;
    for (const std::int64_t budget : budgets()) {
      last = prepared_.plan(budget, options.max_work);
      check(budget, last);
      ++checked;
      options.budget_bytes = budget;
    }
    counts_.budgets.add(checked);
    // The way that callers go.
    const PlanResult same = planner::plan_step(prepared_.step(), cost_of(prepared_.times()), options);
    if (same.plan != last.plan || same.termination != last.termination || same.bound_ps != last.bound_ps)
      fault(counts_.wrong_figures, options.budget_bytes, "plan_step says something else");
  }

  bool has_tie() const {
    for (std::size_t i = 0; i < frontier_.size(); ++i) {
      const std::int64_t end = i + 1 < frontier_.size() ? frontier_[i + 1].first : kNoTime;
      const auto is_best = [&](const Tried& one) { return one.time_ps == frontier_[i].second && one.peak_bytes < end; };
      if (std::count_if(tried_.begin(), tried_.end(), is_best) > 1) return true;
    }
    return false;
  }

 private:
  void note() {
    ++counts_.steps;
    const planner::Problem& problem = prepared_.solver().problem();
    counts_.exact += problem.is_exact ? 1 : 0;
    counts_.given += problem.given_count == 0 ? 0 : 1;
    counts_.plans.add(static_cast<std::int64_t>(tried_.size()));
    counts_.units.add(static_cast<std::int64_t>(prepared_.space().candidates.size()));
  }

  void check_model() {
    const planner::Problem& problem = prepared_.solver().problem();
    for (const Tried& one : tried_) {
      const auto figures = model_of_plan(prepared_.space(), problem, one.plan);
      if (!figures) continue;
      const bool is_peak =
          problem.is_exact ? figures->peak_bytes == one.peak_bytes : figures->peak_bytes <= one.peak_bytes;
      if (is_peak && figures->time_ps == one.time_ps) continue;
      return fault(counts_.wrong_models, 0,
                   fmt::format("the model of a plan has {} bytes and {} ps, a replay {} and {}", figures->peak_bytes,
                               figures->time_ps, one.peak_bytes, one.time_ps));
    }
  }

  // Breakpoints and a byte on either side, a budget between, and more than enough.
  std::vector<std::int64_t> budgets() const {
    Random random(compared_.seed);
    std::set<std::int64_t> list;
    const std::size_t count = std::min(frontier_.size(), compared_.most_breakpoints);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = count == 1 ? 0 : i * (frontier_.size() - 1) / (count - 1);
      for (const std::int64_t beside : {-1, 0, 1})
        if (frontier_[at].first + beside >= 0) list.insert(frontier_[at].first + beside);
    }
    const std::int64_t least = frontier_.front().first;
    list.insert(random.between(least, std::max(least, frontier_.back().first)));
    return {list.begin(), list.end()};
  }

  void check(std::int64_t budget, const PlanResult& result) {
    ++counts_.terminations[static_cast<std::size_t>(result.termination)];
    const auto above = std::partition_point(frontier_.begin(), frontier_.end(),
                                            [&](const auto& point) { return point.first <= budget; });
    const std::int64_t best = above == frontier_.begin() ? kNoTime : std::prev(above)->second;
    if (result.smallest_peak_bytes != frontier_.front().first)
      fault(counts_.wrong_smallest, budget,
            fmt::format("smallest peak {}, not {}", result.smallest_peak_bytes, frontier_.front().first));
    const bool says_none = result.termination == Termination::kInfeasible;
    if (best == kNoTime || says_none) {
      if ((best == kNoTime) != says_none) fault(counts_.wrong_infeasible, budget, name_of(result.termination));
      return;
    }
    if (result.termination == Termination::kLimit || result.termination == Termination::kNotFound)
      return fault(counts_.differing, budget, fmt::format("{}; best {}", name_of(result.termination), best));
    if (result.peak_bytes > budget) fault(counts_.over_budget, budget, "over budget");
    if (result.recompute_ps != best)
      fault(counts_.differing, budget,
            fmt::format("{} with {} ps, best {}", name_of(result.termination), result.recompute_ps, best));
    else if (result.bound_ps != best)
      fault(counts_.unproved, budget,
            fmt::format("{} with bound {} of {}", name_of(result.termination), result.bound_ps, best));
    check_figures(budget, result);
    if (result.recompute_ps == best) check_tie(budget, result);
  }

  // Of all plans that fit and take the least time: the fewest units, the most even, the first calls. Which ops are
  // saved is left out: plans that save what is never worth saving are no plans of the planner.
  void check_tie(std::int64_t budget, const PlanResult& result) {
    if (!prepared_.can_settle_ties()) return;
    const auto key_of = [&](const plan::Plan& plan) {
      std::tuple<std::size_t, std::int64_t, std::vector<std::uint32_t>> made{
          plan.units.size(), ties_.unevenness(plan), {}};
      for (const plan::Unit& unit : plan.units)
        std::get<2>(made).push_back(prepared_.space().index.regions[unit.call.index()].begin);
      return made;
    };
    const auto own = key_of(result.plan);
    for (const Tried& one : tried_)
      if (one.peak_bytes <= budget && one.time_ps == result.recompute_ps && key_of(one.plan) < own)
        return fault(counts_.wrong_ties, budget, "another plan that takes the same time comes first");
  }

  // The plan is one of those tried, with the same figures.
  void check_figures(std::int64_t budget, const PlanResult& result) {
    const bool is_known = std::any_of(tried_.begin(), tried_.end(), [&](const Tried& one) {
      return one.peak_bytes == result.peak_bytes && one.time_ps == result.recompute_ps && one.plan == result.plan;
    });
    if (!is_known) fault(counts_.wrong_figures, budget, "the plan is not legal, or has other figures");
    const bool fits = result.unplanned_peak_bytes <= budget;
    if (fits != (result.termination == Termination::kFits) || (fits && !result.plan.units.empty()))
      fault(counts_.wrong_figures, budget, "fits without a plan, or does not");
  }

  void fault(std::int64_t& count, std::int64_t budget, std::string_view text) {
    ++count;
    if (counts_.faults.size() < kMostFaults)
      counts_.faults.push_back(fmt::format("{} budget {}{}: {}", compared_.name, budget, words_, text));
  }

  const ComparedStep& compared_;
  const planner::PreparedStep& prepared_;
  const std::vector<Tried>& tried_;
  std::vector<std::pair<std::int64_t, std::int64_t>> frontier_;  // peaks rise, times fall
  TrialCounts& counts_;
  planner::TieOrder ties_;
  std::string words_;  // about the step
};

}  // namespace

std::int64_t Histogram::total() const {
  std::int64_t sum = 0;
  for (const auto& [value, count] : counts_) sum += count;
  return sum;
}

std::int64_t Histogram::sum() const {
  std::int64_t sum = 0;
  for (const auto& [value, count] : counts_) sum += value * count;
  return sum;
}

std::int64_t Histogram::quantile(double part) const {
  const double all = static_cast<double>(total());
  std::int64_t sum = 0;
  for (const auto& [value, count] : counts_)
    if (sum += count; static_cast<double>(sum) >= all * part) return value;
  return 0;
}

std::string Histogram::text(bool by_powers) const {
  std::map<std::int64_t, std::int64_t> buckets;  // by their last value
  for (const auto& [value, count] : counts_) {
    std::int64_t last = value;
    if (by_powers) {
      last = 1;
      while (last < value) last *= 2;
    }
    buckets[last] += count;
  }
  const std::int64_t all = std::max<std::int64_t>(1, total());
  std::string text;
  for (const auto& [last, count] : buckets)
    text += fmt::format("  {:>7} {:>10} {:6.2f} %\n", fmt::format("{}{}", by_powers && last > 2 ? "to " : "", last),
                        count, 100.0 * static_cast<double>(count) / static_cast<double>(all));
  return text;
}

void TrialCounts::add(const TrialCounts& other) {
  steps += other.steps;
  passed_over += other.passed_over;
  exact += other.exact;
  given += other.given;
  plans.add(other.plans);
  units.add(other.units);
  shared.add(other.shared);
  budgets.add(other.budgets);
  for (std::size_t i = 0; i < features.size(); ++i) features[i] += other.features[i];
  for (std::size_t i = 0; i < terminations.size(); ++i) terminations[i] += other.terminations[i];
  differing += other.differing;
  over_budget += other.over_budget;
  wrong_infeasible += other.wrong_infeasible;
  wrong_smallest += other.wrong_smallest;
  unproved += other.unproved;
  wrong_figures += other.wrong_figures;
  wrong_models += other.wrong_models;
  wrong_ties += other.wrong_ties;
  for (const std::string& one : other.faults)
    if (faults.size() < kMostFaults) faults.push_back(one);
}

bool TrialCounts::is_clean() const {
  return differing + over_budget + wrong_infeasible + wrong_smallest + unproved + wrong_figures + wrong_models +
             wrong_ties ==
         0;
}

std::string TrialCounts::what_is_missing() const {
  if (steps < kManySteps) return {};
  std::string text;
  const auto ask = [&](std::string_view name, std::int64_t found, std::int64_t asked) {
    if (found < asked) text += fmt::format("too little was tried: {} {}, asked at least {}\n", name, found, asked);
  };
  ask("median of legal plans", plans.quantile(0.5), kAskedMedianPlans);
  ask("fewest candidate units", units.quantile(0), static_cast<std::int64_t>(kFewestUnits));
  ask("median of budgets", budgets.quantile(0.5), kAskedMedianBudgets);
  for (std::size_t i = 0; i < features.size(); ++i) ask(kFeatureNames[i], features[i], steps / 100);
  return text;
}

std::string TrialCounts::line() const {
  return fmt::format(
      "{} steps, {} budgets: differing optima {}, plans over budget {}, wrong infeasible answers {}, wrong smallest "
      "peaks {}, optima without proof {}, wrong figures {}, wrong models {}, wrong ties {}",
      steps, budgets.sum(), differing, over_budget, wrong_infeasible, wrong_smallest, unproved, wrong_figures,
      wrong_models, wrong_ties);
}

std::string TrialCounts::text() const {
  const auto percent = [&](std::int64_t count) {
    return 100.0 * static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(1, steps));
  };
  std::string text = fmt::format(
      "{} steps ({} passed over: too many plans, fewer than 20, fewer than 3 candidate units, or no unit helps)\n",
      steps, passed_over);
  const auto histogram = [&](const char* name, const Histogram& h, bool by_powers) {
    text += fmt::format("{}: least {}, median {}, most {}\n{}", name, h.quantile(0), h.quantile(0.5), h.quantile(1),
                        h.text(by_powers));
  };
  histogram("legal plans, all replayed", plans, true);
  histogram("candidate units", units, false);
  histogram("shared storages", shared, false);
  histogram("budgets per step", budgets, true);
  text += "steps with\n";
  for (std::size_t i = 0; i < features.size(); ++i)
    text += fmt::format("  {:<40} {:>10} {:6.2f} %\n", kFeatureNames[i], features[i], percent(features[i]));
  text += fmt::format("  {:<40} {:>10} {:6.2f} %\n", "a model that is exact", exact, percent(exact));
  text += fmt::format("  {:<40} {:>10} {:6.2f} %\n", "groups saved for nothing in the model", given, percent(given));
  text += "answers\n";
  for (std::size_t i = 0; i < terminations.size(); ++i)
    text += fmt::format("  {:<40} {:>10}\n", planner::kTerminationNames[i], terminations[i]);
  text += line() + "\n";
  for (const std::string& one : faults) text += one + "\n";
  return text;
}

void compare_with_all(const ComparedStep& compared, const planner::PreparedStep& prepared,
                      const std::vector<Tried>& tried, TrialCounts& counts) {
  Comparison(compared, prepared, tried, counts).run();
}

void try_step(std::uint64_t seed, std::int64_t most, TrialCounts& counts) {
  const Kind kind = kind_of(seed);
  const RandomTraining t = random_training(seed, kind.training);
  Random random(seed);
  memory::WorkspaceTable table;
  if (kind.has_workspace) table = likely_workspace(t.step, random);
  PlannerOptions options;
  options.workspace = kind.has_workspace ? &table : nullptr;
  options.against = kind.is_rounded ? planner::Against::kRounded : planner::Against::kExact;
  constexpr std::array<std::int64_t, 3> kRoundings = {kCudaRoundingBytes, 48, 4096};  // of devices
  options.rounding_bytes = kRoundings[seed % kRoundings.size()];
  const planner::Space space = planner::find_space(t.step, t.times);
  std::vector<Tried> tried;
  if (space.candidates.size() >= kFewestUnits && (seed % kTrivialShare == 0 || helps(t.step, space, options)))
    tried = try_all(t.step, t.times, most, options.workspace, planner::rounding_of(options));
  if (tried.size() < kFewestPlans) {
    ++counts.passed_over;
    return;
  }
  const cost::StepCost cost = cost_of(t.times);
  const planner::PreparedStep prepared(t.step, cost, options);
  const ComparedStep compared{
      .name = fmt::format("seed {}{}{}{}", seed, kind.has_workspace ? " workspace" : "",
                          kind.is_rounded ? " rounded" : "", kind.training.may_be_odd ? " odd" : ""),
      .seed = seed};
  Comparison comparison(compared, prepared, tried, counts);
  comparison.run();
  const std::int64_t shared = count_shared(t.step);
  counts.shared.add(shared);
  Flags flags = features_of(t, kind, shared);
  flag(flags, Feature::kTies) = comparison.has_tie();
  for (std::size_t i = 0; i < flags.size(); ++i) counts.features[i] += flags[i] ? 1 : 0;
}

}  // namespace tidemark::test
