#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tidemark/cost/op_time.h"
#include "tidemark/device/device.h"
#include "tidemark/step/step.h"

namespace tidemark::cost {

// A sum of op times and how sure it is. `low_ps` and `high_ps` are what the model's known errors leave open; `high_ps`
// also has room for ops that have no price.
struct Total {
  std::int64_t time_ps = 0;
  std::int64_t low_ps = 0;
  std::int64_t high_ps = 0;
  std::int64_t measured_ps = 0;  // of time_ps
  std::int64_t modelled_ps = 0;  // of time_ps
  std::int64_t unpriced_ops = 0;
  std::int64_t unpriced_bytes = 0;
  std::int64_t unpriced_least_ps = 0;  // what launching them and moving their bytes would take; in no sum
};

// What the same errors leave open of a time that is no mere sum.
struct Interval {
  std::int64_t low_ps = 0;
  std::int64_t high_ps = 0;

  friend bool operator==(const Interval&, const Interval&) = default;
};

// Ops without a price.
struct UnpricedOp {
  step::StringId name;
  std::int64_t count = 0;
  std::int64_t bytes = 0;
};

using FlopsByPrecision = std::array<std::int64_t, device::kPrecisionNames.size()>;

// What a step costs on a device. The sum of op times is what planners minimise: it is additive, so that leaving out an
// op saves exactly its time. A whole step takes about `step_ps`: in each pass the device works while the host issues
// the next ops, and the slower of the two decides.
struct StepCost {
  std::vector<Time> ops;            // by op
  std::vector<Family> family;       // by op
  std::vector<std::int64_t> bytes;  // by op, read and written
  Total all;
  std::array<Total, step::kPassKindNames.size()> passes;  // by kind of pass
  std::int64_t step_ps = 0;
  Interval step;                                                         // of step_ps
  std::array<std::int64_t, step::kPassKindNames.size()> pass_ps = {};    // the parts of step_ps
  std::array<Interval, step::kPassKindNames.size()> pass_interval = {};  // of pass_ps
  std::int64_t host_ps = 0;                                              // what the host needs in all
  std::int64_t region_ps = 0;       // what each checkpointed region costs beside the ops that run again
  std::int64_t region_save_ps = 0;  // and for each tensor that autograd saves in it
  std::int64_t region_rng_ps = 0;   // and for keeping the random state
  double region_error = 0;          // how far off these may be, as a part of them
  bool is_region_measured = false;
  // By the precision they are priced at: the model's FLOPs, as PyTorch counts them and without what is run again; and
  // those that kernels carry out, again or not.
  FlopsByPrecision flops_by_precision = {};
  FlopsByPrecision executed_by_precision = {};
  double unpriced_factor = 0;        // for the upper end of totals
  double measured_error = 0;         // of what was measured, at least
  std::vector<UnpricedOp> unpriced;  // in the order they first appear
  std::vector<std::string> notes;    // what had to be assumed, in words

  const Total& pass(step::PassKind kind) const { return passes[static_cast<std::size_t>(kind)]; }
};

struct PriceOptions {
  Constants constants = kConstants;
  std::int64_t ranks = 1;           // that take part in the step's collectives
  std::int64_t ranks_per_node = 0;  // a divisor of ranks; 0: all are in one node
};

// No step that makes sense takes as long: 13 days, an eighth of what picoseconds can count, so that a plan's sums fit.
inline constexpr std::int64_t kLongestStepPs = std::int64_t{1} << 60;

// The same result for the same input, whatever runs beside it. Throws: Error when the ranks do not fill their nodes,
// when the device has no network and there are several nodes, or when the sum of times is above kLongestStepPs.
StepCost price_step(const step::Step& step, const device::Device& device, const PriceOptions& options = {});

// MFU and HFU, parts of the device's listed peak: the time that FLOPs would take at the listed peaks of the precisions
// they are priced at, over step_ps.
// - The model's FLOPs, as PyTorch counts them and without what is run again (PaLM, Chowdhery et al., 2022, appendix B):
//   what published figures are. Attention counts in full and convolutions as if computed directly, so that kernels
//   which do with fewer operations (causal attention, Winograd's convolutions) can be above 1.
// - Those that kernels carry out, again or not: above 1 only on a device that does more than its listed peak.
double model_flops_utilisation(const StepCost& cost, const device::Device& device);
double hardware_flops_utilisation(const StepCost& cost, const device::Device& device);

// How many checkpointed regions there are, tensors that autograd saves in them, and random states that are kept.
struct RegionCounts {
  std::int64_t regions = 0;
  std::int64_t saves = 0;
  std::int64_t random_states = 0;
};

// The total of some of the step's ops, each as often as it is listed, and of checkpointed regions; and those of the ops
// that have no price, in the order they first appear.
Total total_of(const StepCost& cost, std::span<const step::OpId> ops, const RegionCounts& regions = {});
std::vector<UnpricedOp> unpriced_of(const step::Step& step, const StepCost& cost, std::span<const step::OpId> ops);

}  // namespace tidemark::cost
