#include "tidemark/step/folded_name.h"

#include <algorithm>

namespace tidemark::step {

namespace {

// "0-3,7".
std::string ranges_text(std::vector<std::int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] <= numbers[end] + 1) ++end;
    if (!text.empty()) text += ",";
    text += std::to_string(numbers[i]);
    if (numbers[end] != numbers[i]) text += "-" + std::to_string(numbers[end]);
    i = end + 1;
  }
  return text;
}

}  // namespace

FoldedName fold_name(std::string_view fqn) {
  std::size_t end = fqn.size();
  while (end > 0) {
    const std::size_t dot = fqn.rfind('.', end - 1);
    const std::size_t begin = dot == std::string_view::npos ? 0 : dot + 1;
    const std::string part(fqn.substr(begin, end - begin));
    if (!part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos)
      return {std::string(fqn.substr(0, begin)) + "*" + std::string(fqn.substr(end)), std::stoll(part)};
    if (dot == std::string_view::npos) break;
    end = dot;
  }
  return {std::string(fqn), -1};
}

std::string unfold_names(const std::string& pattern, std::vector<std::int64_t> numbers) {
  std::string name = pattern;
  const std::size_t star = name.find('*');
  if (numbers.empty() || star == std::string::npos) return name;
  const std::string text = ranges_text(std::move(numbers));
  const bool is_one = text.find_first_of(",-") == std::string::npos;
  return name.replace(star, 1, is_one ? text : "{" + text + "}");
}

}  // namespace tidemark::step
