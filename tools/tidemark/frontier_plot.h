#pragma once

#include <string>

#include "frontier_report.h"

namespace tidemark::cli {

// What recomputing costs (upwards) by budget (to the right): the frontier as a staircase, policies as their marks. A
// policy that lies under several marks shows the first one.
std::string frontier_plot(const FrontierReport& report);

// How a policy is marked: N none, F full, S selective, 2 every:2.
char mark_of(const plan::Policy& policy);

}  // namespace tidemark::cli
