#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/plan/event_index.h"
#include "tidemark/step/step.h"

namespace tidemark::sac {

// By whose rules ops are listed, grouped and ordered: our own, or those of PyTorch's SAC estimator, whose published
// figures need its guesses. Ours takes aliases, randomness and the module's outputs from what the step recorded; the
// estimator guesses them from names, storages and the last op that runs.
enum class Rules : std::uint8_t { kTidemark, kReferenceM, kReferenceB };
inline constexpr std::array<std::string_view, 3> kRulesNames = {"tidemark", "reference-m", "reference-b"};

struct Operator {
  step::OpId op;
  std::string name;  // its family: "addmm"
  double ms = 0;
  std::int64_t bytes = 0;  // of what it allocates; 0 for a view and for what the module returns
  bool is_view_like = false;
  bool is_random = false;
  bool is_saved_by_autograd = false;     // by the end of the call, all it returned
  std::optional<std::uint32_t> changes;  // in-place: the operator whose result it changes; itself when the
                                         // result comes from outside the module
  bool is_unpriced = false;              // `ms` is 0 because nobody knows it
  friend bool operator==(const Operator&, const Operator&) = default;
};

// The forward ops of one module call and of the calls inside it, in the order in which they ran.
struct ModuleOperators {
  step::CallId call;
  std::vector<Operator> operators;
  bool must_store_random = false;  // nothing was handed in, so that nothing ties the call to a place in the RNG stream
  std::int64_t total_bytes = 0;
  double total_ms = 0;
};

// What the estimator takes an op for, from the name of its family alone.
struct ReferenceTraits {
  bool is_view_like = false;
  bool is_in_place = false;
  bool is_skipped = false;  // not listed at all
};
ReferenceTraits reference_traits(std::string_view family, Rules rules);

// The estimator takes the last operator that is neither a view nor in-place for the one that makes the module's result,
// which is kept in any case: it gets no bytes.
void free_the_last(std::span<Operator> operators);

// What is the same for all calls of a step.
struct StepIndex {
  explicit StepIndex(const step::Step& recorded);

  const step::Step* step = nullptr;
  plan::EventIndex events;
  std::vector<std::uint32_t> first_save;  // by storage: the event where hooks first saw it saved, or kNever
  std::vector<step::OpId> forward_ops;    // in the order of their begin events
};

// Requires: `op_ms` has the milliseconds of every op of the step; `is_unpriced` says of which they are not known, or is
// empty. Throws: Error when the estimator would have failed, under its rules.
ModuleOperators list_operators(const StepIndex& index, step::CallId call, std::span<const double> op_ms,
                               Rules rules = Rules::kTidemark, std::span<const std::uint8_t> is_unpriced = {});

}  // namespace tidemark::sac
