#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tidemark/sac/module_operators.h"

namespace tidemark::planner {

// Which operators of one checkpointed module are saved when a part of its bytes may be kept: PyTorch's two ways to
// decide that, greedily (auto-SAC's) and by its 0/1 program (get_optimal_checkpointing_policy_per_module), here solved
// exactly. Neither looks at when a tensor is alive: replay does.

struct PolicyItem {
  std::int64_t bytes = 0;
  std::int64_t time_ps = 0;
};

// Items in greedy order are given up one after the other until what is left, `fixed_bytes` among it, is within the
// budget. By item, whether it is kept; nothing when `fixed_bytes` alone are too many.
std::optional<std::vector<std::uint8_t>> keep_greedily(std::span<const PolicyItem> items, std::int64_t fixed_bytes,
                                                       double budget_bytes);

// The items with the largest sum of times.
std::optional<std::vector<std::uint8_t>> keep_best(std::span<const PolicyItem> items, std::int64_t fixed_bytes,
                                                   std::int64_t budget_bytes);

struct ModulePolicy {
  bool is_feasible = true;          // false: what must be saved does not fit, and is all that is saved
  std::vector<std::uint8_t> saved;  // by operator
  std::int64_t bytes = 0;           // of what is saved
  double recompute_ms = 0;          // of the rest
};

// `part` of the module's bytes may be kept. Throws: Error unless it is between 0 and 1.
ModulePolicy greedy_policy(const sac::ModuleOperators& operators, double part);
// Random operators go together (all saved when the module must store them), an operator in place goes with the one
// whose result it changes (saved when that is not the module's), views are never saved.
ModulePolicy optimal_policy(const sac::ModuleOperators& operators, double part);

}  // namespace tidemark::planner
