#include "command_tree.h"

#include <algorithm>

#include "commands.h"

namespace tidemark::cli {

namespace {

// CLI11 keeps the values of an IsMember check only in the type's text: "SHELL:{bash,zsh,fish}".
std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t open = type.find('{');
  const std::size_t close = type.rfind('}');
  if (open == type.npos || close == type.npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

OptionInfo describe(const CLI::Option& option) {
  OptionInfo info;
  for (const std::string& name : option.get_snames()) info.flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.flags.push_back("--" + name);
  info.help = option.get_description();
  info.repeats = option.get_items_expected_max() > 1;
  if (option.get_items_expected_max() == 0) return info;
  const std::string type = option.get_type_name();
  info.value = option.get_positional() ? option.get_name(true) : type.substr(0, type.find(':'));
  info.choices = choices_in(type);
  info.takes_file = std::find(kFileNames.begin(), kFileNames.end(), info.value) != kFileNames.end();
  return info;
}

Json to_json(const OptionInfo& option) {
  return {{"flags", option.flags},     {"value", option.value},           {"help", option.help},
          {"choices", option.choices}, {"takes_file", option.takes_file}, {"repeats", option.repeats}};
}

template <class Info>
Json list_json(const std::vector<Info>& infos) {
  Json list = Json::array();
  for (const Info& info : infos) list.push_back(to_json(info));
  return list;
}

}  // namespace

CommandInfo describe(const CLI::App& app) {
  CommandInfo info{.name = app.get_name(),
                   .path = app.get_name(),
                   .summary = app.get_description(),
                   .examples = app.get_footer(),
                   .arguments = {},
                   .options = {},
                   .commands = {}};
  if (app.get_parent() != nullptr) info.path = app.get_parent()->get_name() + " " + info.name;
  for (const CLI::Option* option : app.get_options())
    (option->get_positional() ? info.arguments : info.options).push_back(describe(*option));
  for (const CLI::App* command : app.get_subcommands({})) info.commands.push_back(describe(*command));
  return info;
}

std::vector<std::string> flags_of(const CommandInfo& command) {
  std::vector<std::string> flags;
  for (const OptionInfo& option : command.options) flags.insert(flags.end(), option.flags.begin(), option.flags.end());
  return flags;
}

Json to_json(const CommandInfo& command) {
  return {{"name", command.name},
          {"summary", command.summary},
          {"arguments", list_json(command.arguments)},
          {"options", list_json(command.options)},
          {"commands", list_json(command.commands)}};
}

}  // namespace tidemark::cli
