#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "console.h"
#include "exit_code.h"

namespace tidemark::cli {

// A subcommand is one file with one function add_<name>(): it adds the subcommand to the root and returns what runs
// it. To add one: write that file, name it in CMakeLists.txt, and add its function to the two lists below. Help,
// suggestions, --json and shell completion follow by themselves.
struct Command {
  CLI::App* app = nullptr;
  std::function<ExitCode(Console&)> run;
};

Command add_models(CLI::App& root);
Command add_capture(CLI::App& root);
Command add_inspect(CLI::App& root);
Command add_validate(CLI::App& root);
Command add_memory(CLI::App& root);
Command add_time(CLI::App& root);
Command add_plan(CLI::App& root);
Command add_frontier(CLI::App& root);
Command add_max(CLI::App& root);
Command add_verify(CLI::App& root);
Command add_sac(CLI::App& root);
Command add_devices(CLI::App& root);
Command add_completion(CLI::App& root);

// In the order of the help.
inline constexpr std::array kCommands = {add_models, add_capture, add_inspect,   add_validate, add_memory,
                                         add_time,   add_plan,    add_frontier,  add_max,      add_verify,
                                         add_sac,    add_devices, add_completion};

struct Example {
  std::string_view command;  // runs as written in the project's root
  std::string_view shows;    // what it is an example of, in a few words
};
using Examples = std::array<Example, 3>;

struct CommandText {
  std::string name;
  std::string summary;  // one line, a sentence without its period
  Examples examples;
};

// Adds a subcommand with what all of them share: examples, --help and --json.
CLI::App* new_command(CLI::App& root, const CommandText& text);

// The same for the root itself.
void set_up_root(CLI::App& root, const CommandText& text);

// Adds an option that takes a whole number; its present value is the default and is shown in the help.
void add_count(CLI::App& app, const std::string& flag, std::size_t& count, std::string_view help);

// Whether --json was given to the root or to the subcommand that was chosen. Requires: root has parsed.
bool wants_json(const CLI::App& root);

// The names of arguments that are files, so that shells complete them as files.
inline constexpr std::string_view kStepName = "STEP";
inline constexpr std::array<std::string_view, 2> kFileNames = {kStepName, "FILE"};

}  // namespace tidemark::cli
