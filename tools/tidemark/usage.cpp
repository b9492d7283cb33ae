#include "usage.h"

#include <fmt/format.h>

#include <algorithm>

#include "command_tree.h"

namespace tidemark::cli {

namespace {

// Insertions, deletions, changes and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

struct Unknown {
  const CLI::App* app = nullptr;  // where it stands
  std::string word;
  bool is_option = false;
};

// The first word that nothing took; an empty app when everything was taken.
Unknown find_unknown(const CLI::App& root) {
  std::vector<const CLI::App*> apps = {&root};
  for (const CLI::App* command : root.get_subcommands()) apps.push_back(command);
  for (const CLI::App* app : apps) {
    bool after_mark = false;
    for (const std::string& word : app->remaining()) {
      if (word == "--") {
        after_mark = true;
      } else {
        return {app, word, !after_mark && word.starts_with("-")};
      }
    }
  }
  return {};
}

UsageError make_error(const CommandInfo& command, std::string problem, std::string expected, std::string remedy) {
  if (remedy.empty()) remedy = command.path + " --help";
  return UsageError({.kind = ErrorKind::kInput,
                     .place = command.path,
                     .problem = std::move(problem),
                     .expected = std::move(expected),
                     .got = {},
                     .remedy = std::move(remedy)});
}

UsageError unknown_option(const CommandInfo& command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  return make_error(command, fmt::format("there is no option \"{}\"", name), {}, nearest(name, flags_of(command)));
}

UsageError unknown_command(const CommandInfo& root, const std::string& word) {
  std::vector<std::string> names;
  for (const CommandInfo& command : root.commands) names.push_back(command.name);
  const std::string guess = nearest(word, names);
  return make_error(root, fmt::format("there is no command \"{}\"", word),
                    fmt::format("one of {}", fmt::join(names, ", ")),
                    guess.empty() ? "" : fmt::format("{} {}", root.name, guess));
}

std::string expected_arguments(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const OptionInfo& argument : command.arguments) names.push_back(argument.value);
  return names.empty() ? "options only" : fmt::format("one {}", fmt::join(names, " and one "));
}

// CLI11 knows what is wrong, but says it in words of its own ("1 required N missing").
UsageError wrong_value_count(const CommandInfo& command, const std::string& text) {
  for (const OptionInfo& option : command.options) {
    const std::string& flag = option.flags.back();
    if (text.starts_with(flag + ":"))
      return make_error(command, fmt::format("{} needs a value", flag), fmt::format("{} {}", flag, option.value), {});
    if (text.starts_with(flag.substr(2) + " "))
      return make_error(command, fmt::format("{} takes no value", flag), {}, {});
  }
  return make_error(command, text, {}, {});
}

// A required argument that is not there, or whatever else CLI11 found.
UsageError other_error(const CLI::App& app, const CLI::ParseError& error) {
  const CommandInfo command = describe(app);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return wrong_value_count(command, error.what());
  for (const CLI::Option* option : app.get_options())
    if (option->get_required() && option->count() == 0)
      return make_error(command, option->get_name() + " is missing", option->get_description(), {});
  return make_error(command, error.what(), {}, {});
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  constexpr std::size_t kMaxWordBytes = 64;  // no word of ours is near a longer one
  if (word.size() > kMaxWordBytes) return best;
  std::size_t best_distance = word.size() / 3 + 1;
  for (const std::string& candidate : candidates) {
    const bool is_start = word.size() >= 3 && candidate.starts_with(word);
    const std::size_t distance = is_start ? 1 : edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

UsageError explain_usage(const CLI::App& root, const CLI::ParseError& error) {
  // Before anything else that is wrong: a mistyped option is often why something else is missing.
  const Unknown unknown = find_unknown(root);
  if (unknown.app != nullptr) {
    const CommandInfo command = describe(*unknown.app);
    if (unknown.is_option) return unknown_option(command, unknown.word);
    if (unknown.app == &root) return unknown_command(command, unknown.word);
    return make_error(command, fmt::format("\"{}\" is one argument too many", unknown.word),
                      expected_arguments(command), {});
  }
  const auto chosen = root.get_subcommands();
  return other_error(chosen.empty() ? root : *chosen.front(), error);
}

}  // namespace tidemark::cli
