#include "tidemark/planner/prepared.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "tidemark/base/rounding.h"

namespace tidemark::planner {

namespace {

// The search for one budget.
class Search {
 public:
  Search(const PreparedStep& prepared, std::int64_t room_bytes, std::int64_t max_work)
      : p_(prepared),
        room_bytes_(room_bytes),
        max_work_(max_work),
        is_whole_(prepared.solver().problem().is_whole),
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
    if (!best_ || judged.recompute_ps < best_->recompute_ps) best_ = judged;
  }

  void search() {
    if (room_bytes_ < floor_bytes_ && is_whole_) return infeasible();
    // The model never says more than a replay, so that what it finds first is a bound for all plans; where it says
    // less, or fragments of a cache come on top, smaller budgets are tried until a replay agrees.
    constexpr int kTries = 6;
    const ExactSolver& solver = p_.solver();
    std::int64_t model_budget = room_bytes_;
    bool is_first = true;
    for (int i = 0; i < kTries; ++i) {
      const Solution solution = solver.solve({.budget_bytes = model_budget, .max_work = max_work_});
      result_.statistics.work += solution.statistics.work;
      result_.statistics.passes += solution.statistics.passes;
      result_.statistics.longest_list = std::max(result_.statistics.longest_list, solution.statistics.longest_list);
      if (is_first) result_.bound_ps = is_whole_ ? solution.bound_ps : 0;
      if (solution.paths.empty()) break;
      const Judged judged = p_.judge(plan_of(p_.space(), solver.problem(), solution.paths));
      note(judged);
      if (judged.peak_bytes <= room_bytes_) {
        const bool is_proved = is_first && is_whole_ && solution.end == SolveEnd::kOptimal;
        return finish(is_proved);
      }
      is_first = false;
      model_budget -= judged.peak_bytes - room_bytes_;
    }
    if (best_) return finish(false);
    if (is_first || room_bytes_ >= floor_bytes_) {
      take(smaller_ ? *smaller_ : p_.smallest(), Termination::kLimit);
      result_.plan = {};
      return;
    }
    infeasible();
  }

  // What another method found, and nothing else.
  void use(const MethodOutcome& outcome) {
    result_.statistics = outcome.statistics;
    if (room_bytes_ < floor_bytes_ && is_whole_) return infeasible();
    if (!outcome.plan) {
      take(p_.smallest(), outcome.reached_limit ? Termination::kLimit : Termination::kNotFound);
      result_.plan = {};
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
    const bool is_optimal = is_proved || best_->recompute_ps <= result_.bound_ps;
    take(*best_, is_optimal ? Termination::kOptimal : Termination::kFeasible);
    result_.bound_ps = std::min(result_.bound_ps, result_.recompute_ps);
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
  bool is_whole_;
  std::int64_t floor_bytes_;
  std::optional<Judged> smaller_;  // than what was known
  std::optional<Judged> best_;     // of those that fit
  PlanResult result_;
};

}  // namespace

ProblemOptions problem_options(const PlannerOptions& options) {
  return {.workspace = options.workspace,
          .round_to_bytes = options.against == Against::kExact ? 1 : kCudaRoundingBytes};
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
    : step_(step), options_(options), times_(times_of(cost)), space_(find_space(step, times_, options.space)) {
  none_ = judge({});
  smallest_ = none_;
  solver_ = std::make_unique<ExactSolver>(build_problem(step, space_, problem_options(options)));
  try_policies();
  find_smallest();
}

PlanResult PreparedStep::plan(std::int64_t room_bytes, std::int64_t max_work) const {
  return Search(*this, room_bytes, max_work).run(known_);
}

Judged PreparedStep::judge(plan::Plan plan) const {
  Judged judged;
  judged.peak_bytes = peak_of(step_, plan, options_);
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
    policies_.push_back({policy, judged.peak_bytes, judged.recompute_ps, false});
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

void PreparedStep::find_smallest() {
  Judged judged = judge(plan_of(space_, solver_->problem(), solver_->smallest_paths()));
  if (judged.peak_bytes < smallest_.peak_bytes) smallest_ = judged;
  known_.push_back(std::move(judged));
  is_smallest_proved_ = solver_->problem().is_whole && options_.against != Against::kReserved &&
                        smallest_.peak_bytes == solver_->smallest_peak_bytes();
}

}  // namespace tidemark::planner
