#pragma once

#include <cstdint>

#include "tidemark/planner/problem.h"

namespace tidemark::verify {

// The peaks of one arc.

inline std::int64_t raised(std::int64_t peak, std::int64_t by) {
  return peak == planner::kNoPeak ? planner::kNoPeak : peak + by;
}

// Without those that cannot be the highest, whatever is saved, since what follows has at least the peak `after`.
planner::Arc without_low_peaks(const planner::Arc& arc, std::int64_t after);

// Whether peak and time are all there is to tell of the arc's parts: nothing in it depends on what it saves.
bool is_plain(const planner::Arc& arc);

// What the arc's own peak is at least, whatever is saved.
std::int64_t own_peak(const planner::Arc& arc);

}  // namespace tidemark::verify
