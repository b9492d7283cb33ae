// Changes workspace tables in ways that keep most of their structure: rows come, go and change, steps within a row too,
// and the count in the first line follows.

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "random.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// Where a row's list of steps, "[[1,4096],[0,0]]", begins and ends.
struct Steps {
  std::size_t begin = std::string::npos;
  std::size_t end = 0;
};

Steps steps_of(const std::string& row) {
  const std::size_t begin = row.find("\",[");
  const std::size_t end = row.rfind(']', row.size() < 2 ? 0 : row.size() - 2);
  if (begin == std::string::npos || end == std::string::npos || end < begin + 2) return {};
  return {begin + 2, end + 1};
}

constexpr std::array<std::string_view, 12> kSteps = {
    "[0,0]",    "[0,1]", "[1,0]", "[1,4096]",   "[1,4611686018427387904]", "[1,-1]", "[2,0]", "[2,1]",
    "[2,4096]", "[3,0]", "[1]",   "[0,1048576]"};
constexpr std::array<std::string_view, 6> kKeys = {
    "k", "aten.mm.default(float32[2;1]){}", "k watched", "", "\\u0000", "\\ud83d"};

void change_steps(std::string& row, Random& random) {
  const Steps steps = steps_of(row);
  if (steps.begin == std::string::npos) return;
  const std::string_view step = random.pick(kSteps);
  const bool is_empty = steps.end - steps.begin == 2;
  switch (random.below(3)) {
    case 0:  // one more, first or last
      if (random.one_in(2)) {
        row.insert(steps.begin + 1, std::string(step) + (is_empty ? "" : ","));
      } else {
        row.insert(steps.end - 1, (is_empty ? "" : ",") + std::string(step));
      }
      return;
    case 1:
      row.replace(steps.begin, steps.end - steps.begin, "[]");
      return;
    default:
      row.replace(steps.begin, steps.end - steps.begin,
                  "[" + std::string(step) + "," + std::string(random.pick(kSteps)) + "]");
  }
}

void change_number(std::string& line, Random& random) {
  const std::size_t start = random.below(line.size());
  const std::size_t at = line.find_first_of("0123456789", start);
  if (at == std::string::npos) return;
  const std::size_t end = line.find_first_not_of("0123456789", at);
  static constexpr std::array<std::string_view, 8> kNumbers = {
      "0", "1", "2", "65536", "4294967296", "9223372036854775808", "-1", "1e400"};
  line.replace(at, (end == std::string::npos ? line.size() : end) - at, random.pick(kNumbers));
}

void change_row(std::vector<std::string>& lines, Random& random) {
  const std::size_t count = lines.size() - 1;
  if (count == 0) {
    lines.emplace_back(R"(["k",[],true])");
    return;
  }
  std::string& row = lines[1 + random.below(count)];
  switch (random.below(6)) {
    case 0:
      lines.push_back(row);  // a key twice, unless it changes later
      return;
    case 1:
      lines.erase(lines.begin() + 1 + static_cast<std::ptrdiff_t>(random.below(count)));
      return;
    case 2:
      change_number(row, random);
      return;
    case 3:
      if (const std::size_t end = row.find("\",["); row.starts_with("[\"") && end != std::string::npos)
        row.replace(2, end - 2, random.pick(kKeys));
      return;
    default:
      change_steps(row, random);
  }
}

void count_rows(std::string& first_line, std::size_t rows) {
  constexpr std::string_view kRows = "\"rows\":";
  const std::size_t at = first_line.find(kRows);
  if (at == std::string::npos) return;
  const std::size_t begin = at + kRows.size();
  const std::size_t end = first_line.find_first_not_of("0123456789", begin);
  first_line.replace(begin, (end == std::string::npos ? first_line.size() : end) - begin, std::to_string(rows));
}

std::string mutate(std::string_view text, Random& random) {
  std::vector<std::string> lines = lines_of(text);
  if (lines.empty()) return {};
  for (std::size_t i = 0; i <= random.below(3); ++i) change_row(lines, random);
  if (random.one_in(12)) change_number(lines[0], random);
  if (!random.one_in(12)) count_rows(lines[0], lines.size() - 1);
  std::string out;
  for (const std::string& line : lines) (out += line) += '\n';
  return out;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  Random random(seed);
  if (random.one_in(8)) return LLVMFuzzerMutate(data, size, max_size);
  const std::string text = mutate({reinterpret_cast<const char*>(data), size}, random);
  if (text.empty() || text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
