#include "tidemark/planner/prepared.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "tidemark/planner/convex.h"
#include "tidemark/planner/floors.h"
#include "tidemark/planner/ordered.h"
#include "tidemark/planner/polish.h"

namespace tidemark::planner {

namespace {

// Of the work allowed, one part in so many is for judging plans one by one.
constexpr std::int64_t kShareOfOrder = 20;
constexpr std::int64_t kShareOfPolish = 16;  // and for making one cheaper that was not proved

// The search for one budget.
class Search {
 public:
  Search(const PreparedStep& prepared, std::int64_t room_bytes, std::int64_t max_work)
      : p_(prepared),
        room_bytes_(room_bytes),
        max_work_(max_work),
        floor_bytes_(prepared.solver().smallest_peak_bytes()) {}

  PlanResult run(const std::vector<Judged>& known) {
    result_.unplanned_peak_bytes = p_.none().peak_bytes;
    result_.smallest_peak_bytes = p_.smallest().peak_bytes;
    result_.is_smallest_proved = p_.is_smallest_proved();
    result_.excluded = p_.space().excluded;
    result_.candidate_count = static_cast<std::int64_t>(p_.space().candidates.size());
    result_.policies = p_.policies();
    for (PolicyFigures& figures : result_.policies) figures.fits = figures.peak_bytes <= room_bytes_;
    for (const Judged& judged : known) note(judged);
    const bool is_exact = p_.options().method.method == Method::kExact;
    const MethodOutcome outcome = is_exact ? MethodOutcome() : run_method(method_input());
    result_.own = outcome.own;
    if (p_.none().peak_bytes <= room_bytes_)
      take(p_.none(), Termination::kFits);
    else if (is_exact)
      search();
    else
      use(outcome);
    note_restored();
    return std::move(result_);
  }

 private:
  // A plan that may be used.
  void note(const Judged& judged) {
    if (judged.peak_bytes < result_.smallest_peak_bytes) {  // a replay may be kinder than what was searched for
      result_.smallest_peak_bytes = judged.peak_bytes;
      smaller_ = judged;
    }
    if (judged.peak_bytes > room_bytes_) return;
    if (!best_ || p_.is_better(judged, *best_)) best_ = judged;
  }

  void search() {
    if (room_bytes_ < floor_bytes_) return infeasible();
    if (p_.is_smallest_proved() && room_bytes_ < p_.smallest().peak_bytes) return infeasible();
    // The model never says more than a replay, so that what it finds first is a bound for all plans; where it says
    // less, or fragments of a cache come on top, smaller budgets are tried until a replay agrees.
    constexpr int kTries = 6;
    const ExactSolver& solver = p_.solver();
    std::int64_t model_budget = room_bytes_;
    bool is_first = true;
    for (int i = 0; i < kTries; ++i) {
      const Solution solution = solve(model_budget);
      if (is_first) result_.bound_ps = solution.bound_ps;
      if (is_first && solution.end == SolveEnd::kInfeasible) return infeasible();
      if (solution.paths.empty()) break;
      const Judged judged = p_.judge(plan_of(p_.space(), solver.problem(), solution.paths));
      note(judged);
      if (judged.peak_bytes <= room_bytes_) {
        const bool is_proved = is_first && solution.end == SolveEnd::kOptimal;
        if (is_first || !p_.can_order()) return finish(is_proved);
        break;
      }
      is_first = false;
      if (p_.options().against == Against::kReserved) {
        halve_down();
        break;
      }
      model_budget -= judged.peak_bytes - room_bytes_;
    }
    if (!is_first && p_.can_order()) return settle();
    if (best_) return finish(false);
    if (is_first || room_bytes_ >= floor_bytes_) {
      take(smaller_ ? *smaller_ : p_.smallest(), Termination::kLimit);
      return;
    }
    infeasible();
  }

  Solution solve(std::int64_t model_budget) {
    const std::int64_t left = std::max<std::int64_t>(max_work_ - result_.statistics.work, max_work_ / kShareOfOrder);
    Solution solution = p_.solver().solve({.budget_bytes = model_budget, .max_work = left});
    result_.statistics.work += solution.statistics.work;
    result_.statistics.passes += solution.statistics.passes;
    result_.statistics.longest_list = std::max(result_.statistics.longest_list, solution.statistics.longest_list);
    return solution;
  }

  // Fragments of a cache come on top of the model: halves the budgets of the model down to one whose plan fits with
  // them and the next whose plan does not. They are the step's own and not this one's, and what fits a budget fits any
  // larger one, so that more room never ends lower.
  void halve_down() {
    constexpr std::int64_t kParts = 1024;
    const std::int64_t range = std::max<std::int64_t>(p_.none().peak_bytes - floor_bytes_, 1);
    const auto fits = [&](std::int64_t part) {
      const std::int64_t model_budget =
          floor_bytes_ + static_cast<std::int64_t>(static_cast<Int128>(range) * part / kParts);
      if (model_budget > room_bytes_) return false;
      const Solution solution = solve(model_budget);
      if (solution.paths.empty()) return false;
      const Judged judged = p_.judge(plan_of(p_.space(), p_.solver().problem(), solution.paths));
      result_.statistics.work += p_.replay_work();
      note(judged);
      return judged.peak_bytes <= room_bytes_;
    };
    std::int64_t low = 0;
    std::int64_t high = kParts;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
  }

  // All paths of the model, cheapest first, until a replay agrees with one.
  void settle() {
    const std::int64_t work = max_work_ / kShareOfOrder;
    OrderedPaths ordered(p_.solver().problem(), By::kTime, room_bytes_, work);
    std::int64_t judged_work = 0;
    bool is_limit = false;
    while (!is_limit) {
      const auto paths = ordered.next(best_ ? best_->recompute_ps - 1 : kNoPath - 1);
      if (!paths) break;
      const Judged judged = p_.judge(plan_of(p_.space(), p_.solver().problem(), *paths));
      note(judged);
      judged_work += p_.replay_work();
      is_limit = ordered.work() + judged_work > work;
    }
    result_.statistics.work += ordered.work() + judged_work;
    is_limit = is_limit || ordered.reached_limit();
    if (!is_limit && !best_) return infeasible();
    const std::int64_t reached = best_ ? std::min(ordered.bound(), best_->recompute_ps) : ordered.bound();
    result_.bound_ps = std::max(result_.bound_ps, reached);
    if (best_) return finish(!is_limit);
    take(smaller_ ? *smaller_ : p_.smallest(), Termination::kLimit);
  }

  // What another method found, and nothing else.
  void use(const MethodOutcome& outcome) {
    result_.statistics = outcome.statistics;
    if (room_bytes_ < floor_bytes_) return infeasible();
    if (!outcome.plan) {
      take(p_.smallest(), outcome.reached_limit ? Termination::kLimit : Termination::kNotFound);
      return;
    }
    const Judged judged = p_.judge(*outcome.plan);
    take(judged, outcome.bound_ps >= judged.recompute_ps ? Termination::kOptimal : Termination::kFeasible);
    result_.bound_ps = std::min(outcome.bound_ps, judged.recompute_ps);
  }

  MethodInput method_input() const {
    return planner::method_input({p_.step(), p_.space(), p_.solver().problem(), p_.times(), p_.options()}, room_bytes_);
  }

  void finish(bool is_proved) {
    // Against reserved bytes, more room must not end dearer, which single changes do not know.
    if (!is_proved && p_.options().against != Against::kReserved) polish_best();
    const bool is_optimal = is_proved || best_->recompute_ps <= result_.bound_ps;
    if (is_optimal && p_.can_settle_ties())
      settle_ties();
    else if (is_optimal && p_.is_small())
      settle_peak();
    take(*best_, is_optimal ? Termination::kOptimal : Termination::kFeasible);
    result_.bound_ps = std::min(result_.bound_ps, result_.recompute_ps);
  }

  void polish_best() {
    if (best_->recompute_ps <= result_.bound_ps) return;
    Polished polished = polish(p_, *best_, room_bytes_, max_work_ / kShareOfPolish);
    best_ = std::move(polished.judged);
    result_.statistics.work += polished.work;
  }

  // Looks at all paths that take the least time.
  void settle_ties() {
    OrderedPaths ordered(p_.solver().problem(), By::kTime, room_bytes_, max_work_);
    while (const auto paths = ordered.next(best_->recompute_ps)) {
      const Judged judged = p_.judge(plan_of(p_.space(), p_.solver().problem(), *paths));
      if (judged.peak_bytes <= room_bytes_ && p_.is_better(judged, *best_)) best_ = judged;
      result_.statistics.work += p_.replay_work();
    }
    result_.statistics.work += ordered.work();
  }

  // The lowest peak of what takes as little time: a plan that depends on the time alone, so that a smaller budget never
  // has the higher peak. Halves what lies between the lowest peak with that time and one that is too low for it.
  void settle_peak() {
    std::int64_t too_low = std::max(floor_bytes_, p_.solver().smallest_peak_bytes()) - 1;
    std::int64_t tried = best_->peak_bytes - 1;  // most often it is the lowest
    while (tried > too_low) {
      const Solution solution = p_.solver().solve({.budget_bytes = tried, .max_work = max_work_});
      result_.statistics.work += solution.statistics.work;
      if (solution.end == SolveEnd::kLimit) return;
      if (solution.paths.empty() || solution.time_ps > best_->recompute_ps) {
        too_low = tried;
      } else {
        const Judged judged = p_.judge(plan_of(p_.space(), p_.solver().problem(), solution.paths));
        if (judged.peak_bytes > tried) return look_for_lower();  // the model says less than the replay
        best_ = judged;
      }
      tried = too_low + (best_->peak_bytes - too_low) / 2;
    }
  }

  // The same where a replay says more than the model: all paths that take as little time.
  void look_for_lower() {
    const std::int64_t work = max_work_ / kShareOfOrder;
    OrderedPaths ordered(p_.solver().problem(), By::kTime, best_->peak_bytes - 1, work);
    std::int64_t judged_work = 0;
    while (ordered.work() + judged_work <= work) {
      const auto paths = ordered.next(best_->recompute_ps);
      if (!paths) break;
      const Judged judged = p_.judge(plan_of(p_.space(), p_.solver().problem(), *paths));
      judged_work += p_.replay_work();
      if (judged.recompute_ps == best_->recompute_ps && judged.peak_bytes < best_->peak_bytes) best_ = judged;
    }
    result_.statistics.work += ordered.work() + judged_work;
  }

  void infeasible() {
    take(smaller_ ? *smaller_ : p_.smallest(), Termination::kInfeasible);
    result_.bound_ps = 0;
  }

  void take(const Judged& judged, Termination termination) {
    result_.termination = termination;
    result_.plan = judged.plan;
    result_.peak_bytes = judged.peak_bytes;
    result_.recompute_ps = judged.recompute_ps;
  }

  void note_restored() {
    for (const plan::Unit& unit : result_.plan.units)
      for (const Candidate& candidate : p_.space().candidates)
        if (candidate.call == unit.call && candidate.changes_buffers) result_.restored.push_back(unit.call);
  }

  const PreparedStep& p_;
  std::int64_t room_bytes_;
  std::int64_t max_work_;
  std::int64_t floor_bytes_;
  std::optional<Judged> smaller_;  // than what was known
  std::optional<Judged> best_;     // of those that fit
  PlanResult result_;
};

// Whether all paths can be looked at, for any budget: what a budget allows must not decide which of two plans is
// better.
bool has_few_paths(const Problem& problem) {
  constexpr double kFew = 2000;
  double all = 1;
  for (const Episode& episode : problem.episodes) {
    std::vector<double> count(episode.state_count, 0);
    count.back() = 1;
    for (std::uint32_t state = episode.state_count - 1; state-- > 0;)
      for (std::uint32_t a = episode.first_arc[state]; a < episode.first_arc[state + 1]; ++a)
        count[state] += std::ldexp(count[episode.arcs[a].to], static_cast<int>(episode.arcs[a].groups.size()));
    all *= count[0];
  }
  return all <= kFew;
}

}  // namespace

ProblemOptions problem_options(const PlannerOptions& options) {
  return {.workspace = options.workspace, .round_to_bytes = rounding_of(options)};
}

MethodInput method_input(const PlanningInput& input, std::int64_t room_bytes) {
  return {.step = input.step,
          .space = input.space,
          .wishes = input.options.space,
          .problem = input.problem,
          .times = input.times,
          .room_bytes = room_bytes,
          .peak_of = [&step = input.step,
                      &options = input.options](const plan::Plan& plan) { return peak_of(step, plan, options); },
          .options = input.options.method};
}

PreparedStep::PreparedStep(const step::Step& step, const cost::StepCost& cost, const PlannerOptions& options)
    : step_(step),
      options_(options),
      cost_(cost),
      times_(times_of(cost)),
      space_(find_space(step, times_, options.space)),
      ties_(step, space_),
      replayer_(step, replay_options(options)) {
  none_ = judge({});
  smallest_ = none_;
  solver_ = std::make_unique<ExactSolver>(build_sharpest_problem(step, space_, problem_options(options)));
  can_settle_ties_ = can_order() && has_few_paths(solver_->problem());
  try_policies();
  find_smallest();
}

PlanResult PreparedStep::plan(std::int64_t room_bytes, std::int64_t max_work) const {
  PlanResult result = Search(*this, room_bytes, max_work).run(known_);
  if (result.plan.units.empty()) return result;
  const Rerun rerun = rerun_of(step_, space_.index, result.plan);
  result.recompute = cost::total_of(cost_, rerun.ops, rerun.regions);
  result.unpriced = cost::unpriced_of(step_, cost_, rerun.ops);
  return result;
}

cost::Total PreparedStep::recompute_of(const plan::Plan& plan) const {
  if (plan.units.empty()) return {};
  const Rerun rerun = rerun_of(step_, space_.index, plan);
  return cost::total_of(cost_, rerun.ops, rerun.regions);
}

Judged PreparedStep::judge(plan::Plan plan) const {
  Judged judged;
  judged.peak_bytes = peak_of(replayer_, step_, plan, options_.against);
  judged.recompute_ps = plan.units.empty() ? 0 : recompute_ps(step_, space_.index, times_, plan);
  judged.plan = std::move(plan);
  return judged;
}

void PreparedStep::try_policies() {
  using plan::PolicyKind;
  static constexpr std::array<plan::Policy, 6> kPolicies = {{{PolicyKind::kNone, 1},
                                                             {PolicyKind::kFull, 1},
                                                             {PolicyKind::kEvery, 2},
                                                             {PolicyKind::kEvery, 3},
                                                             {PolicyKind::kEvery, 4},
                                                             {PolicyKind::kSelective, 1}}};
  for (const plan::Policy& policy : kPolicies) {
    Judged judged = policy.kind == PolicyKind::kNone
                        ? none_
                        : judge(plan::make_plan(step_, policy, {.early_stop = options_.space.early_stop}));
    const cost::Total total = recompute_of(judged.plan);
    policies_.push_back({policy, judged.peak_bytes, judged.recompute_ps, false, {total.low_ps, total.high_ps}});
    if (!is_of_space(judged.plan)) continue;
    if (judged.peak_bytes < smallest_.peak_bytes) smallest_ = judged;
    known_.push_back(std::move(judged));
  }
}

bool PreparedStep::is_of_space(const plan::Plan& plan) const {
  const SpaceOptions& wishes = options_.space;
  if (plan.units.empty()) return true;
  return wishes.units.empty() && wishes.not_units.empty() && wishes.always_save.empty() && wishes.never_save.empty() &&
         wishes.rng != RngRule::kNever;
}

bool PreparedStep::is_small() const { return is_small_step(step_, space_); }

bool PreparedStep::can_order() const {
  // What the model saves for nothing is saved on all of its paths.
  return solver_->problem().given_count == 0 && options_.against != Against::kReserved;
}

bool PreparedStep::is_better(const Judged& a, const Judged& b) const {
  return a.recompute_ps != b.recompute_ps ? a.recompute_ps < b.recompute_ps : ties_.is_better(a.plan, b.plan);
}

std::int64_t PreparedStep::replay_work() const { return static_cast<std::int64_t>(step_.tables().events.size()); }

void PreparedStep::find_smallest() {
  for (const std::vector<Path>& paths : solver_->smallest_paths()) {
    Judged judged = judge(plan_of(space_, solver_->problem(), paths));
    if (judged.peak_bytes < smallest_.peak_bytes) smallest_ = judged;
    known_.push_back(std::move(judged));
  }
  is_smallest_proved_ =
      options_.against != Against::kReserved && smallest_.peak_bytes == solver_->smallest_peak_bytes();
  constexpr std::int64_t kWork = 2'000'000;
  if (!is_smallest_proved_ && can_order()) look_for_smaller(kWork);
}

// All paths of the model, lowest first, until none can be lower than the lowest by replay.
void PreparedStep::look_for_smaller(std::int64_t work) {
  OrderedPaths ordered(solver_->problem(), By::kPeak, smallest_.peak_bytes - 1, work);
  std::int64_t judged_work = 0;
  while (ordered.work() + judged_work <= work) {
    const auto paths = ordered.next(smallest_.peak_bytes - 1);
    if (!paths) {
      is_smallest_proved_ = !ordered.reached_limit();
      return;
    }
    Judged judged = judge(plan_of(space_, solver_->problem(), *paths));
    judged_work += replay_work();
    if (judged.peak_bytes >= smallest_.peak_bytes) continue;
    smallest_ = judged;
    known_.push_back(std::move(judged));
  }
}

}  // namespace tidemark::planner
