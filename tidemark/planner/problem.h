#pragma once

#include <cstdint>
#include <vector>

namespace tidemark::planner {

// The planner's view of a step: paths through a graph. A *state* is a place in the forward pass together with what of
// the tensors that several stages may hold is held by then; an *arc* leads from one to a later one, either as a module
// call that is checkpointed (a unit) or as the stretch of plain ops up to the next place where a call begins or ends.
// A plan is a path from the first state to the last with, on every unit, a set of saved groups.
//
// Memory is told relative to S, the bytes that earlier arcs keep. Of an arc with saved groups of K bytes in all:
//
//   S grows by  keep_bytes + K
//   peak        the largest of  tail_bytes,
//               before[j].recompute_bytes + (saved bytes of groups j, j+1, ...)        in the recompute, before group j
//               groups[j].inside_bytes + (saved bytes of groups after j), if j is not saved        while it runs again
//               before[j].forward_bytes + (saved bytes of groups before j)            in the forward, before group j
//   time        base_ps + the times of the groups that are not saved
//
// where `before` has one entry more than there are groups. For a peak P of everything later, relative to the new S, the
// path from here has the peak max(peak, keep_bytes + K + P).

// Smaller than any peak: nothing happens.
inline constexpr std::int64_t kNoPeak = -(std::int64_t{1} << 61);

struct ArcGroup {
  std::int64_t bytes = 0;
  std::int64_t time_ps = 0;
  std::int64_t inside_bytes = kNoPeak;
  std::uint32_t choice = 0;  // of the candidate

  friend bool operator==(const ArcGroup&, const ArcGroup&) = default;
};

struct ArcGap {
  std::int64_t recompute_bytes = kNoPeak;
  std::int64_t forward_bytes = kNoPeak;

  friend bool operator==(const ArcGap&, const ArcGap&) = default;
};

inline constexpr std::uint32_t kPlain = 0xFFFFFFFFu;

struct Arc {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t candidate = kPlain;
  bool needs_saved = false;  // at least one group of `groups` is saved
  std::int64_t keep_bytes = 0;
  std::int64_t base_ps = 0;
  std::int64_t tail_bytes = kNoPeak;
  std::vector<ArcGroup> groups;
  std::vector<ArcGap> before;
  std::vector<std::uint32_t> always_saved;  // choices of the candidate that are saved on this arc whatever else is

  bool is_unit() const { return candidate != kPlain; }
  friend bool operator==(const Arc&, const Arc&) = default;
};

// A part of the step in which nothing is kept for longer than itself: everything, unless there are several
// micro-batches. States are numbered along the forward; 0 is the first and the last one is the end.
struct Episode {
  std::uint32_t state_count = 1;
  std::vector<Arc> arcs;                 // by `from`, plain arcs first
  std::vector<std::uint32_t> first_arc;  // by state, and one more
};

struct Problem {
  std::vector<Episode> episodes;
  // Empty, or the same arcs with the same groups as the forward sees them while *parked* tensors are there: those that
  // the program holds for the rest of the forward, whatever a plan does (autocast's casts of weights). Here S has all
  // of them, from where they are parked on, and saving one adds nothing; in `episodes` it has those that a plan keeps.
  // A plan has to fit both.
  std::vector<Episode> forward_episodes;
  std::int64_t ground_bytes = 0;  // the peak of what no plan can change
  // Whether every bound below is what a replay says of every plan. Otherwise peaks are at most what a replay says.
  bool is_exact = true;
  std::int64_t given_count = 0;    // groups of units that count as saved for nothing: too many to try both ways
  std::int64_t pattern_count = 0;  // the most states at one place
};

}  // namespace tidemark::planner
