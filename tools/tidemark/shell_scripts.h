#pragma once

#include <string>

#include "command_tree.h"

namespace tidemark::cli {

// Completion scripts for all commands below `root`: names of commands, their flags and choices, and files where a
// command takes files. They name nothing but what is in `root`, so a new command needs no change here.
std::string bash_script(const CommandInfo& root);
std::string zsh_script(const CommandInfo& root);
std::string fish_script(const CommandInfo& root);

}  // namespace tidemark::cli
