#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tidemark/step/records.h"

namespace tidemark::memory {

// What a byte is there for. docs/how_memory_is_counted.md says which storage is in which category.
enum class Category : std::uint8_t {
  kParameter,
  kBuffer,
  kGradient,
  kOptimizerState,
  kActivation,
  kRecomputed,
  kTemporary,
  kWorkspace,
  kInput,
  kOther,
};
inline constexpr std::array<std::string_view, 10> kCategoryNames = {
    "parameter",  "buffer",    "gradient",  "optimizer_state", "activation",
    "recomputed", "temporary", "workspace", "input",           "other"};
inline constexpr std::string_view name_of(Category category) {
  return kCategoryNames[static_cast<std::size_t>(category)];
}
using CategoryBytes = std::array<std::int64_t, kCategoryNames.size()>;

// A piece of memory: a storage of the record, what a recompute makes of one, or memory without a storage.
enum class BlockKind : std::uint8_t {
  kOriginal,   // id: storage
  kCopy,       // id: storage; made by a recompute
  kRngState,   // id: unit of the plan
  kWorkspace,  // id: op
};
inline constexpr std::array<std::string_view, 4> kBlockKindNames = {"original", "copy", "rng_state", "workspace"};
inline constexpr std::string_view name_of(BlockKind kind) { return kBlockKindNames[static_cast<std::size_t>(kind)]; }

// Which piece of memory, typed by its kind. `part` tells apart the workspaces of one op, and the RNG state of a
// unit's frame (0) from that of its recompute (1).
struct BlockId {
  BlockKind kind = BlockKind::kOriginal;
  std::uint32_t id = 0;
  std::uint32_t part = 0;

  friend auto operator<=>(const BlockId&, const BlockId&) = default;
};

enum class ChangeKind : std::uint8_t { kAlloc, kFree };

inline constexpr std::uint32_t kNoUnit = 0xFFFFFFFFu;
inline constexpr std::uint32_t kNoEvent = 0xFFFFFFFFu;

// One piece of memory comes or goes; `total_bytes` is what is alive afterwards.
struct Change {
  ChangeKind kind = ChangeKind::kAlloc;
  Category category = Category::kOther;
  BlockId block;
  std::int64_t bytes = 0;
  std::int64_t total_bytes = 0;
  std::uint32_t event = 0;       // of the record; in a recompute, the event that happens again
  step::OpId op;                 // running, if any
  std::uint32_t unit = kNoUnit;  // whose recompute this is, if one

  friend bool operator==(const Change&, const Change&) = default;
};

// A point of the replay and how many bytes are alive there.
struct Moment {
  std::int64_t total_bytes = 0;
  std::uint32_t event = kNoEvent;  // kNoEvent: before the first event
  step::OpId op;
  step::CallId call;
  step::PassId pass;
  std::uint32_t unit = kNoUnit;

  friend bool operator==(const Moment&, const Moment&) = default;
};

// Something that is alive at the peak.
struct Alive {
  BlockId block;
  std::int64_t bytes = 0;
  Category category = Category::kOther;
  step::OpId made_by;  // the op it was allocated in, if any

  friend bool operator==(const Alive&, const Alive&) = default;
};

// Why something is still alive after the last event.
enum class EndReason : std::uint8_t { kResident, kProgram, kSave, kUnpacked, kFrame };
inline constexpr std::array<std::string_view, 5> kEndReasonNames = {"resident", "program", "save", "unpacked", "frame"};
inline constexpr std::string_view name_of(EndReason reason) {
  return kEndReasonNames[static_cast<std::size_t>(reason)];
}

struct Leftover {
  BlockId block;
  std::int64_t bytes = 0;
  EndReason reason = EndReason::kResident;

  friend bool operator==(const Leftover&, const Leftover&) = default;
};

// The most bytes alive while a module call is entered, and while its backward runs; kNever when that did not happen.
struct CallPeak {
  static constexpr std::int64_t kNever = -1;
  std::int64_t forward_bytes = kNever;
  std::int64_t backward_bytes = kNever;

  friend bool operator==(const CallPeak&, const CallPeak&) = default;
};

// The memory of one step under one plan.
struct Timeline {
  std::int64_t start_bytes = 0;
  std::int64_t end_bytes = 0;
  Moment peak;
  CategoryBytes peak_by_category = {};
  std::int64_t peak_change = 0;      // how many changes lead to the peak; 0: it is at the start
  std::vector<Moment> runners_up;    // highest first
  std::vector<Alive> alive_at_peak;  // largest first; all of it, when asked for
  std::vector<Leftover> alive_at_end;
  std::vector<CallPeak> calls;  // by call
  std::vector<Change> changes;  // when asked for
  std::int64_t change_count = 0;

  friend bool operator==(const Timeline&, const Timeline&) = default;
};

}  // namespace tidemark::memory
