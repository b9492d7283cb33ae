// tidemark completion SHELL: the script that teaches a shell to complete tidemark's commands.

#include <array>
#include <memory>

#include "command_tree.h"
#include "commands.h"
#include "shell_scripts.h"

namespace tidemark::cli {

namespace {

struct Shell {
  std::string_view name;
  std::string (*script)(const CommandInfo& root);
};

constexpr std::array<Shell, 3> kShells = {{{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}}};

std::vector<std::string> shell_names() {
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  return names;
}

std::string script_for(const std::string& name, const CLI::App& root) {
  for (const Shell& shell : kShells)
    if (shell.name == name) return shell.script(describe(root));
  TIDEMARK_CHECK(false, "the parser lets through only shells of the table");
  return {};
}

ExitCode complete(const std::string& shell, const CLI::App& root, const Console& console) {
  const std::string script = script_for(shell, root);
  if (console.json()) {
    console.print_json(Json{{"shell", shell}, {"script", script}});
  } else {
    console.print(script);
  }
  return ExitCode::kOk;
}

}  // namespace

Command add_completion(CLI::App& root) {
  CLI::App* app = new_command(
      root,
      {.name = "completion",
       .summary = "Write the completion script of a shell",
       .examples = {{{"source <(build/tidemark completion bash)", "complete in this bash"},
                     {"build/tidemark completion zsh", "save it as _tidemark in a folder of $fpath"},
                     {"build/tidemark completion fish", "save it as ~/.config/fish/completions/tidemark.fish"}}}});
  const auto shell = std::make_shared<std::string>();
  app->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember(shell_names()));
  return {app, [shell, &root](Console& console) { return complete(*shell, root, console); }};
}

}  // namespace tidemark::cli
