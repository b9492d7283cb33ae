#pragma once

#include <string>

#include "tidemark/step/step.h"

namespace tidemark::cli {

inline constexpr const char* kStepHelp = "a recorded step: a step file, plain or .zst";

// The step that a STEP argument names. Every command asks here, so that what STEP may be is said once; names of
// models and Hugging Face configs will be understood here too.
// Throws: Error that says what a STEP may be.
step::Step read_step_argument(const std::string& argument);

}  // namespace tidemark::cli
