#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::step {

// Names that differ by numbers alone, told together: "encoder.block.{0-5}.layer.1" for encoder.block.0.layer.1 to
// encoder.block.5.layer.1. Which of several numbers is told as a range follows from the names, unlike in
// folded_name.h, where it is the last.

// A name with * for every part that is a number, and those numbers.
struct NumberedName {
  std::string pattern;
  std::vector<std::int64_t> numbers;
};
NumberedName split_numbers(std::string_view fqn);

// Names that are told as one, and where they stood.
struct NamesTogether {
  std::string text;
  std::vector<std::size_t> members;  // ascending
};

// Few texts that together mean just the names with these numbers; in the order of their first members. A name may come
// several times. Requires: as many numbers in each as the pattern has stars.
std::vector<NamesTogether> fold_names(const std::string& pattern,
                                      const std::vector<std::vector<std::int64_t>>& numbers);

}  // namespace tidemark::step
