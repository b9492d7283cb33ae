#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/planner/highs.h"
#include "tidemark/planner/linear_model.h"
#include "tidemark/sac/module_graph.h"

namespace tidemark::planner {

// PyTorch's module-level planner (torch.distributed._tools.sac_ilp): which modules to checkpoint and which part r of
// each one's bytes to give up, for the least recompute time by the fitted trade-offs, such that a sum per module stays
// under a budget. Its semantics, in a smaller program:
//
//   y = 1 when a module is checkpointed, on every way from the root down at most one; (A - I) / A y <= r <= y, where A
//   is what its operators make and I what autograd keeps of it
//   t >= T (slope r + intercept y) for each piece of its fit, with T its operators' time: for y = 0 that is 0 without
//   any constant in the place of infinity (the reference's 100 ms forbid modules that take longer)
//   saved = A r - (A - I) y;   s(next) = s + saved in forward post-order: one row of three terms per module instead of
//   a sum over all before it
//   activations + their gradients - s + (parameters + gradients so far) / world size <= budget: a bound of s
//
// Its memory is a guess that leaves out optimizer state, buffers and when things happen (docs/methods.md); a plan made
// from it has to be replayed.
struct ModuleModelOptions {
  std::int64_t budget_bytes = 0;
  std::int64_t world_size = 1;
  std::optional<std::vector<std::string>> units;  // full names of modules that may be checkpointed; all when not set
  // Modules that are sharded. None above one of them is checkpointed.
  std::vector<std::string> fsdp_units = {};
  // Of auto-SAC's branch instead (kReferenceB): parameters and optimizer state count whole unless the root is sharded,
  // then by world size, with three gathered copies of the largest unit and its gradient on top.
  sac::Rules rules = sac::Rules::kReferenceM;
  std::int64_t optimizer_bytes = 0;  // kReferenceB only
};

struct ModuleRatio {
  std::string fqn;
  double given_up = 0;  // part of the module's bytes

  friend bool operator==(const ModuleRatio&, const ModuleRatio&) = default;
};

struct ModuleChoice {
  LinearEnd end = LinearEnd::kLimit;
  std::vector<ModuleRatio> ratios;  // of the modules that are checkpointed, in forward order
  double recompute_ms = 0;          // by the fits
  double bound_ms = 0;              // nothing takes less, by them
  std::int64_t peak_bytes = 0;      // by its own sums
};

// Columns in milliseconds and MiB; nothing when even the largest savings are too little, which no solver is needed for.
std::optional<LinearModel> module_model(const sac::ModuleGraph& graph, const ModuleModelOptions& options);

// Throws: Error for options that make no sense.
ModuleChoice solve_module_model(const sac::ModuleGraph& graph, const ModuleModelOptions& options, const Highs& highs,
                                const HighsOptions& solver = {});

}  // namespace tidemark::planner
