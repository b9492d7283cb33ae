#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tidemark/memory/replay.h"
#include "tidemark/planner/build_problem.h"
#include "tidemark/planner/exact.h"
#include "tidemark/planner/methods.h"
#include "tidemark/planner/planner.h"
#include "tidemark/planner/space.h"
#include "tidemark/planner/ties.h"

namespace tidemark::planner {

// A plan with what a replay and the times say of it.
struct Judged {
  plan::Plan plan;
  std::int64_t peak_bytes = 0;
  std::int64_t recompute_ps = 0;
};

// How a step's problem is built for these options.
ProblemOptions problem_options(const PlannerOptions& options);

// What a method gets to see of a step; refers to all of it.
struct PlanningInput {
  const step::Step& step;
  const Space& space;
  const Problem& problem;
  const Times& times;
  const PlannerOptions& options;
};
MethodInput method_input(const PlanningInput& input, std::int64_t room_bytes);

// All that planning a step does before it looks at the budget: the space of plans, its model with the solver, the
// policies replayed, the smallest peak. Many budgets then cost one preparation. Refers to the step and to the workspace
// table of the options, which must live longer; the options' budget, reserve and work limit are not used.
class PreparedStep {
 public:
  // Throws: Error for a pattern that matches nothing.
  PreparedStep(const step::Step& step, const cost::StepCost& cost, const PlannerOptions& options);

  // The cheapest plan whose peak is at most `room_bytes`, the budget without the reserve; or what the options' method
  // finds, if it is another one.
  PlanResult plan(std::int64_t room_bytes, std::int64_t max_work) const;

  const step::Step& step() const { return step_; }
  const PlannerOptions& options() const { return options_; }
  const Times& times() const { return times_; }
  // What a plan costs, with its interval.
  cost::Total recompute_of(const plan::Plan& plan) const;
  const Space& space() const { return space_; }
  const ExactSolver& solver() const { return *solver_; }
  const Judged& none() const { return none_; }
  // The plan with the smallest peak that is known.
  const Judged& smallest() const { return smallest_; }
  bool is_smallest_proved() const { return is_smallest_proved_; }
  // In the order of PlanResult::policies; whether one fits is for a budget to say.
  const std::vector<PolicyFigures>& policies() const { return policies_; }

  Judged judge(plan::Plan plan) const;
  // Time first, then the order of ties.h.
  bool is_better(const Judged& a, const Judged& b) const;
  // What judging a plan counts as, in units of the search's work.
  std::int64_t replay_work() const;
  // Whether going through all paths in order helps where the model says less than a replay.
  bool can_order() const;
  // Whether the step is small enough to look at all paths that take the least time, for the best of them.
  bool can_settle_ties() const { return can_settle_ties_; }
  // Whether it is so small that everything may take many times as long.
  bool is_small() const;

 private:
  void try_policies();
  void find_smallest();
  void look_for_smaller(std::int64_t work);
  // Whether the user's wishes allow it.
  bool is_of_space(const plan::Plan& plan) const;

  const step::Step& step_;
  PlannerOptions options_;
  cost::StepCost cost_;
  Times times_;
  Space space_;
  TieOrder ties_;
  memory::Replayer replayer_;
  std::unique_ptr<ExactSolver> solver_;
  Judged none_;
  Judged smallest_;
  bool is_smallest_proved_ = true;
  bool can_settle_ties_ = false;
  std::vector<PolicyFigures> policies_;
  std::vector<Judged> known_;  // plans that any budget may use: policies, and the smallest
};

}  // namespace tidemark::planner
