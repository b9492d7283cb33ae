#pragma once

#include <string>

#include "tidemark/planner/space.h"

namespace tidemark::report {

// The options that leave plans out, as they are typed ("--units 'h.*' --rng never"): without them a claim about all
// plans would be another one. Empty: none does.
std::string space_text(const planner::SpaceOptions& space);

}  // namespace tidemark::report
