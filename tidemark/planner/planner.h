#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/base/rounding.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/memory/replay.h"
#include "tidemark/memory/workspace.h"
#include "tidemark/plan/plan.h"
#include "tidemark/plan/policies.h"
#include "tidemark/planner/exact.h"
#include "tidemark/planner/methods.h"
#include "tidemark/planner/space.h"
#include "tidemark/step/step.h"

namespace tidemark::planner {

// Which bytes a budget is about.
enum class Against : std::uint8_t {
  kExact,    // what tensors ask for
  kRounded,  // what CUDA's allocator hands out, in blocks of 512
  kReserved  // what its cache holds at most, fragments included
};
inline constexpr std::array<std::string_view, 3> kAgainstNames = {"exact", "rounded", "reserved"};

// How a search ended. Whatever it says is data, not an error.
enum class Termination : std::uint8_t {
  kFits,        // nothing needs to be recomputed
  kOptimal,     // no plan that fits is cheaper
  kFeasible,    // the plan fits; `bound_ps` says how much cheaper another could be
  kInfeasible,  // no plan fits
  kLimit,       // the limit was reached before a plan was found
  kNotFound,    // this method found no plan that fits; another one may
};
inline constexpr std::array<std::string_view, 6> kTerminationNames = {"fits",       "optimal", "feasible",
                                                                      "infeasible", "limit",   "not_found"};
inline constexpr std::string_view name_of(Termination termination) {
  return kTerminationNames[static_cast<std::size_t>(termination)];
}

// Whether the result has a plan that fits.
inline constexpr bool has_plan(Termination termination) {
  return termination == Termination::kFits || termination == Termination::kOptimal ||
         termination == Termination::kFeasible;
}

struct PlannerOptions {
  std::int64_t budget_bytes = 0;
  std::int64_t reserve_bytes = 0;  // of the budget, for what is no tensor
  Against against = Against::kExact;
  std::int64_t rounding_bytes = kCudaRoundingBytes;  // what the device's allocator rounds sizes up to
  const memory::WorkspaceTable* workspace = nullptr;
  SpaceOptions space = {};
  std::int64_t max_work = 60'000'000;  // entries of the search's lists; about a second for twenty million
  MethodOptions method = {};
};

// What one of the plans that people write by hand comes to.
struct PolicyFigures {
  plan::Policy policy;
  std::int64_t peak_bytes = 0;
  std::int64_t recompute_ps = 0;
  bool fits = false;
  cost::Interval interval = {};  // of recompute_ps
};

struct PlanResult {
  Termination termination = Termination::kLimit;
  // The one that fits; where none was found (has_plan), the one with the smallest peak that is known.
  plan::Plan plan;
  // Of that plan.
  std::int64_t peak_bytes = 0;
  std::int64_t recompute_ps = 0;
  cost::Total recompute;  // the same with its interval, where it comes from, and what of it has no price
  std::vector<cost::UnpricedOp> unpriced;  // that: ops which run again and count as nothing
  std::int64_t bound_ps = 0;               // no plan that fits takes less
  std::int64_t unplanned_peak_bytes = 0;
  std::int64_t smallest_peak_bytes = 0;  // of any plan
  bool is_smallest_proved = true;        // false: no plan with a smaller peak is known, but there may be one
  std::vector<PolicyFigures> policies;   // none, full, every:2, every:3, every:4, selective
  SolveStatistics statistics;
  std::array<std::int64_t, kExclusionNames.size()> excluded = {};  // calls that cannot be units, by reason
  std::int64_t candidate_count = 0;
  std::optional<MethodVerdict> own;    // what the model of another method than exact says itself
  std::vector<step::CallId> restored;  // units of the plan that change buffers, which applying it must restore
};

// The cheapest plan whose peak, by replay, stays within the budget. Pure: the same input gives the same result. A plan
// is never worse than the best policy of the list above, unless another method than exact was asked for. Throws: Error
// for options that make no sense.
PlanResult plan_step(const step::Step& step, const cost::StepCost& cost, const PlannerOptions& options);

// The program that the method of the options solves, to write to a file; nothing when the budget is hopeless already.
// Throws: Error for a method that solves none.
std::optional<LinearModel> method_model(const step::Step& step, const cost::StepCost& cost,
                                        const PlannerOptions& options);

// What sizes are rounded up to: exact bytes are not, and the model of PyTorch's cache has a rounding of its own.
// Throws: Error for what no device file may say.
std::int64_t rounding_of(const PlannerOptions& options);

// What a budget leaves for tensors. Throws: Error when that is less than nothing.
std::int64_t room_of(const PlannerOptions& options);

// The times that the planner adds up.
Times times_of(const cost::StepCost& cost);

// The peak of a step under a plan, in the bytes that a budget is about.
std::int64_t peak_of(const step::Step& step, const plan::Plan& plan, const PlannerOptions& options);
// The same for many plans, by a replayer with these options.
memory::ReplayOptions replay_options(const PlannerOptions& options);
std::int64_t peak_of(const memory::Replayer& replayer, const step::Step& step, const plan::Plan& plan, Against against);

}  // namespace tidemark::planner
