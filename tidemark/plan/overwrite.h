#pragma once

#include <optional>

#include "tidemark/plan/event_index.h"
#include "tidemark/step/step.h"

namespace tidemark::plan {

// A recompute reads what its call read, so nobody may have written there meanwhile. Whether that is so is in the step:
// of everything that a call reads and did not make itself (its arguments, and what its ops take), the call writes into
// nothing, and nobody else does from its end until its recompute begins. Buffers that the call itself writes into are
// exempt: who applies a plan puts them back.
struct Overwrite {
  step::StorageId storage;
  step::OpId op;           // who writes into it
  bool is_inside = false;  // the op runs in the call itself
};

// Where the recompute of a call would begin: at the first unpack of what autograd keeps for it. kNever: there is none.
std::uint32_t recompute_at(const step::Step& step, const EventIndex& index, step::CallId call);

// The first that would spoil the recompute of a call, or nothing.
std::optional<Overwrite> find_overwrite(const step::Step& step, const EventIndex& index, step::CallId call);

}  // namespace tidemark::plan
