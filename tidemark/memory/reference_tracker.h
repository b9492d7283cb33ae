#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/step/step.h"

namespace tidemark::memory {

// The memory of a step as torch.distributed._tools.mem_tracker counts it, from the record: its categories, its module
// states and its conventions, so that its published numbers can be compared. They differ from replay() on purpose:
// sizes are rounded up to 512 B on CUDA devices, and only there; peaks are looked at only after ops, so that scratch
// memory and what dies inside an op is not seen; tensors made in backward are temporary until they become a parameter's
// gradient; everything made by the optimizer is optimizer state; a tensor from outside the model and its optimizer,
// such as a batch, is not seen before an op returns a view of it.
enum class ReferenceCategory : std::uint8_t { kParameter, kBuffer, kGradient, kActivation, kTemp, kOptState, kOther };
inline constexpr std::array<std::string_view, 7> kReferenceCategoryNames = {
    "Parameter", "Buffer", "Gradient", "Activation", "Temp", "Optstate", "Other"};

enum class ReferenceState : std::uint8_t {
  kPreForward,
  kPostForward,
  kPeakForward,
  kPreBackward,
  kPostBackward,
  kPeakBackward,
  kPreForwardAc,  // a forward that runs again during backward
  kPostForwardAc,
};
inline constexpr std::array<std::string_view, 8> kReferenceStateNames = {
    "Pre-Forward",   "Post-Forward",  "Peak-Forward",   "Pre-Backward",
    "Post-Backward", "Peak-Backward", "Pre-Forward-AC", "Post-Forward-AC"};

struct ReferenceSnapshot {
  std::array<std::int64_t, kReferenceCategoryNames.size()> bytes = {};
  std::int64_t total_bytes = 0;

  std::int64_t operator[](ReferenceCategory category) const { return bytes[static_cast<std::size_t>(category)]; }
  friend bool operator==(const ReferenceSnapshot&, const ReferenceSnapshot&) = default;
};

// What the tracker keeps of a module; each list grows by one per call.
struct ReferenceModule {
  step::ModuleId module;
  std::int64_t parameter_bytes = 0;  // of the module and all below it, each storage once
  std::int64_t buffer_bytes = 0;
  std::int64_t input_bytes = 0;  // of the last call
  std::int64_t output_bytes = 0;
  std::array<std::vector<ReferenceSnapshot>, kReferenceStateNames.size()> snapshots;

  const std::vector<ReferenceSnapshot>& operator[](ReferenceState state) const {
    return snapshots[static_cast<std::size_t>(state)];
  }
};

struct ReferenceRecord {
  ReferenceSnapshot current;             // after the last event
  ReferenceSnapshot peak;                // after an op, or at the start
  std::vector<ReferenceModule> modules;  // those that were called, in the order of their first calls
  // One entry per call, where its forward ends, its backward begins and ends.
  std::vector<step::ModuleId> forward_post, backward_pre, backward_post;
};

struct ReferenceOptions {
  std::string device;  // count only storages there; empty: all
  // What the program still holds from the step before counts as activation: the tracker that watched that step, too,
  // knows it. The published figures have the logits of the step before in them.
  bool counts_stale = false;
};

// A module's backward starts with the first autograd node that a forward op of one of its calls made, and ends with the
// last. A storage becomes a gradient when the node is done that writes it last in its backward.
ReferenceRecord track_like_reference(const step::Step& step, const ReferenceOptions& options = {});

}  // namespace tidemark::memory
