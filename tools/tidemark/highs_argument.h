#pragma once

#include <string>

#include "tidemark/planner/highs.h"

namespace tidemark::cli {

// The solver HiGHS: the library that --highs names, or else the package highsbox in a .venv beside the program or above
// it, or else the system's.
planner::Highs find_highs(const std::string& path);

}  // namespace tidemark::cli
