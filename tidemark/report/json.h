#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tidemark::report {

// Keeps the order in which fields are added, so that output is the same on every run and reads like the text.
using Json = nlohmann::ordered_json;

}  // namespace tidemark::report
