#include "tidemark/planner/planner.h"

#include <string>

#include "tidemark/base/error.h"
#include "tidemark/base/rounding.h"
#include "tidemark/memory/caching_allocator.h"
#include "tidemark/memory/replay.h"
#include "tidemark/planner/build_problem.h"
#include "tidemark/planner/prepared.h"

namespace tidemark::planner {

using namespace step;

Times times_of(const cost::StepCost& cost) {
  Times times;
  times.op_ps.reserve(cost.ops.size());
  for (const cost::Time& time : cost.ops) times.op_ps.push_back(time.total_ps);
  times.region_ps = cost.region_ps;
  times.region_save_ps = cost.region_save_ps;
  times.region_rng_ps = cost.region_rng_ps;
  return times;
}

std::int64_t rounding_of(const PlannerOptions& options) {
  if (options.against == Against::kExact) return 1;
  if (options.against == Against::kReserved) return kCudaRoundingBytes;
  if (options.rounding_bytes < 1 || options.rounding_bytes > kMostRoundingBytes)
    throw Error({.kind = ErrorKind::kInput,
                 .place = "rounding_bytes",
                 .problem = "sizes cannot be rounded up to that",
                 .expected = "from 1 to " + std::to_string(kMostRoundingBytes) + " B",
                 .got = std::to_string(options.rounding_bytes) + " B",
                 .remedy = "the device's allocator_rounding_bytes"});
  return options.rounding_bytes;
}

memory::ReplayOptions replay_options(const PlannerOptions& options) {
  return {.workspace = options.workspace,
          .round_to_bytes = rounding_of(options),
          .keep_changes = options.against == Against::kReserved,
          .keep_alive_at_peak = false,
          .runner_up_count = 0};
}

std::int64_t peak_of(const memory::Replayer& replayer, const Step& step, const plan::Plan& plan, Against against) {
  const memory::Timeline timeline = replayer.run(plan);
  if (against != Against::kReserved) return timeline.peak.total_bytes;
  return memory::use_caching_allocator(step, timeline, {}).peak_reserved_bytes;
}

std::int64_t peak_of(const Step& step, const plan::Plan& plan, const PlannerOptions& options) {
  return peak_of(memory::Replayer(step, replay_options(options)), step, plan, options.against);
}

std::int64_t room_of(const PlannerOptions& options) {
  if (options.budget_bytes < 0 || options.reserve_bytes < 0 || options.reserve_bytes > options.budget_bytes)
    throw Error({.kind = ErrorKind::kInput,
                 .place = "budget",
                 .problem = "there is nothing left of the budget",
                 .expected = "a budget above the reserve",
                 .got = std::to_string(options.budget_bytes) + " B with a reserve of " +
                        std::to_string(options.reserve_bytes) + " B",
                 .remedy = "a larger budget, or a smaller reserve"});
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 62;  // what plan files count to
  if (options.budget_bytes > kMostBytes)
    throw Error({.kind = ErrorKind::kInput,
                 .place = "budget",
                 .problem = "the budget is too large",
                 .expected = "at most 2^62 B",
                 .got = std::to_string(options.budget_bytes) + " B",
                 .remedy = "the memory of a device"});
  return options.budget_bytes - options.reserve_bytes;
}

PlanResult plan_step(const Step& step, const cost::StepCost& cost, const PlannerOptions& options) {
  if (options.max_work < 0)
    throw Error({.kind = ErrorKind::kInput,
                 .place = "max_work",
                 .problem = "less than no work cannot be allowed",
                 .expected = "0 entries or more",
                 .got = std::to_string(options.max_work),
                 .remedy = "the default, or more for a proof"});
  const std::int64_t room_bytes = room_of(options);
  return PreparedStep(step, cost, options).plan(room_bytes, options.max_work);
}

std::optional<LinearModel> method_model(const Step& step, const cost::StepCost& cost, const PlannerOptions& options) {
  const std::int64_t room_bytes = room_of(options);
  const Times times = times_of(cost);
  const Space space = find_space(step, times, options.space);
  const Problem problem = build_sharpest_problem(step, space, problem_options(options));
  return model_of(method_input({step, space, problem, times, options}, room_bytes));
}

}  // namespace tidemark::planner
