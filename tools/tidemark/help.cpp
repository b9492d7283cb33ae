#include "help.h"

#include <fmt/format.h>

#include "text_layout.h"

namespace tidemark::cli {

namespace {

std::string usage(const CommandInfo& command) {
  std::string text = command.path;
  if (!command.commands.empty()) text += " COMMAND";
  for (const OptionInfo& argument : command.arguments)
    text += fmt::format(" {}{}", argument.value, argument.repeats ? "..." : "");
  return text + " [OPTION]...";
}

std::string arguments_text(const CommandInfo& command) {
  Table table("<<");
  for (const OptionInfo& argument : command.arguments) table.row({argument.value, argument.help});
  return table.text(2);
}

std::string options_text(const CommandInfo& command) {
  Table table("<<");
  for (const OptionInfo& option : command.options)
    table.row({fmt::format("{}{}{}", fmt::join(option.flags, ", "), option.value.empty() ? "" : " ", option.value),
               option.help});
  return table.text(2);
}

std::string commands_text(const CommandInfo& command) {
  Table table("<<");
  for (const CommandInfo& sub : command.commands) table.row({sub.name, sub.summary});
  return table.text(2);
}

}  // namespace

std::string help_text(const CommandInfo& command) {
  std::string text =
      fmt::format("Examples:\n{}\nUsage: {}\n\n{}.\n", command.examples, usage(command), command.summary);
  const auto section = [&](std::string_view title, const std::string& body) {
    if (!body.empty()) text += fmt::format("\n{}:\n{}", title, body);
  };
  section("Commands", commands_text(command));
  section("Arguments", arguments_text(command));
  section("Options", options_text(command));
  if (!command.commands.empty())
    text += fmt::format("\n{} COMMAND --help says more; docs/cli.md has it all.\n", command.path);
  return text;
}

}  // namespace tidemark::cli
