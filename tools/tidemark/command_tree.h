#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "console.h"

namespace tidemark::cli {

// What the program understands, as data: read off the CLI11 app once, so that help, completion scripts and their JSON
// cannot disagree with what is parsed.
struct OptionInfo {
  std::vector<std::string> flags;  // "-h", "--help"; empty for an argument
  std::string value;               // name of what it takes: "N", "STEP"; empty when it takes nothing
  std::string help;
  std::vector<std::string> choices;  // the only values it takes, when there are few
  bool takes_file = false;
  bool repeats = false;
};

struct CommandInfo {
  std::string name;
  std::string path;  // "tidemark inspect"
  std::string summary;
  std::string examples;               // three lines
  std::vector<OptionInfo> arguments;  // in their order
  std::vector<OptionInfo> options;
  std::vector<CommandInfo> commands;
};

CommandInfo describe(const CLI::App& app);

// All flags of a command, long and short.
std::vector<std::string> flags_of(const CommandInfo& command);

Json to_json(const CommandInfo& command);

}  // namespace tidemark::cli
