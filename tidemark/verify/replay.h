#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/memory/workspace.h"
#include "tidemark/plan/plan.h"
#include "tidemark/step/step.h"

// The memory of a step under a plan, worked out a second time: slowly, obviously, and from
// docs/how_memory_is_counted.md alone. It shares no code with memory::replay (only the value of a workspace table and
// the key of an op), so that a mistake has to be made twice to go unnoticed. Every block of memory has a set of named
// holders; the code follows the page sentence by sentence.

namespace tidemark::verify {

// Deliberate mistakes, for the test that a comparison would notice them. Nothing else uses any but kNone.
enum class Mutation : std::uint8_t {
  kNone,
  kForgetRngState,              // a recompute makes no RNG state
  kFrameLetsGoEarly,            // at the first release after the call, not at the last
  kEarlyStopOneOpLate,          // a recompute goes on to the end of the op after the last save
  kCacheKeepsFirstOutputOnly,   // of an op with several outputs
  kRecomputeKeepsTemporaries,   // until its end, whatever the program frees
  kSaveKeepsWhatItHandsOver,    // until its release, as without a plan
  kOutsideSaveHoldsCopy,        // a save after the call of what was made inside
  kCutWorkspaceGoesLast,        // after the program's references
  kUnwatchedStaysInPlace,       // although a dispatch mode watches
  kUnhookedSaveNotRecomputed,   // a recompute holds hooked saves only
  kWatchedRowIgnored,           // ops under a dispatch mode have their ordinary row
  kUnreachedCacheGoesWithStop,  // instead of with the frame
};

struct Options {
  const memory::WorkspaceTable* workspace = nullptr;
  std::int64_t round_to_bytes = 1;
  bool early_stop = true;
  bool preserve_rng = true;
  Mutation mutation = Mutation::kNone;
  bool is_detailed = true;  // categories, and the peaks of calls; without, a replay takes less time
};

// One block of memory comes or goes.
struct Change {
  bool comes = true;
  std::int64_t bytes = 0;  // negative when it goes
  std::int64_t total_bytes = 0;
  std::string block;     // "original 12", "copy 12", "rng_state 3 part 1", "workspace 7 part 0"
  std::string category;  // "activation"
  std::uint32_t event = 0;
  step::OpId op;
  step::CallId call;
  step::PassId pass;
  std::optional<std::uint32_t> unit;  // whose recompute this is
  std::uint32_t stretch = 0;          // of the replay, from 0

  friend bool operator==(const Change&, const Change&) = default;
};

// What is alive after the last event, and why.
struct Leftover {
  std::int64_t bytes = 0;
  std::string reason;  // "resident"

  friend bool operator==(const Leftover&, const Leftover&) = default;
};

// The most bytes alive while a module call is entered, and in its backward.
struct CallPeak {
  std::optional<std::int64_t> forward_bytes;
  std::optional<std::int64_t> backward_bytes;

  friend bool operator==(const CallPeak&, const CallPeak&) = default;
};

struct Replayed {
  std::int64_t start_bytes = 0;
  std::int64_t end_bytes = 0;
  std::int64_t peak_bytes = 0;
  std::size_t peak_change = 0;                           // how many changes lead to the peak; 0: it is at the start
  std::map<std::string, std::int64_t> peak_by_category;  // without categories of nothing
  std::vector<Change> changes;                           // in order
  std::vector<std::size_t> runners_up;                   // all, highest first: how many changes lead to each
  std::map<step::CallId, CallPeak> calls;                // of those that have one
  std::map<std::string, Leftover> alive_at_end;          // by block
};

// Throws: Error when the plan cannot be one of this step, or a total does not fit 63 bits.
Replayed replay(const step::Step& step, const plan::Plan& plan, const Options& options = {});

}  // namespace tidemark::verify
