#pragma once

#include <vector>

#include "tidemark/step/records.h"

namespace tidemark::plan {

// What becomes of an op's outputs when its unit is checkpointed.
enum class Decision : std::uint8_t {
  kRecompute,  // dropped after the forward, made again in backward
  kSave,       // kept by the checkpoint
};

// One checkpointed module call (an AC unit), and which of its ops are saved rather than recomputed.
struct Unit {
  step::CallId call;
  std::vector<step::OpId> saved_ops;  // ascending, each once
  bool preserve_rng = true;           // keep the RNG state, so that a recompute draws the same numbers
  bool early_stop = true;             // end a recompute at the last save

  Decision decision(step::OpId op) const;
  friend bool operator==(const Unit&, const Unit&) = default;
};

// What to checkpoint in a step: no units means plain training. A module that is called several times, or once per
// micro-batch, has a unit for each call. A Plan is a value and promises nothing; legality.h says whether it makes
// sense for a step.
struct Plan {
  std::vector<Unit> units;

  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace tidemark::plan
