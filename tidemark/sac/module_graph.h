#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tidemark/sac/module_info.h"

namespace tidemark::sac {

// The tree of modules that PyTorch's planner works on. Nodes are numbered in forward pre-order, so that the modules
// below node i are those up to its last_descendant: ancestry is a comparison of numbers, never of names.
struct ModuleNode {
  ModuleStats stats;
  std::uint32_t forward_post_position = 0;
  std::optional<std::uint32_t> parent;
  std::uint32_t last_descendant = 0;  // itself when it has none
};

struct ModuleGraph {
  std::vector<ModuleNode> nodes;
  std::vector<std::uint32_t> forward_post_order;

  // Strictly below.
  bool is_submodule(std::uint32_t descendant, std::uint32_t ancestor) const {
    return ancestor < descendant && descendant <= nodes[ancestor].last_descendant;
  }
};

// Throws: Error when orders and modules do not name the same ones, or a module has no other above it but is no root.
ModuleGraph build_module_graph(const ModuleInfo& info);

struct Baseline {
  std::int64_t peak_bytes = 0;
  double compute_ms = 0;
};

// Without any checkpoint, as the reference adds it up: the largest sum, over modules, of parameters, gradients so far,
// gradients of activations and activations. The true peak is memory::replay's.
Baseline reference_baseline(const ModuleGraph& graph);

}  // namespace tidemark::sac
