#include <fmt/format.h>

#include "commands.h"
#include "text_layout.h"

namespace tidemark::cli {

namespace {

// Examples travel in CLI11's footer, the one text of an App that is free; help.cpp shows it first.
std::string examples_text(const Examples& examples) {
  Table table("<<");
  for (const Example& example : examples) table.row({std::string(example.command), fmt::format("# {}", example.shows)});
  return table.text(2);
}

// CLI11 itself would read -1 as a huge number.
std::string check_count(const std::string& text) {
  constexpr std::size_t kMaxDigits = 9;
  const bool is_count = !text.empty() && text.size() <= kMaxDigits && text.find_first_not_of("0123456789") == text.npos;
  return is_count ? "" : fmt::format("expected a whole number below 10^{}, got \"{}\"", kMaxDigits, text);
}

void set_up(CLI::App& app, const CommandText& text) {
  app.footer(examples_text(text.examples));
  app.set_help_flag("-h,--help", "show this help");
  app.add_flag("--json")->description("write the result as JSON");
}

bool has_json(const CLI::App& app) {
  const CLI::Option* option = app.get_option("--json");
  return option->count() > 0 && option->as<bool>();
}

}  // namespace

CLI::App* new_command(CLI::App& root, const CommandText& text) {
  CLI::App* app = root.add_subcommand(text.name, text.summary);
  set_up(*app, text);
  return app;
}

void set_up_root(CLI::App& root, const CommandText& text) {
  root.name(text.name);
  root.description(text.summary);
  root.option_defaults()->disable_flag_override();  // --json=maybe; subcommands inherit it
  set_up(root, text);
  root.require_subcommand(0, 1);
}

void add_count(CLI::App& app, const std::string& flag, std::size_t& count, std::string_view help) {
  app.add_option(flag, count, fmt::format("{} (default {})", help, count))
      ->type_name("N")
      ->check(check_count)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

bool wants_json(const CLI::App& root) {
  if (has_json(root)) return true;
  for (const CLI::App* app : root.get_subcommands())
    if (has_json(*app)) return true;
  return false;
}

}  // namespace tidemark::cli
