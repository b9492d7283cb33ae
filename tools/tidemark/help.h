#pragma once

#include <string>

#include "command_tree.h"

namespace tidemark::cli {

// The text of --help: three examples first, then usage, arguments and options.
std::string help_text(const CommandInfo& command);

}  // namespace tidemark::cli
