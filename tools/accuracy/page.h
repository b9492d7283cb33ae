#pragma once

#include <string>

#include "op_times.h"

namespace tidemark::accuracy {

// docs/accuracy.md, the same bytes for the same measurements and constants.
std::string page_text(const OpTimes& times);

}  // namespace tidemark::accuracy
