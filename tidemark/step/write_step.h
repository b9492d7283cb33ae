#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tidemark/step/step.h"

namespace tidemark::step {

// Writes a Step to its file (docs/step_format.md), whole or not at all; compressed when the name ends in ".zst".
// The same Step gives the same bytes on every machine and compiler (compressed: for the same zstd version).
// Throws: Error (io).
void write_step(const Step& step, const std::string& path);

// The text of the file.
std::string step_text(const Step& step);

// The same in pieces, for a caller that does not want to hold it all.
void write_step_text(const Step& step, const std::function<void(std::string_view)>& sink);

}  // namespace tidemark::step
