#pragma once

#include "tidemark/planner/highs.h"

namespace tidemark::test {

// HiGHS from the package highsbox in the project's .venv, which ./test installs, or else the system's; loaded once.
// Throws: Error when there is none.
const planner::Highs& highs();

}  // namespace tidemark::test
