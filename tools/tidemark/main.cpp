// The tidemark command: finds the subcommand, runs it, and turns what is thrown into a message and an exit code.

#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <new>
#include <string_view>

#include "command_tree.h"
#include "commands.h"
#include "help.h"
#include "tidemark/step/format.h"
#include "tidemark/version.h"
#include "usage.h"

namespace tidemark::cli {

namespace {

void add_root_options(CLI::App& root) {
  set_up_root(root,
              {.name = "tidemark",
               .summary = "Plan activation checkpointing from one recorded training step",
               .examples = {{{"build/tidemark inspect examples/steps/two_layer_mlp.step.jsonl", "what a step holds"},
                             {"build/tidemark inspect examples/steps/two_layer_mlp.step.jsonl --dump", "every event"},
                             {"build/tidemark validate examples/steps/*.step.jsonl", "check files"}}}});
  root.add_flag("--version")->description("show the version");
}

ExitCode print_version(const Console& console) {
  if (console.json()) {
    console.print_json(Json{{"name", "tidemark"},
                            {"version", TIDEMARK_VERSION},
                            {"step_format", fmt::format("{}.{}", step::kFormatMajor, step::kFormatMinor)}});
  } else {
    console.print(fmt::format("tidemark {}\n", TIDEMARK_VERSION));
  }
  return ExitCode::kOk;
}

ExitCode print_help(const CLI::App& root, const Console& console) {
  const auto chosen = root.get_subcommands();
  const CommandInfo command = describe(chosen.empty() ? root : *chosen.front());
  if (console.json()) {
    console.print_json(to_json(command));
  } else {
    console.print(help_text(command));
  }
  return ExitCode::kOk;
}

// For a command line that could not be parsed, where --json may stand in a place CLI11 never reached.
bool mentions_json(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i)
    if (std::string_view(argv[i]) == "--json") return true;
  return false;
}

UsageError no_command(const CLI::App& root, const Console& console) {
  console.message(help_text(describe(root)) + "\n");
  return UsageError({.kind = ErrorKind::kInput,
                     .place = "tidemark",
                     .problem = "no command is given",
                     .expected = {},
                     .got = {},
                     .remedy = "one of the examples above"});
}

ExitCode run(int argc, char** argv, Console& console) {
  CLI::App root;
  add_root_options(root);
  std::vector<Command> commands;
  for (const auto add : kCommands) commands.push_back(add(root));
  try {
    root.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    console.set_json(wants_json(root));
    if (!root.remaining().empty()) throw explain_usage(root, help);  // help for a command that does not exist
    return print_help(root, console);
  } catch (const CLI::ParseError& error) {
    console.set_json(mentions_json(argc, argv));
    throw explain_usage(root, error);
  }
  console.set_json(wants_json(root));
  if (root.count("--version") > 0) return print_version(console);
  for (const Command& command : commands)
    if (command.app->parsed()) return command.run(console);
  throw no_command(root, console);
}

ExitCode fail(const Error& error, ExitCode code, const Console& console) {
  console.complain(error);
  if (!console.json()) return code;
  try {
    console.print_json(Json{{"error", error_json(error)}});
  } catch (const Error&) {  // stdout is what failed, and stderr has said so
  }
  return code;
}

// The one place where exceptions become exit codes.
ExitCode run_safely(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow further is an error like a full disk, not the end
  Console console;
  try {
    return run(argc, argv, console);
  } catch (const UsageError& error) {
    return fail(error, ExitCode::kUsage, console);
  } catch (const Error& error) {
    return fail(error, ExitCode::kError, console);
  } catch (const std::bad_alloc&) {
    const Error error({.kind = ErrorKind::kLimit,
                       .place = {},
                       .problem = "there is not enough memory for this input",
                       .expected = {},
                       .got = {},
                       .remedy = "a machine with more memory, or a smaller step"});
    return fail(error, ExitCode::kError, console);
  } catch (const std::exception& exception) {
    const Error error({.kind = ErrorKind::kInternal,
                       .place = {},
                       .problem = fmt::format("something unexpected happened: {}", exception.what()),
                       .expected = {},
                       .got = {},
                       .remedy = "please report this with the command and the input"});
    return fail(error, ExitCode::kError, console);
  }
}

}  // namespace

}  // namespace tidemark::cli

int main(int argc, char** argv) { return static_cast<int>(tidemark::cli::run_safely(argc, argv)); }
