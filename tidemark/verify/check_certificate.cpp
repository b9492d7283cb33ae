#include "tidemark/verify/check_certificate.h"

#include <fmt/format.h>

#include <algorithm>

#include "tidemark/base/bytes.h"
#include "tidemark/base/duration.h"
#include "tidemark/base/error.h"
#include "tidemark/planner/build_problem.h"
#include "tidemark/step/fingerprint.h"
#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/path_check.h"
#include "tidemark/verify/plan_time.h"
#include "tidemark/verify/priced_side.h"
#include "tidemark/verify/sides.h"
#include "tidemark/verify/time_lines.h"
#include "tidemark/verify/two_sided_check.h"
#include "tidemark/verify/verify_plan.h"

namespace tidemark::verify {

namespace {

// One question after the other; the first that fails is the answer.
class Check {
 public:
  Check(const Certificate& certificate, const CheckInput& input) : c_(certificate), in_(input) {}

  CertificateVerdict run() {
    CertificateVerdict verdict;
    verdict.holds = is_of_this_question() && is_of_this_plan() && is_proved();
    verdict.problem = std::move(problem_);
    verdict.entries = entries_;
    return verdict;
  }

 private:
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  bool is_of_this_question() {
    if (step::fingerprint(in_.step) != c_.step) return fail("the certificate is of another step");
    if (hash_of(in_.times) != c_.times)
      return fail(
          fmt::format("the certificate was made for other times of the step's ops than those of this device; it "
                      "names the device {}",
                      c_.device));
    if (c_.workspace.has_value() != (in_.workspace != nullptr))
      return fail(c_.workspace ? "the certificate was made with a table of kernels' scratch memory, and there is none"
                               : "the certificate was made without a table of kernels' scratch memory");
    if (c_.workspace && hash_of(*in_.workspace) != *c_.workspace)
      return fail("the certificate was made with another table of kernels' scratch memory");
    const std::int64_t rounding = plan::rounding_of(c_.against, c_.rounding_bytes);
    if (c_.against == "rounded" && in_.device_rounding_bytes.value_or(rounding) != rounding)
      return fail(fmt::format("the certificate is for sizes rounded up to {} B, and the device rounds them up to {} B",
                              rounding, *in_.device_rounding_bytes));
    return true;
  }

  bool is_of_this_plan() {
    const bool has_plan = c_.claim != Claim::kInfeasible;
    if (has_plan != c_.plan.has_value() || (has_plan && in_.plan == nullptr) || (!has_plan && in_.plan != nullptr))
      return fail(has_plan ? "the certificate is for a plan, and there is none"
                           : "the certificate says that nothing fits, and there is a plan");
    if (!has_plan) return true;
    if (in_.plan_hash != *c_.plan) return fail("the certificate is of another plan");
    const plan::PlanFacts& facts = in_.plan->facts;
    if (facts.device != c_.device) return fail("the certificate is about another device than the plan");
    if (c_.least_peak_bytes != 0) return fail("the certificate has a smallest peak, as only one that nothing fits has");
    if (facts.budget_bytes - facts.reserve_bytes != c_.room_bytes || facts.against != c_.against)
      return fail("the certificate is for another budget than the plan");
    const std::int64_t plan_rounding = plan::rounding_of(facts.against, facts.rounding_bytes);
    const std::int64_t rounding = plan::rounding_of(c_.against, c_.rounding_bytes);
    if (plan_rounding != rounding)
      return fail(fmt::format("the certificate is for sizes rounded up to {} B, and the plan for {} B", rounding,
                              plan_rounding));
    const Verdict verdict = verify_plan(in_.step, *in_.plan, in_.workspace);
    if (!verdict.holds) return fail("the plan does not hold");
    const std::int64_t plan_ps = plan_time_ps(in_.step, in_.plan->plan, in_.times);
    if (c_.claim == Claim::kOptimal && plan_ps != c_.bound_ps)
      return fail(fmt::format("the plan takes {} ps, and the certificate says {} ps", plan_ps, c_.bound_ps));
    if (plan_ps < c_.bound_ps)
      return fail(fmt::format("the plan takes {} ps, less than the bound of {} ps", plan_ps, c_.bound_ps));
    return true;
  }

  // A claim about plans with some options is one about this plan only if it has them.
  bool is_plan_of(const planner::Space& space) {
    const bool decides_ops =
        !c_.space.always_save.empty() || !c_.space.never_save.empty() || c_.space.rng == planner::RngRule::kNever;
    for (const plan::Unit& unit : in_.plan->plan.units) {
      const std::string name = in_.step.fqn(in_.step[unit.call].module);
      const auto fail_for = [&](std::string_view what) {
        return fail(fmt::format("the certificate is of plans with other options than this one: {} {}", name, what));
      };
      if (space.exclusions[unit.call.index()] == planner::Exclusion::kPattern)
        return fail_for("is a unit, which they leave out");
      if (unit.early_stop != c_.space.early_stop) return fail_for("stops its recompute at another place");
      const auto candidate = std::find_if(space.candidates.begin(), space.candidates.end(),
                                          [&](const planner::Candidate& one) { return one.call == unit.call; });
      if (!decides_ops || candidate == space.candidates.end()) continue;
      if (unit.preserve_rng && c_.space.rng == planner::RngRule::kNever)
        return fail_for("keeps the state of the random generator");
      for (const planner::Choice& choice : candidate->choices) {
        const auto saved = std::count_if(choice.savers.begin(), choice.savers.end(),
                                         [&](step::OpId op) { return unit.decision(op) == plan::Decision::kSave; });
        if (choice.freedom == planner::Freedom::kNeverSave && saved > 0) return fail_for("saves what they never save");
        if (choice.freedom == planner::Freedom::kAlwaysSave && choice.is_reached && saved == 0 &&
            !choice.savers.empty())
          return fail_for("does not save what they always save");
      }
    }
    return true;
  }

  bool is_proved() {
    if (c_.claim != Claim::kInfeasible && c_.bound_ps == 0) return true;  // times are never below
    const planner::Space space = planner::find_space(in_.step, in_.times, c_.space);
    if (c_.claim != Claim::kInfeasible && !is_plan_of(space)) return false;
    const planner::Problem problem = planner::build_sharpest_problem(
        in_.step, space,
        {.workspace = in_.workspace, .round_to_bytes = plan::rounding_of(c_.against, c_.rounding_bytes)});
    std::vector<LeastPeaks> peaks;
    std::int64_t least_bytes = problem.ground_bytes;
    for (const planner::Episode& episode : problem.episodes) {
      peaks.push_back(find_least_peaks(episode));
      least_bytes = std::max(least_bytes, peaks.back().from_state[0]);
    }
    for (const planner::Episode& forward : problem.forward_episodes)
      least_bytes = std::max(least_bytes, find_least_peaks(forward).from_state[0]);
    if (c_.claim == Claim::kInfeasible) return is_infeasible(least_bytes);
    return is_bounded(problem, peaks);
  }

  bool is_infeasible(std::int64_t least_bytes) {
    if (least_bytes <= c_.room_bytes)
      return fail(fmt::format("the peak of plans is at least {}, and {} are allowed", format_bytes_exact(least_bytes),
                              format_bytes_exact(c_.room_bytes)));
    if (least_bytes != c_.least_peak_bytes)
      return fail(fmt::format("the peak of plans is at least {}, and the certificate says {}",
                              format_bytes_exact(least_bytes), format_bytes_exact(c_.least_peak_bytes)));
    return true;
  }

  bool is_bounded(const planner::Problem& problem, const std::vector<LeastPeaks>& peaks) {
    if (c_.parts.size() != problem.episodes.size())
      return fail(fmt::format("the step has {} parts, and the certificate has proofs for {}", problem.episodes.size(),
                              c_.parts.size()));
    Int128 sum_ps = 0;
    for (const PartProof& part : c_.parts) sum_ps += part.bound_ps;
    if (sum_ps != c_.bound_ps) return fail("the bounds of the parts do not add up to the bound");
    for (std::size_t i = 0; i < problem.episodes.size(); ++i)
      if (c_.parts[i].bound_ps > 0 && !is_part_bounded(problem, i, peaks[i])) return false;
    return true;
  }

  bool is_part_bounded(const planner::Problem& problem, std::size_t i, const LeastPeaks& peaks) {
    const PartProof& part = c_.parts[i];
    if (!is_well_formed(part)) return false;
    const planner::Episode& here = problem.episodes[i];
    const std::int64_t max_entries = std::min(part.entries, kMostEntries - entries_);
    PathCheck check;
    if (part.sides.size() == 1 && part.sides[0].forward_share == 0 && part.sides[0].other_prices.empty()) {
      check = look_on_side(here, peaks, part, max_entries);
    } else {
      if (problem.forward_episodes.empty()) return fail("the certificate names a side that the step does not have");
      const Sides sides = fitting_sides(here, problem.forward_episodes[i], c_.room_bytes);
      if (part.sides.size() == 1) {
        const planner::Episode side = episode_of(sides, part.sides[0], c_.room_bytes);
        check = look_on_side(side, find_least_peaks(side), part, max_entries);
      } else {
        check =
            look_for_path(sides, part.sides,
                          {.room_bytes = c_.room_bytes, .target_ps = part.bound_ps - 1, .max_entries = max_entries});
      }
    }
    entries_ += check.entries;
    if (check.answer == PathAnswer::kFound)
      return fail(
          fmt::format("there is a way that takes {} ps, less than the bound of {} ps", check.found_ps, part.bound_ps));
    if (check.answer == PathAnswer::kTooManyEntries)
      return fail(fmt::format("the check is not over after the {} entries that the certificate allows", check.entries));
    return true;
  }

  bool is_well_formed(const PartProof& part) {
    if (part.sides.empty() || part.sides.size() > kMostSides)
      return fail("a part of the certificate has no sides, or too many");
    for (const SideHints& side : part.sides) {
      if (side.forward_share < 0 || side.forward_share > kShares)
        return fail("a side of the certificate is no mixture of the two that there are");
      std::int64_t before = 0;
      for (const std::int64_t price : side.prices) {
        if (price <= before || price > kMostPrice || side.prices.size() > kMostPrices)
          return fail("the prices do not ascend, or there are too many");
        before = price;
      }
      if (!is_well_formed(side.other_prices, side.forward_share)) return false;
    }
    return true;
  }

  bool is_well_formed(const std::vector<PriceFrom>& other_prices, std::int64_t forward_share) {
    if (other_prices.empty()) return true;
    if (forward_share != 0 && forward_share != kShares)
      return fail("the certificate has prices on the other side of a mixture");
    std::int64_t next_state = 0;
    for (const PriceFrom& one : other_prices) {
      if (one.state < next_state || one.state >= kMostStates || one.price < 0 || one.price > kMostPrice ||
          other_prices.size() > kMostOtherPrices)
        return fail("the prices on the other side are not in the order of states, or there are too many");
      next_state = one.state + 1;
    }
    return true;
  }

  PathCheck look_on_side(const planner::Episode& side, const LeastPeaks& peaks, const PartProof& part,
                         std::int64_t max_entries) const {
    const SideHints& hints = part.sides[0];
    const TimeLines lines(side, peaks, c_.room_bytes, from_zero(hints.prices));
    return look_for_path(side, peaks, lines,
                         {.room_bytes = c_.room_bytes,
                          .target_ps = part.bound_ps - 1,
                          .max_entries = max_entries,
                          .unit_bytes = hints.unit_bytes,
                          .ring = hints.ring});
  }

  const Certificate& c_;
  const CheckInput& in_;
  std::string problem_;
  std::int64_t entries_ = 0;
};

}  // namespace

CertificateVerdict check_certificate(const Certificate& certificate, const CheckInput& input) {
  return Check(certificate, input).run();
}

}  // namespace tidemark::verify
