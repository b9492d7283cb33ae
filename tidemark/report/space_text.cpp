#include "tidemark/report/space_text.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "tidemark/step/dump.h"

namespace tidemark::report {

std::string space_text(const planner::SpaceOptions& space) {
  std::vector<std::string> words;
  const auto add = [&](std::string_view option, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns)
      words.push_back(fmt::format("{} '{}'", option, step::printable(pattern)));
  };
  add("--units", space.units);
  add("--not-units", space.not_units);
  add("--always-save", space.always_save);
  add("--never-save", space.never_save);
  if (space.rng == planner::RngRule::kAlways) words.emplace_back("--rng always");
  if (space.rng == planner::RngRule::kNever) words.emplace_back("--rng never");
  if (!space.early_stop) words.emplace_back("--no-early-stop");
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace tidemark::report
