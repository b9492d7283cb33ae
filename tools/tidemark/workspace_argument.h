#pragma once

#include <optional>
#include <string>

#include "console.h"
#include "tidemark/memory/workspace.h"

namespace tidemark::cli {

// The file of the workspace table that a command uses: the one that was named, or the one beside the step, which is
// said; empty without one.
std::string find_workspace_argument(const std::string& named, const std::string& step, const Console& console);

// The same, read.
std::optional<memory::WorkspaceTable> read_workspace_argument(const std::string& named, const std::string& step,
                                                              const Console& console);

}  // namespace tidemark::cli
