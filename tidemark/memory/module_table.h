#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/memory/timeline.h"
#include "tidemark/plan/plan.h"
#include "tidemark/step/step.h"

namespace tidemark::memory {

// One module's part of a timeline, with the modules inside it that are too deep to be shown apart.
struct ModuleRow {
  step::ModuleId module;                                // none: what belongs to no module
  std::int64_t calls = 0;                               // of the module itself
  std::int64_t peak_share_bytes = 0;                    // of what is alive at the peak; all rows add up to it
  std::int64_t forward_peak_bytes = CallPeak::kNever;   // the most alive during one of its calls
  std::int64_t backward_peak_bytes = CallPeak::kNever;  // and during their backward

  friend bool operator==(const ModuleRow&, const ModuleRow&) = default;
};

// The module a piece of memory belongs to: parameters and buffers to the module that has them, gradients and optimizer
// state to their parameter's, everything else to the module whose forward or backward made it. May be none.
std::vector<step::ModuleId> modules_of(const step::Step& step, const plan::Plan& plan, const std::vector<Alive>& alive);

// One row for every module at most `depth` below the root, in the order of their ids, then one for the rest, if it is
// not empty. Requires: a timeline of this step and plan that has alive_at_peak.
std::vector<ModuleRow> module_table(const step::Step& step, const plan::Plan& plan, const Timeline& timeline,
                                    std::size_t depth);

}  // namespace tidemark::memory
