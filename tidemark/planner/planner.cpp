#include "tidemark/planner/planner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/base/rounding.h"
#include "tidemark/memory/caching_allocator.h"
#include "tidemark/memory/replay.h"
#include "tidemark/planner/build_problem.h"

namespace tidemark::planner {

namespace {

using namespace step;

// A plan with what a replay says of it.
struct Judged {
  plan::Plan plan;
  std::int64_t peak_bytes = 0;
  std::int64_t recompute_ps = 0;
};

class Planning {
 public:
  Planning(const Step& step, const cost::StepCost& cost, const PlannerOptions& options)
      : step_(step),
        options_(options),
        times_(times_of(cost)),
        room_bytes_(options.budget_bytes - options.reserve_bytes) {}

  std::optional<LinearModel> model() {
    space_ = find_space(step_, times_, options_.space);
    return model_of(method_input(find_problem()));
  }

  PlanResult run() {
    const Judged none = judge({});
    result_.unplanned_peak_bytes = none.peak_bytes;
    space_ = find_space(step_, times_, options_.space);
    result_.excluded = space_.excluded;
    result_.candidate_count = static_cast<std::int64_t>(space_.candidates.size());
    try_policies(none);
    Problem problem = find_problem();
    is_whole_ = problem.is_whole;
    const ExactSolver solver(std::move(problem));
    find_smallest(solver);
    const bool is_exact = options_.method.method == Method::kExact;
    const MethodOutcome outcome = is_exact ? MethodOutcome() : run_method(method_input(solver.problem()));
    result_.own = outcome.own;
    if (none.peak_bytes <= room_bytes_) {
      take(none, Termination::kFits);
      result_.bound_ps = 0;
    } else if (is_exact) {
      search(solver);
    } else {
      use(outcome);
    }
    note_restored();
    return std::move(result_);
  }

 private:
  Problem find_problem() const {
    const std::int64_t round_to = options_.against == Against::kExact ? 1 : kCudaRoundingBytes;
    return build_problem(step_, space_, {.workspace = options_.workspace, .round_to_bytes = round_to});
  }

  Judged judge(plan::Plan plan) const {
    Judged judged;
    judged.peak_bytes = peak_of(step_, plan, options_);
    judged.recompute_ps = plan.units.empty() ? 0 : recompute_ps(step_, index(), times_, plan);
    judged.plan = std::move(plan);
    return judged;
  }

  const plan::EventIndex& index() const {
    if (!index_) index_ = plan::index_events(step_);
    return *index_;
  }

  void try_policies(const Judged& none) {
    using plan::PolicyKind;
    static constexpr std::array<plan::Policy, 6> kPolicies = {{{PolicyKind::kNone, 1},
                                                               {PolicyKind::kFull, 1},
                                                               {PolicyKind::kEvery, 2},
                                                               {PolicyKind::kEvery, 3},
                                                               {PolicyKind::kEvery, 4},
                                                               {PolicyKind::kSelective, 1}}};
    smallest_ = none;
    for (const plan::Policy& policy : kPolicies) {
      const Judged judged = policy.kind == PolicyKind::kNone
                                ? none
                                : judge(plan::make_plan(step_, policy, {.early_stop = options_.space.early_stop}));
      const bool fits = judged.peak_bytes <= room_bytes_;
      result_.policies.push_back({policy, judged.peak_bytes, judged.recompute_ps, fits});
      if (!is_of_space(judged.plan)) continue;
      note(judged);
    }
  }

  // Whether the user's wishes allow it.
  bool is_of_space(const plan::Plan& plan) const {
    const SpaceOptions& wishes = options_.space;
    if (plan.units.empty()) return true;
    return wishes.units.empty() && wishes.not_units.empty() && wishes.always_save.empty() &&
           wishes.never_save.empty() && wishes.rng != RngRule::kNever;
  }

  // A plan that may be used.
  void note(const Judged& judged) {
    if (judged.peak_bytes < smallest_.peak_bytes) smallest_ = judged;
    if (judged.peak_bytes > room_bytes_) return;
    if (!best_ || judged.recompute_ps < best_->recompute_ps) best_ = judged;
  }

  void find_smallest(const ExactSolver& solver) {
    constexpr std::int64_t kWork = 2'000'000;  // any path will do
    const Solution solution = solver.solve_smallest(kWork);
    if (!solution.paths.empty()) note(judge(plan_of(space_, solver.problem(), solution.paths)));
    result_.smallest_peak_bytes = smallest_.peak_bytes;
    result_.is_smallest_proved =
        is_whole_ && options_.against != Against::kReserved && smallest_.peak_bytes == solver.smallest_peak_bytes();
    floor_bytes_ = solver.smallest_peak_bytes();
  }

  void search(const ExactSolver& solver) {
    if (room_bytes_ < floor_bytes_ && is_whole_) return infeasible();
    // The model never says more than a replay, so that what it finds first is a bound for all plans; where it says
    // less, or fragments of a cache come on top, smaller budgets are tried until a replay agrees.
    constexpr int kTries = 6;
    std::int64_t model_budget = room_bytes_;
    bool is_first = true;
    for (int i = 0; i < kTries; ++i) {
      const Solution solution = solver.solve({.budget_bytes = model_budget, .max_work = options_.max_work});
      result_.statistics.work += solution.statistics.work;
      result_.statistics.passes += solution.statistics.passes;
      result_.statistics.longest_list = std::max(result_.statistics.longest_list, solution.statistics.longest_list);
      if (is_first) result_.bound_ps = is_whole_ ? solution.bound_ps : 0;
      if (solution.paths.empty()) break;
      const Judged judged = judge(plan_of(space_, solver.problem(), solution.paths));
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
      take(smallest_, Termination::kLimit);
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
      take(smallest_, outcome.reached_limit ? Termination::kLimit : Termination::kNotFound);
      result_.plan = {};
      return;
    }
    const Judged judged = judge(*outcome.plan);
    take(judged, outcome.bound_ps >= judged.recompute_ps ? Termination::kOptimal : Termination::kFeasible);
    result_.bound_ps = std::min(outcome.bound_ps, judged.recompute_ps);
  }

  MethodInput method_input(const Problem& problem) const {
    return {.step = step_,
            .space = space_,
            .wishes = options_.space,
            .problem = problem,
            .times = times_,
            .room_bytes = room_bytes_,
            .peak_of = [this](const plan::Plan& plan) { return peak_of(step_, plan, options_); },
            .options = options_.method};
  }

  void finish(bool is_proved) {
    const bool is_optimal = is_proved || best_->recompute_ps <= result_.bound_ps;
    take(*best_, is_optimal ? Termination::kOptimal : Termination::kFeasible);
    result_.bound_ps = std::min(result_.bound_ps, result_.recompute_ps);
  }

  void infeasible() {
    take(smallest_, Termination::kInfeasible);
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
      for (const Candidate& candidate : space_.candidates)
        if (candidate.call == unit.call && candidate.changes_buffers) result_.restored.push_back(unit.call);
  }

  const Step& step_;
  const PlannerOptions& options_;
  Times times_;
  std::int64_t room_bytes_;
  Space space_;
  bool is_whole_ = true;
  std::int64_t floor_bytes_ = 0;
  mutable std::optional<plan::EventIndex> index_;
  Judged smallest_;             // of all plans seen
  std::optional<Judged> best_;  // of those that fit
  PlanResult result_;
};

}  // namespace

Times times_of(const cost::StepCost& cost) {
  Times times;
  times.op_ps.reserve(cost.ops.size());
  for (const cost::Time& time : cost.ops) times.op_ps.push_back(time.total_ps);
  times.region_ps = cost.region_ps;
  times.region_save_ps = cost.region_save_ps;
  times.region_rng_ps = cost.region_rng_ps;
  return times;
}

std::int64_t peak_of(const Step& step, const plan::Plan& plan, const PlannerOptions& options) {
  const bool is_reserved = options.against == Against::kReserved;
  const memory::Timeline timeline =
      memory::replay(step, plan,
                     {.workspace = options.workspace,
                      .round_to_bytes = options.against == Against::kExact ? 1 : kCudaRoundingBytes,
                      .keep_changes = is_reserved,
                      .keep_alive_at_peak = false,
                      .runner_up_count = 0});
  if (!is_reserved) return timeline.peak.total_bytes;
  return memory::use_caching_allocator(step, timeline, {}).peak_reserved_bytes;
}

namespace {

void check_budget(const PlannerOptions& options) {
  if (options.budget_bytes < 0 || options.reserve_bytes < 0 || options.reserve_bytes > options.budget_bytes)
    throw Error({.kind = ErrorKind::kInput,
                 .place = "budget",
                 .problem = "there is nothing left of the budget",
                 .expected = "a budget above the reserve",
                 .got = std::to_string(options.budget_bytes) + " B with a reserve of " +
                        std::to_string(options.reserve_bytes) + " B",
                 .remedy = "a larger budget, or a smaller reserve"});
}

}  // namespace

PlanResult plan_step(const Step& step, const cost::StepCost& cost, const PlannerOptions& options) {
  check_budget(options);
  return Planning(step, cost, options).run();
}

std::optional<LinearModel> method_model(const Step& step, const cost::StepCost& cost, const PlannerOptions& options) {
  check_budget(options);
  return Planning(step, cost, options).model();
}

}  // namespace tidemark::planner
