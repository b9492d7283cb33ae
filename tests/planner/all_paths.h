#pragma once

#include <cstdint>
#include <functional>

#include "tidemark/planner/path.h"
#include "tidemark/planner/problem.h"

namespace tidemark::test {

// Every path of an episode, with every set of saved groups.
void for_each_path(const planner::Episode& episode, const std::function<void(const planner::Path&)>& visit);

// How many there are, arcs on which something has to be saved counted in full.
std::int64_t path_count(const planner::Episode& episode);

}  // namespace tidemark::test
