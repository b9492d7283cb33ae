#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tidemark/sac/trade_off.h"
#include "tidemark/step/step.h"

namespace tidemark::sac {

// What PyTorch's planner (torch.distributed._tools.ilp_utils) is given about a model: for every module that ran, its
// memory as the memory tracker counts it, its times, and its trade-off. All of it follows from one recorded step.
struct ModuleStats {
  std::string fqn;  // starts with the class of the root: "GPT.layers.0"
  std::int64_t parameter_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t gradients_before_bytes = 0;  // of all parameters, when the module's backward starts
  std::int64_t kept_bytes = 0;              // by its forward, without what it returns
  std::int64_t backward_activation_bytes = 0;
  // What its backward adds at its peak, which may be negative; by auto-SAC's rules (kReferenceB) all there is then.
  std::int64_t activation_gradient_bytes = 0;
  std::int64_t activations_after_bytes = 0;  // of the whole model, when its forward ends
  std::int64_t input_bytes = 0;
  std::int64_t output_bytes = 0;
  double forward_ms = 0;
  double backward_ms = 0;
  bool is_leaf = true;  // has no modules inside, and so no trade-off
  std::int64_t sac_bytes = 0;
  double sac_ms = 0;
  std::int64_t stored_bytes = 0;  // of sac_bytes, what is never recomputed; not in the reference's file
  TradeOff trade_off;
};

// Every module once, by its first call.
struct ModuleOrder {
  std::vector<std::string> forward_pre, forward_post, backward_pre, backward_post;
};

struct ModuleInfo {
  ModuleOrder order;
  std::vector<ModuleStats> modules;  // in the order of forward_pre
};

struct ModuleInfoOptions {
  Rules rules = Rules::kTidemark;
  std::string device;                              // count only storages there; empty: all
  bool counts_stale = false;                       // see memory::ReferenceOptions
  std::span<const std::uint8_t> is_unpriced = {};  // by op: op_ms is 0 because nobody knows it; empty: of none
};

// Requires: `op_ms` has the milliseconds of every op of the step. A module that is called twice has the statistics of
// its last call, and the times of all.
ModuleInfo module_info(const step::Step& step, std::span<const double> op_ms, const ModuleInfoOptions& options = {});

}  // namespace tidemark::sac
