#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::step {

// Names of equal layers told as one: "layers.{0-3,7}.mlp" for layers.0.mlp to layers.3.mlp and layers.7.mlp.

// A module's name with * for the last part that is a number, and that number; -1 and the name itself without one.
struct FoldedName {
  std::string pattern;
  std::int64_t number = -1;
};
FoldedName fold_name(std::string_view fqn);

// Requires: names that fold_name() gave this pattern for; the same number may come several times.
std::string unfold_names(const std::string& pattern, std::vector<std::int64_t> numbers);

}  // namespace tidemark::step
