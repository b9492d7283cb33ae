#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/sac/module_operators.h"

namespace tidemark::sac {

// Operators that are recomputed together, and what that buys.
struct Candidate {
  std::uint32_t head = 0;              // the smallest of the members, or the one the group is named after
  std::vector<std::uint32_t> members;  // numbers of operators, ascending
  std::int64_t bytes = 0;
  double ms = 0;
  double score = 0;  // bytes per millisecond; the largest double when it costs nothing

  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// In which order a module's operators are given up when memory gets short: the ones that free most bytes per
// millisecond first.
struct GreedyOrder {
  std::vector<Candidate> candidates;      // by score, largest first; equal ones by head
  std::vector<std::uint32_t> stored;      // never recomputed
  std::vector<std::uint32_t> unpriced;    // of these, groups that are kept because nobody knows what one of them takes
  std::vector<std::uint32_t> recomputed;  // never stored: views, and what cannot be stored

  friend bool operator==(const GreedyOrder&, const GreedyOrder&) = default;
};

// By our rules the groups are those of plan::find_groups, so that no operator is in two of them; what changes a tensor
// that came into the module is stored, and so is what has no price.
GreedyOrder greedy_order(const StepIndex& index, const ModuleOperators& operators, Rules rules = Rules::kTidemark);

// The estimator's order, from the operators alone.
GreedyOrder reference_greedy_order(const ModuleOperators& operators, Rules rules);

}  // namespace tidemark::sac
