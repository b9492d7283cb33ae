#pragma once

#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// The same paths, told by fewer states. What an arc comes to is forgotten where it lies below what follows whatever is
// saved; then states from which the same arcs lead to the same states are one, and so is a state with its successor
// when nothing happens between them. Peaks that were forgotten never decide, so that every path from the first state
// keeps its time and, as far as it matters for any budget that can be met, its peak.

void simplify(Episode& episode);

// The same for an episode and its forward, which keep the same states and arcs.
void simplify(Episode& episode, Episode& forward);

}  // namespace tidemark::planner
