#include "tidemark/certify/make_certificate.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tidemark/certify/prices.h"
#include "tidemark/planner/build_problem.h"
#include "tidemark/planner/prepared.h"
#include "tidemark/step/fingerprint.h"
#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/path_check.h"
#include "tidemark/verify/plan_time.h"
#include "tidemark/verify/time_lines.h"

namespace tidemark::certify {

namespace {

using planner::Termination;
using verify::Claim;

constexpr std::int64_t kFewEntries = 3'000'000;
constexpr std::int64_t kManyEntries = 40'000'000;

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
    const planner::Problem problem = planner::build_whole_problem(step_, space, planner::problem_options(options_));
    if (!problem.is_whole) return {std::nullopt, "the step has more choices than the model of it takes in"};
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
    std::int64_t entries_left = limits_.max_entries;
    for (const planner::Episode& episode : problem.episodes) {
      verify::PartProof part;
      if (has_units(episode)) part.bound_ps = c_.claim == Claim::kOptimal ? time_in(space, episode) : c_.bound_ps;
      if (part.bound_ps > 0) {
        const verify::LeastPeaks peaks = verify::find_least_peaks(episode);
        part.prices = choose_prices(episode, peaks.from_state, c_.room_bytes);
        std::vector<std::int64_t> prices = {0};
        prices.insert(prices.end(), part.prices.begin(), part.prices.end());
        const verify::TimeLines lines(episode, peaks, c_.room_bytes, std::move(prices));
        // Prices alone do for most; where very many ways look alike, residues or all sums of units tell them apart.
        verify::PathQuestion question{.room_bytes = c_.room_bytes,
                                      .target_ps = part.bound_ps - 1,
                                      .max_entries = std::min(entries_left, kFewEntries)};
        verify::PathCheck check = verify::look_for_path(episode, peaks, lines, question);
        if (check.answer == verify::PathAnswer::kTooManyEntries) {
          part.ring = question.ring = choose_ring(episode, c_.room_bytes, part.bound_ps);
          question.max_entries = std::min(entries_left, kManyEntries);
          if (part.ring.unit_bytes > 0) check = verify::look_for_path(episode, peaks, lines, question);
        }
        if (check.answer == verify::PathAnswer::kTooManyEntries) {
          part.ring = question.ring = {};
          part.unit_bytes = question.unit_bytes = choose_unit(episode, c_.room_bytes);
          question.max_entries = entries_left;
          check = verify::look_for_path(episode, peaks, lines, question);
        }
        part.entries = check.entries;
        entries_left -= check.entries;
        if (check.answer == verify::PathAnswer::kTooManyEntries)
          return {std::nullopt, "checking it would take too many entries"};
        if (check.answer == verify::PathAnswer::kFound)
          return {std::nullopt, problem.forward_episodes.empty()
                                    ? "the model has a faster way, which no replay confirms"
                                    : "it takes what the program holds in the forward, which checks do not know yet"};
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
