#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/plan/event_index.h"
#include "tidemark/plan/plan.h"
#include "tidemark/step/step.h"

namespace tidemark::plan {

// What is wrong with a plan for a step. Of a plan with a violation of the first kind (down to kBackwardInside) nothing
// can be said; with one of the others it can be replayed, but PyTorch would refuse it or compute something else.
enum class ViolationKind : std::uint8_t {
  kNoSuchCall,
  kNotForward,        // the unit is no call of a forward or loss pass
  kOverlap,           // the unit lies in another unit, or stands twice
  kNoSuchOp,          // a saved op is not one of the unit's
  kOrder,             // saved ops are not ascending
  kBackwardInside,    // a backward runs inside the call
  kNoSaves,           // autograd keeps nothing for the call: there is nothing to checkpoint
  kNested,            // the model checkpoints something in the call itself
  kOverwritten,       // what the call reads is written to in place before its recompute
  kSeveralBackwards,  // more than one backward needs the call: each would recompute it
  kPartOfGroup,       // only some of the ops that belong together are saved
  kCannotSave,        // a saved op is a view, or is changed in place
  kMustSave,          // an op is recomputed that must not run twice
  kRandom,            // a random op is recomputed and the RNG state is not preserved
};
inline constexpr std::array<std::string_view, 14> kViolationKindNames = {
    "no_such_call", "not_forward", "overlap",           "no_such_op",    "order",       "backward_inside", "no_saves",
    "nested",       "overwritten", "several_backwards", "part_of_group", "cannot_save", "must_save",       "random"};
inline constexpr std::string_view name_of(ViolationKind kind) {
  return kViolationKindNames[static_cast<std::size_t>(kind)];
}

struct Violation {
  ViolationKind kind = ViolationKind::kNoSuchCall;
  std::size_t unit = 0;  // position in the plan
  step::OpId op;         // where one is concerned
  std::string text;      // a sentence without its period

  friend bool operator==(const Violation&, const Violation&) = default;
};

// Everything that is wrong, unit by unit; empty for a legal plan.
std::vector<Violation> check(const step::Step& step, const Plan& plan);
std::vector<Violation> check(const step::Step& step, const EventIndex& index, const Plan& plan);

// Throws: Error when the plan cannot be replayed at all (kNoSuchCall to kBackwardInside).
void require_replayable(const step::Step& step, const EventIndex& index, const Plan& plan);

// Throws: Error with the first violation, if there is one.
void require_legal(const step::Step& step, const Plan& plan);

}  // namespace tidemark::plan
