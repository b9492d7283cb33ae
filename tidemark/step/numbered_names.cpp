#include "tidemark/step/numbered_names.h"

#include <algorithm>
#include <map>
#include <set>

#include "tidemark/step/folded_name.h"

namespace tidemark::step {

namespace {

constexpr std::size_t kMostDigits = 9;  // more are no layer's number

bool is_number(std::string_view part) {
  return !part.empty() && part.size() <= kMostDigits && part.find_first_not_of("0123456789") == std::string_view::npos;
}

using Sets = std::vector<std::set<std::int64_t>>;  // by star: every combination of them is meant

struct Block {
  Sets sets;
  std::vector<std::size_t> members;
};

// Joins those that differ at one star alone.
void join_at(std::size_t star, std::vector<Block>& blocks) {
  std::vector<Block> joined;
  std::map<Sets, std::size_t> place_of;
  for (Block& block : blocks) {
    Sets others = block.sets;
    others[star].clear();
    const auto [at, is_new] = place_of.emplace(std::move(others), joined.size());
    if (is_new) {
      joined.push_back(std::move(block));
      continue;
    }
    Block& into = joined[at->second];
    into.sets[star].insert(block.sets[star].begin(), block.sets[star].end());
    into.members.insert(into.members.end(), block.members.begin(), block.members.end());
  }
  blocks = std::move(joined);
}

// The star with the most different numbers first: that is the layers'.
std::vector<std::size_t> stars_by_variety(const std::vector<std::vector<std::int64_t>>& numbers) {
  Sets values(numbers.front().size());
  for (const std::vector<std::int64_t>& name : numbers)
    for (std::size_t i = 0; i < name.size(); ++i) values[i].insert(name[i]);
  std::vector<std::size_t> stars(values.size());
  for (std::size_t i = 0; i < stars.size(); ++i) stars[i] = i;
  std::stable_sort(stars.begin(), stars.end(),
                   [&](std::size_t a, std::size_t b) { return values[a].size() > values[b].size(); });
  return stars;
}

std::string text_of(const std::string& pattern, const Sets& sets) {
  std::string text;
  std::size_t star = 0;
  for (const char c : pattern) {
    if (c != '*' || star == sets.size()) {
      text += c;
      continue;
    }
    text += unfold_names("*", {sets[star].begin(), sets[star].end()});
    ++star;
  }
  return text;
}

}  // namespace

NumberedName split_numbers(std::string_view fqn) {
  NumberedName name;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(fqn.find('.', begin), fqn.size());
    const std::string_view part = fqn.substr(begin, end - begin);
    if (is_number(part)) name.numbers.push_back(std::stoll(std::string(part)));
    name.pattern += is_number(part) ? "*" : part;
    if (end == fqn.size()) return name;
    name.pattern += '.';
    begin = end + 1;
  }
}

std::vector<NamesTogether> fold_names(const std::string& pattern,
                                      const std::vector<std::vector<std::int64_t>>& numbers) {
  if (numbers.empty()) return {};
  std::vector<Block> blocks;
  std::map<std::vector<std::int64_t>, std::size_t> block_of;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [at, is_new] = block_of.emplace(numbers[i], blocks.size());
    if (is_new) {
      blocks.emplace_back();
      for (const std::int64_t number : numbers[i]) blocks.back().sets.push_back({number});
    }
    blocks[at->second].members.push_back(i);
  }
  for (const std::size_t star : stars_by_variety(numbers)) join_at(star, blocks);
  std::vector<NamesTogether> result;
  for (Block& block : blocks) {
    std::sort(block.members.begin(), block.members.end());
    result.push_back({text_of(pattern, block.sets), std::move(block.members)});
  }
  std::sort(result.begin(), result.end(),
            [](const NamesTogether& a, const NamesTogether& b) { return a.members.front() < b.members.front(); });
  return result;
}

}  // namespace tidemark::step
