#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/plan/plan.h"
#include "tidemark/step/step.h"

namespace tidemark::plan {

// The plans that people write by hand, by name.
//
//   none       checkpoint nothing
//   full       checkpoint every block, save nothing
//   every:K    checkpoint the K-th, 2K-th, ... block and save nothing in it; every:1 is full
//   selective  checkpoint every block; save attention, collectives and every other matrix product
//
// A *block* is a child of a container. A container is a module that has at least two children of one class whose
// attribute names are numbers (a ModuleList, a Sequential of equal layers), or one such child that runs several times
// in a pass (a layer whose weights all layers share); all its children with such names are blocks. Containers inside a
// block are not looked at, so the outermost ones count. Every forward call of a block is a unit, unless a call around
// it is one already or it has nothing to checkpoint.
enum class PolicyKind : std::uint8_t { kNone, kFull, kEvery, kSelective };

struct Policy {
  PolicyKind kind = PolicyKind::kNone;
  std::int64_t every = 1;  // kEvery: which blocks

  friend bool operator==(const Policy&, const Policy&) = default;
};

// Reads "none", "full", "every:2" or "selective". Throws: Error naming `place`.
Policy parse_policy(std::string_view text, std::string_view place = "policy");

// How parse_policy() reads it.
std::string policy_text(const Policy& policy);

// The modules that are blocks, in the order of their ids.
std::vector<step::ModuleId> find_blocks(const step::Step& step);

struct PolicyOptions {
  bool preserve_rng = true;
  bool early_stop = true;
};

// The plan that a policy means for a step. It is legal: ops that must be saved are saved, and a call that cannot be
// checkpointed without breaking a rule of legality.h is left alone. (Only without preserve_rng may random ops be
// recomputed with other numbers: that is what was asked for.)
Plan make_plan(const step::Step& step, const Policy& policy, const PolicyOptions& options = {});

}  // namespace tidemark::plan
