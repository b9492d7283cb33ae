#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/cost/step_cost.h"
#include "tidemark/plan/event_index.h"
#include "tidemark/plan/groups.h"
#include "tidemark/plan/plan.h"
#include "tidemark/step/step.h"

namespace tidemark::planner {

// Whether a unit keeps the state of the random generator.
enum class RngRule : std::uint8_t {
  kWhenNeeded,  // when a random op runs in it
  kAlways,      // as PyTorch's checkpoint does unless told otherwise
  kNever,       // then every random op of a unit is saved
};
inline constexpr std::array<std::string_view, 3> kRngNames = {"when_needed", "always", "never"};

struct SpaceOptions {
  bool early_stop = true;
  RngRule rng = RngRule::kWhenNeeded;
  // Patterns over "FQN" of modules, with * and ?; a unit's module matches one of `units` (empty: all may be units) and
  // none of `not_units`.
  std::vector<std::string> units = {};
  std::vector<std::string> not_units = {};
  // Patterns "FQN::OP" (op_pattern.h). An op that matches is always, or never, saved where its unit is checkpointed;
  // one that matches both is saved.
  std::vector<std::string> always_save = {};
  std::vector<std::string> never_save = {};

  friend bool operator==(const SpaceOptions&, const SpaceOptions&) = default;
};

// Why a module call cannot be a unit.
enum class Exclusion : std::uint8_t {
  kNone,
  kNotForward,
  kBackwardInside,
  kNoSaves,
  kNested,
  kCannotSave,        // an op that must not run twice cannot be saved
  kPattern,           // the user's patterns leave it out
  kOverwritten,       // what it reads is written to in place before its recompute
  kSeveralBackwards,  // more than one backward needs it
};
inline constexpr std::array<std::string_view, 9> kExclusionNames = {"none",     "not_forward", "backward_inside",
                                                                    "no_saves", "nested",      "cannot_save",
                                                                    "pattern",  "overwritten", "several_backwards"};

// What may be decided about a group.
enum class Freedom : std::uint8_t { kFree, kAlwaysSave, kNeverSave };

struct Choice {
  std::vector<step::OpId> savers;  // in the order in which they run
  std::int64_t time_ps = 0;        // what saving them spares
  Freedom freedom = Freedom::kFree;
  bool is_reached = true;  // the recompute runs them, unless saved; others are not worth saving
};

// A module call that may be a unit.
struct Candidate {
  step::CallId call;
  plan::EventRange region;
  std::uint32_t last_pack = 0;  // event of its last hooked save
  std::uint32_t stop = 0;       // the recompute ends before this event
  std::uint32_t trigger = 0;    // the first unpack of one of its saves; kNever: it is never recomputed
  std::uint32_t frame_end = 0;  // the event at which its frame dies; kNever: not at all
  bool preserve_rng = false;
  bool early_stop = true;
  std::int64_t base_ps = 0;  // what the unit costs when every group that may be saved is saved
  std::vector<Choice> choices;
  bool changes_buffers = false;  // legal only because applying a plan restores them
};

// Everything a plan may consist of: candidate units in the order in which they are entered (outer ones first), and
// what is free in each. A plan of the space has some candidates, none inside another, and for each a set of groups.
struct Space {
  plan::EventIndex index;
  std::vector<Candidate> candidates;
  std::array<std::int64_t, kExclusionNames.size()> excluded = {};  // calls, by reason
  std::vector<Exclusion> exclusions;                               // by call; kNone: a candidate
};

// The times of one step's ops, and of a checkpoint itself.
struct Times {
  std::vector<std::int64_t> op_ps;  // by op
  std::int64_t region_ps = 0;       // per unit
  std::int64_t region_save_ps = 0;  // per tensor that autograd saves in a unit
  std::int64_t region_rng_ps = 0;   // per unit that keeps the RNG state
};

// Throws: Error for a pattern that matches nothing of the step.
Space find_space(const step::Step& step, const Times& times, const SpaceOptions& options = {});

// The unit with these groups saved; `saved` has one flag per choice.
plan::Unit make_unit(const Candidate& candidate, std::span<const std::uint8_t> saved);

// What a plan does beyond plain training: the ops that run again, and its checkpoints. The space decides nothing here:
// any plan that can be replayed has a price.
struct Rerun {
  std::vector<step::OpId> ops;
  cost::RegionCounts regions;
};
Rerun rerun_of(const step::Step& step, const plan::EventIndex& index, const plan::Plan& plan);

// What that takes.
std::int64_t recompute_ps(const step::Step& step, const plan::EventIndex& index, const Times& times,
                          const plan::Plan& plan);

}  // namespace tidemark::planner
