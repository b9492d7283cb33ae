#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tidemark/planner/problem.h"

namespace tidemark::verify {

// The smallest peaks that paths can have, found by asking whether a path keeps within a given peak: going back through
// an arc, a group is saved only if running it again would go above that peak, since saving anything else only adds
// bytes. The planner finds the same by comparing ways to save.

// Larger than any peak: there is no path.
inline constexpr std::int64_t kNoWay = std::numeric_limits<std::int64_t>::max();

struct LeastPeaks {
  std::vector<std::int64_t> from_state;   // of any path from there, relative to what is kept before
  std::vector<std::int64_t> through_arc;  // of those that begin with the arc
};

LeastPeaks find_least_peaks(const planner::Episode& episode);

// The smallest peak of a path that takes the arc, when what follows has at least the peak `after`.
std::int64_t least_peak(const planner::Arc& arc, std::int64_t after);

}  // namespace tidemark::verify
