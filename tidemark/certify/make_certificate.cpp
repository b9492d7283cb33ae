#include "tidemark/certify/make_certificate.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tidemark/certify/prove_part.h"
#include "tidemark/planner/build_problem.h"
#include "tidemark/planner/prepared.h"
#include "tidemark/step/fingerprint.h"
#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/plan_time.h"

namespace tidemark::certify {

namespace {

using planner::Termination;
using verify::Claim;

class Maker {
 public:
  Maker(const step::Step& step, const planner::Times& times, const planner::PlannerOptions& options,
        const planner::PlanResult& result, const CertifyOptions& limits)
      : step_(step), times_(times), options_(options), result_(result), limits_(limits) {}

  Certified run(const std::string& device, const Hash128& plan_hash) {
    const bool is_infeasible = result_.termination == Termination::kInfeasible;
    const bool has_plan = result_.termination == Termination::kFits || result_.termination == Termination::kOptimal ||
                          result_.termination == Termination::kFeasible;
    if (!is_infeasible && !has_plan) return {std::nullopt, "nothing was found that could be proved"};
    c_.step = step::fingerprint(step_);
    c_.device = device;
    c_.times = verify::hash_of(times_);
    if (options_.workspace != nullptr) c_.workspace = verify::hash_of(*options_.workspace);
    c_.room_bytes = planner::room_of(options_);
    c_.against = planner::kAgainstNames[static_cast<std::size_t>(options_.against)];
    c_.rounding_bytes = planner::rounding_of(options_);
    c_.space = options_.space;
    if (has_plan) {
      c_.plan = plan_hash;
      c_.bound_ps = result_.bound_ps;
      c_.claim = result_.bound_ps == result_.recompute_ps ? Claim::kOptimal : Claim::kBound;
      if (c_.bound_ps == 0 && c_.claim == Claim::kBound) return {std::nullopt, "there is no bound to prove"};
      if (c_.bound_ps == 0) return {std::move(c_), {}};
    }
    const planner::Space space = planner::find_space(step_, times_, options_.space);
    const planner::Problem problem = planner::build_sharpest_problem(step_, space, planner::problem_options(options_));
    if (is_infeasible) return prove_infeasible(problem);
    return prove_bound(space, problem);
  }

 private:
  Certified prove_infeasible(const planner::Problem& problem) {
    c_.claim = Claim::kInfeasible;
    c_.least_peak_bytes = problem.ground_bytes;
    for (const auto* side : {&problem.episodes, &problem.forward_episodes})
      for (const planner::Episode& episode : *side)
        c_.least_peak_bytes = std::max(c_.least_peak_bytes, verify::find_least_peaks(episode).from_state[0]);
    if (c_.least_peak_bytes <= c_.room_bytes)
      return {std::nullopt, "that nothing fits follows from replays, not from the model"};
    return {std::move(c_), {}};
  }

  Certified prove_bound(const planner::Space& space, const planner::Problem& problem) {
    const auto has_units = [](const planner::Episode& episode) {
      return std::any_of(episode.arcs.begin(), episode.arcs.end(),
                         [](const planner::Arc& arc) { return arc.is_unit(); });
    };
    if (c_.claim == Claim::kBound && std::count_if(problem.episodes.begin(), problem.episodes.end(), has_units) > 1)
      return {std::nullopt, "a bound for several micro-batches together has no certificate"};
    for (std::size_t i = 0; i < problem.episodes.size(); ++i) {
      verify::PartProof part;
      if (has_units(problem.episodes[i]))
        part.bound_ps = c_.claim == Claim::kOptimal ? time_in(space, problem.episodes[i]) : c_.bound_ps;
      if (part.bound_ps > 0) {
        const PartProver prover(problem, i, c_.room_bytes, limits_.max_entries - entries_);
        const verify::PathAnswer answer = prover.prove(part);
        entries_ += part.entries;
        if (answer == verify::PathAnswer::kTooManyEntries)
          return {std::nullopt, "checking it would take too many entries"};
        if (answer == verify::PathAnswer::kFound)
          return {std::nullopt, "the model has a faster way, which no replay confirms"};
      }
      c_.parts.push_back(std::move(part));
    }
    return {std::move(c_), {}};
  }

  // What the plan's units in a part of the step cost.
  std::int64_t time_in(const planner::Space& space, const planner::Episode& episode) const {
    std::set<step::CallId> calls;
    for (const planner::Arc& arc : episode.arcs)
      if (arc.is_unit()) calls.insert(space.candidates[arc.candidate].call);
    plan::Plan part;
    for (const plan::Unit& unit : result_.plan.units)
      if (calls.contains(unit.call)) part.units.push_back(unit);
    return verify::plan_time_ps(step_, part, times_);
  }

  const step::Step& step_;
  const planner::Times& times_;
  const planner::PlannerOptions& options_;
  const planner::PlanResult& result_;
  CertifyOptions limits_;
  std::int64_t entries_ = 0;  // of the parts so far
  verify::Certificate c_;
};

}  // namespace

Certified make_certificate(const step::Step& step, const cost::StepCost& cost, const planner::PlannerOptions& options,
                           const planner::PlanResult& result, const std::string& device, const Hash128& plan_hash,
                           const CertifyOptions& limits) {
  const planner::Times times = planner::times_of(cost);
  return Maker(step, times, options, result, limits).run(device, plan_hash);
}

}  // namespace tidemark::certify
