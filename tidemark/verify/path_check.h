#pragma once

#include <cstdint>

#include "tidemark/planner/problem.h"
#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/time_lines.h"
#include "tidemark/verify/way_bounds.h"

namespace tidemark::verify {

// Whether any path of an episode keeps within a room and takes at most a target: one pass from the last state to the
// first over all ways to go on, each told by its peak and its time. A way is left out only when another is no worse in
// both, when it goes above the room, or when it and the least that the way to it can take go above the target. What is
// left at the first state is a path; nothing left is a proof that there is none.

enum class PathAnswer : std::uint8_t { kNone, kFound, kTooManyEntries };

struct PathCheck {
  PathAnswer answer = PathAnswer::kNone;
  std::int64_t entries = 0;
  std::int64_t found_ps = 0;  // of the fastest, if one was found
};

PathCheck look_for_path(const planner::Episode& episode, const LeastPeaks& peaks, const TimeLines& lines,
                        const PathQuestion& question);

}  // namespace tidemark::verify
