#include "tidemark/planner/facts.h"

#include "tidemark/memory/replay.h"
#include "tidemark/plan/event_index.h"

namespace tidemark::planner {

namespace {

std::int64_t start_bytes(const step::Step& step, const plan::Plan& plan, const PlannerOptions& options) {
  return memory::replay(
             step, plan,
             {.workspace = options.workspace, .round_to_bytes = rounding_of(options), .keep_alive_at_peak = false})
      .start_bytes;
}

std::string word_of(Against against) { return std::string(kAgainstNames[static_cast<std::size_t>(against)]); }

std::vector<plan::UnpricedOps> in_words(const step::Step& step, const std::vector<cost::UnpricedOp>& ops) {
  std::vector<plan::UnpricedOps> words;
  words.reserve(ops.size());
  for (const cost::UnpricedOp& op : ops) words.push_back({std::string(step.text(op.name)), op.count, op.bytes});
  return words;
}

}  // namespace

plan::PlanFacts facts_of(const step::Step& step, const PlanResult& result, const std::string& device,
                         const PlannerOptions& options) {
  return {.device = device,
          .budget_bytes = options.budget_bytes,
          .reserve_bytes = options.reserve_bytes,
          .against = word_of(options.against),
          .rounding_bytes = rounding_of(options),
          .termination = std::string(name_of(result.termination)),
          .start_bytes = start_bytes(step, result.plan, options),
          .peak_bytes = result.peak_bytes,
          .recompute_ps = result.recompute_ps,
          .bound_ps = result.bound_ps,
          .smallest_peak_bytes = result.smallest_peak_bytes,
          .unpriced = in_words(step, result.unpriced)};
}

plan::PlanFacts facts_of_given(const step::Step& step, const cost::StepCost& cost, const plan::Plan& plan,
                               const std::string& device, const PlannerOptions& options) {
  const std::int64_t peak_bytes = peak_of(step, plan, options);
  const plan::EventIndex index = plan::index_events(step);
  return {.device = device,
          .budget_bytes = peak_bytes + options.reserve_bytes,
          .reserve_bytes = options.reserve_bytes,
          .against = word_of(options.against),
          .rounding_bytes = rounding_of(options),
          .termination = "given",
          .start_bytes = start_bytes(step, plan, options),
          .peak_bytes = peak_bytes,
          .recompute_ps = recompute_ps(step, index, times_of(cost), plan),
          .bound_ps = 0,
          .smallest_peak_bytes = 0,
          .unpriced = in_words(step, cost::unpriced_of(step, cost, rerun_of(step, index, plan).ops))};
}

}  // namespace tidemark::planner
