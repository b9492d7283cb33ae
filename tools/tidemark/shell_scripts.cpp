#include "shell_scripts.h"

#include <fmt/format.h>

#include <string_view>

namespace tidemark::cli {

namespace {

using Words = std::vector<std::string>;

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

Words names_of(const std::vector<CommandInfo>& commands) {
  Words names;
  for (const CommandInfo& command : commands) names.push_back(command.name);
  return names;
}

// bash: one function that looks for the command among the words before the cursor.

// What may stand where the cursor is: words, or flags once a dash is typed, or files.
struct Candidates {
  Words words;
  Words flags;
  bool files = false;
};

std::string bash_settings(const Candidates& candidates) {
  return fmt::format("words=\"{}\" flags=\"{}\" files={}", fmt::join(candidates.words, " "),
                     fmt::join(candidates.flags, " "), candidates.files ? "1" : "");
}

std::string bash_case(const CommandInfo& command, const std::string& label) {
  Candidates anywhere{.words = names_of(command.commands), .flags = flags_of(command)};
  for (const OptionInfo& argument : command.arguments) {
    anywhere.words.insert(anywhere.words.end(), argument.choices.begin(), argument.choices.end());
    anywhere.files = anywhere.files || argument.takes_file;
  }
  std::string after_options;
  for (const OptionInfo& option : command.options)
    if (!option.value.empty())
      after_options += fmt::format("        {}) {} ;;\n", fmt::join(option.flags, "|"),
                                   bash_settings({.words = option.choices, .flags = {}, .files = option.takes_file}));
  if (after_options.empty()) return fmt::format("    {}) {} ;;\n", label, bash_settings(anywhere));
  return fmt::format("    {})\n      case $previous in\n{}        *) {} ;;\n      esac\n      ;;\n", label,
                     after_options, bash_settings(anywhere));
}

// zsh: _arguments for the root, and again for what follows the command.

std::string quote(const std::string& text) { return fmt::format("'{}'", replace_all(text, "'", "'\\''")); }

std::string zsh_text(std::string text) {
  for (const std::string_view special : {"\\", ":", "[", "]"})
    text = replace_all(std::move(text), special, fmt::format("\\{}", special));
  return text;
}

std::string zsh_action(const OptionInfo& option) {
  if (option.takes_file) return "_files";
  return option.choices.empty() ? "" : fmt::format("({})", fmt::join(option.choices, " "));
}

Words zsh_specs(const CommandInfo& command) {
  Words specs;
  for (const OptionInfo& option : command.options)
    for (const std::string& flag : option.flags) {
      std::string spec = fmt::format("{}[{}]", flag, zsh_text(option.help));
      if (!option.value.empty()) spec += fmt::format(":{}:{}", option.value, zsh_action(option));
      specs.push_back(quote(spec));
    }
  std::size_t position = 0;
  for (const OptionInfo& argument : command.arguments) {
    const std::string where = argument.repeats ? "*" : fmt::format("{}", ++position);
    specs.push_back(quote(fmt::format("{}:{}:{}", where, argument.value, zsh_action(argument))));
  }
  return specs;
}

std::string zsh_case(const CommandInfo& command) {
  return fmt::format("        {}) _arguments -S {} ;;\n", command.name, fmt::join(zsh_specs(command), " "));
}

// fish: one line for each thing that may be completed, with the condition under which it is.

std::string fish_quote(const std::string& text) {
  return fmt::format("'{}'", replace_all(replace_all(text, "\\", "\\\\"), "'", "\\'"));
}

std::string fish_option(const std::string& start, const OptionInfo& option) {
  std::string line = start;
  for (const std::string& flag : option.flags)
    line += flag.starts_with("--") ? fmt::format(" -l {}", flag.substr(2)) : fmt::format(" -s {}", flag.substr(1));
  if (!option.value.empty()) line += option.takes_file ? " -r -F" : " -x";
  if (!option.choices.empty()) line += fmt::format(" -a '{}'", fmt::join(option.choices, " "));
  return fmt::format("{} -d {}\n", line, fish_quote(option.help));
}

std::string fish_lines(const std::string& start, const CommandInfo& command) {
  std::string lines;
  for (const OptionInfo& option : command.options) lines += fish_option(start, option);
  for (const OptionInfo& argument : command.arguments) {
    if (argument.takes_file) lines += start + " -F\n";
    if (!argument.choices.empty())
      lines += fmt::format("{} -a '{}' -d {}\n", start, fmt::join(argument.choices, " "), fish_quote(argument.help));
  }
  return lines;
}

}  // namespace

std::string bash_script(const CommandInfo& root) {
  std::string cases = bash_case(root, "\"\"");
  for (const CommandInfo& command : root.commands) cases += bash_case(command, command.name);
  constexpr std::string_view kScript = R"(# bash completion for @NAME@, written by: @NAME@ completion bash
_@NAME@() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command="" words="" flags="" files="" word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      @COMMANDS@) command=$word; break ;;
    esac
  done
  case $command in
@CASES@  esac
  if [[ $current == -* ]]; then
    words=$flags files=
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null || true
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F _@NAME@ @NAME@
)";
  std::string script = replace_all(std::string(kScript), "@CASES@", cases);
  script = replace_all(std::move(script), "@COMMANDS@", fmt::format("{}", fmt::join(names_of(root.commands), "|")));
  return replace_all(std::move(script), "@NAME@", root.name);
}

std::string zsh_script(const CommandInfo& root) {
  std::string commands;
  std::string cases;
  for (const CommandInfo& command : root.commands) {
    commands += fmt::format("        {}\n", quote(fmt::format("{}:{}", command.name, zsh_text(command.summary))));
    cases += zsh_case(command);
  }
  constexpr std::string_view kScript = R"(#compdef @NAME@
# zsh completion for @NAME@, written by: @NAME@ completion zsh
_@NAME@() {
  local curcontext=$curcontext state line
  local -a commands
  typeset -A opt_args
  _arguments -C @SPECS@ '1:command:->command' '*::argument:->argument'
  case $state in
    command)
      commands=(
@COMMANDS@      )
      _describe -t commands command commands
      ;;
    argument)
      case $words[1] in
@CASES@      esac
      ;;
  esac
}
# Loaded from $fpath this file is the function's body; sourced, it announces the function.
if [[ $funcstack[1] == _@NAME@ ]]; then
  _@NAME@ "$@"
else
  compdef _@NAME@ @NAME@
fi
)";
  std::string script = replace_all(std::string(kScript), "@CASES@", cases);
  script = replace_all(std::move(script), "@COMMANDS@", commands);
  script = replace_all(std::move(script), "@SPECS@", fmt::format("{}", fmt::join(zsh_specs(root), " ")));
  return replace_all(std::move(script), "@NAME@", root.name);
}

std::string fish_script(const CommandInfo& root) {
  const std::string start = fmt::format("complete -c {}", root.name);
  std::string script =
      fmt::format("# fish completion for {0}, written by: {0} completion fish\n{1} -f\n", root.name, start);
  for (const CommandInfo& command : root.commands)
    script +=
        fmt::format("{} -n __fish_use_subcommand -a {} -d {}\n", start, command.name, fish_quote(command.summary));
  script += fish_lines(start + " -n __fish_use_subcommand", root);
  for (const CommandInfo& command : root.commands)
    script += fish_lines(fmt::format("{} -n '__fish_seen_subcommand_from {}'", start, command.name), command);
  return script;
}

}  // namespace tidemark::cli
