#pragma once

#include <cstdint>
#include <memory>

#include "tidemark/memory/timeline.h"
#include "tidemark/memory/workspace.h"
#include "tidemark/plan/plan.h"
#include "tidemark/step/step.h"

namespace tidemark::memory {

// The state of PyTorch's CPU generator (mt19937), which a checkpoint keeps to draw the same numbers again:
// torch.get_rng_state().nbytes.
inline constexpr std::int64_t kRngStateBytes = 5056;

struct ReplayOptions {
  const WorkspaceTable* workspace = nullptr;  // kernel scratch; without a table there is none
  std::int64_t round_to_bytes = 1;            // kCudaRoundingBytes for CUDA's allocator
  bool early_stop = true;                     // false: no unit stops early, whatever it says itself
  bool preserve_rng = true;                   // false: no unit keeps RNG states
  bool keep_changes = false;                  // fill Timeline::changes
  bool keep_alive_at_peak = true;             // fill Timeline::alive_at_peak, at the price of a second run
  std::size_t runner_up_count = 4;            // at most 64
};

// Replays a step under a plan: the bytes alive after every change, by the rules of docs/how_memory_is_counted.md,
// which were measured on PyTorch. The record itself is of a step without checkpointing; what checkpoints keep, when
// units are recomputed and what that costs follows from the plan. A plan without units is plain training and takes
// the same path. Linear in the number of events; the same input gives the same result.
//
// Throws: Error when the plan cannot be one of this step, or a total does not fit 63 bits.
Timeline replay(const step::Step& step, const plan::Plan& plan, const ReplayOptions& options = {});

// The same for many plans of one step: what does not depend on the plan is worked out once. Refers to the step and to
// the workspace table, which must live longer.
class Replayer {
 public:
  // Throws: as replay() does, of the options and the table.
  explicit Replayer(const step::Step& step, const ReplayOptions& options = {});
  Replayer(Replayer&&) noexcept;
  Replayer& operator=(Replayer&&) noexcept;
  ~Replayer();

  Timeline run(const plan::Plan& plan) const;

 private:
  struct Prepared;
  const step::Step* step_;
  ReplayOptions options_;
  std::unique_ptr<const Prepared> prepared_;
};

}  // namespace tidemark::memory
