#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tidemark::step {

// The closed vocabularies of a Step. Every enum has one list of names, in the enum's order; files, dumps and the
// Python package all use those words.

// What a stretch of the step is for. Recompute is the part of backward in which a model that checkpoints itself runs
// a forward again.
enum class PassKind : std::uint8_t { kForward, kLoss, kBackward, kRecompute, kOptimizer };
inline constexpr std::array<std::string_view, 5> kPassKindNames = {"forward", "loss", "backward", "recompute",
                                                                   "optimizer"};

// A property of the program that holds for a group of ops.
enum class RegionKind : std::uint8_t { kAutocast, kNoGrad, kCheckpoint, kFsdp, kOffload, kCompile };
inline constexpr std::array<std::string_view, 6> kRegionKindNames = {"autocast", "no_grad", "checkpoint",
                                                                     "fsdp",     "offload", "compile"};

// What a storage is to the training step.
enum class Role : std::uint8_t { kParameter, kBuffer, kInput, kGradient, kOptimizerState, kPlain };
inline constexpr std::array<std::string_view, 6> kRoleNames = {"parameter", "buffer",          "input",
                                                               "gradient",  "optimizer_state", "plain"};

enum class BindingKind : std::uint8_t { kParameter, kBuffer };
inline constexpr std::array<std::string_view, 2> kBindingKindNames = {"parameter", "buffer"};

// Where the storage of an op's output comes from.
enum class AliasKind : std::uint8_t {
  kFresh,     // allocated by the op
  kView,      // the storage and version of an input
  kMutates,   // the storage of an input, with a new version
  kExisting,  // a storage that was there before and is no input's
};
inline constexpr std::array<std::string_view, 4> kAliasKindNames = {"fresh", "view", "mutates", "existing"};

// What happens at one point of the step. The operand is the id in the table that the comment names.
enum class EventKind : std::uint8_t {
  kPhase,    // pass: the ops that follow belong to it
  kEnter,    // call: the module's forward starts
  kExit,     // call
  kBegin,    // op: its inputs are read from here on
  kEnd,      // op
  kAlloc,    // storage
  kFree,     // storage: the program let go of it; autograd may still hold it
  kResize,   // storage, to a new number of bytes
  kPack,     // save: autograd takes hold of the tensor
  kUnpack,   // save: a backward node gets the tensor back
  kDrop,     // save: the program let go of a tensor that unpack gave it
  kRelease,  // save: autograd lets go
  kNode,     // node: starts to run
  kDone,     // node: has run
};
inline constexpr std::array<std::string_view, 14> kEventKindNames = {"phase", "enter",   "exit",   "begin", "end",
                                                                     "alloc", "free",    "resize", "pack",  "unpack",
                                                                     "drop",  "release", "node",   "done"};

// Facts about an op that the planner must respect, one bit each. `letter` is how files write it.
enum class OpFlag : std::uint16_t {
  kRandom = 1,         // draws random numbers, by its name *and* arguments
  kCollective = 2,     // talks to other ranks; the op's group names them
  kSideEffect = 4,     // changes something outside its outputs
  kDataDependent = 8,  // its shapes or control flow depend on values
  kMustSave = 16,      // must never be recomputed
  kOpaque = 32,        // an atom: what it runs inside is not recorded
  kHostCopy = 64,      // copies from the device to the host
  kRouting = 128,      // chooses where values go (top-k and the like)
  kUnwatched = 256,    // writes into its first input, but into a new storage when a dispatch mode watches
};
struct OpFlagName {
  OpFlag flag;
  char letter;
  std::string_view name;
};
inline constexpr std::array<OpFlagName, 9> kOpFlagNames = {{{OpFlag::kRandom, 'r', "random"},
                                                            {OpFlag::kCollective, 'c', "collective"},
                                                            {OpFlag::kSideEffect, 'e', "side_effect"},
                                                            {OpFlag::kDataDependent, 'd', "data_dependent"},
                                                            {OpFlag::kMustSave, 'm', "must_save"},
                                                            {OpFlag::kOpaque, 'o', "opaque"},
                                                            {OpFlag::kHostCopy, 'h', "host_copy"},
                                                            {OpFlag::kRouting, 't', "routing"},
                                                            {OpFlag::kUnwatched, 'u', "unwatched"}}};

// A set of OpFlag.
class OpFlags {
 public:
  constexpr OpFlags() = default;
  constexpr OpFlags(OpFlag flag) : bits_(static_cast<std::uint16_t>(flag)) {}  // NOLINT: a flag is a set of one

  constexpr bool has(OpFlag flag) const { return (bits_ & static_cast<std::uint16_t>(flag)) != 0; }
  constexpr std::uint16_t bits() const { return bits_; }
  friend constexpr OpFlags operator|(OpFlags a, OpFlags b) {
    OpFlags both;
    both.bits_ = static_cast<std::uint16_t>(a.bits_ | b.bits_);
    return both;
  }
  friend constexpr bool operator==(OpFlags, OpFlags) = default;

 private:
  std::uint16_t bits_ = 0;
};
constexpr OpFlags operator|(OpFlag a, OpFlag b) { return OpFlags(a) | OpFlags(b); }

inline constexpr std::string_view name_of(PassKind kind) { return kPassKindNames[static_cast<std::size_t>(kind)]; }
inline constexpr std::string_view name_of(RegionKind kind) { return kRegionKindNames[static_cast<std::size_t>(kind)]; }
inline constexpr std::string_view name_of(Role role) { return kRoleNames[static_cast<std::size_t>(role)]; }
inline constexpr std::string_view name_of(BindingKind kind) {
  return kBindingKindNames[static_cast<std::size_t>(kind)];
}
inline constexpr std::string_view name_of(AliasKind kind) { return kAliasKindNames[static_cast<std::size_t>(kind)]; }
inline constexpr std::string_view name_of(EventKind kind) { return kEventKindNames[static_cast<std::size_t>(kind)]; }

// The value of `Enum` with this name in its list, or nothing.
template <class Enum, std::size_t N>
constexpr std::optional<Enum> from_name(std::string_view name, const std::array<std::string_view, N>& names) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace tidemark::step
