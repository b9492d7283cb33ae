#include "tidemark/cost/work_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "tidemark/base/error.h"
#include "tidemark/base/strict_json.h"

namespace tidemark::cost {

namespace {

struct NumberWord {
  std::string_view name;
  std::int64_t Work::*number;
};
constexpr std::array<NumberWord, 10> kNumbers = {{{"b", &Work::b},
                                                  {"m", &Work::m},
                                                  {"n", &Work::n},
                                                  {"k", &Work::k},
                                                  {"winograd", &Work::winograd_tiles},
                                                  {"flops", &Work::flops},
                                                  {"skipped", &Work::skipped_flops},
                                                  {"bytes", &Work::bytes},
                                                  {"row_bytes", &Work::row_bytes},
                                                  {"random", &Work::random}}};
constexpr std::string_view kItem = "item";
struct FlagWord {
  std::string_view name;
  bool Work::*flag;
};
constexpr std::array<FlagWord, 2> kFlags = {{{"backward", &Work::is_backward}, {"along_rows", &Work::is_along_rows}}};
constexpr std::int64_t kMostNumber = 100'000'000'000'000'000;
constexpr int kMostItemBytes = 16;  // complex128

[[noreturn]] void refuse(const std::string& place, std::string problem, std::string expected, std::string_view got) {
  throw Error({.kind = ErrorKind::kInput,
               .place = place,
               .problem = std::move(problem),
               .expected = std::move(expected),
               .got = shown_in_error(std::string(got)),
               .remedy = "leave the fourth element out, or calibrate again; docs/device_format.md has the words"});
}

// Words one after the other; each is taken where it is expected, or is left.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  std::string_view next() const { return rest_.substr(0, rest_.find(' ')); }
  bool is_over() const { return rest_.empty(); }
  void take() {
    const std::size_t space = rest_.find(' ');
    // A space at the end leaves an empty word, which nothing takes.
    is_open_ = space != std::string_view::npos && space + 1 == rest_.size();
    rest_ = space == std::string_view::npos ? std::string_view{} : rest_.substr(space + 1);
  }
  bool ends_in_a_space() const { return is_open_; }

 private:
  std::string_view rest_;
  bool is_open_ = false;
};

template <class Enum, std::size_t N>
Enum take_name(Words& words, const std::array<std::string_view, N>& names, const std::string& place) {
  const auto found = std::find(names.begin(), names.end(), words.next());
  if (found == names.end())
    refuse(place, "the work of the op cannot be read", fmt::format("one of {}", fmt::join(names, ", ")), words.next());
  words.take();
  return static_cast<Enum>(found - names.begin());
}

// The number after a name, when the next word is that: digits only, as they are written here.
std::optional<std::int64_t> take_number(Words& words, std::string_view name) {
  const std::string_view word = words.next();
  if (!word.starts_with(name)) return std::nullopt;
  const std::string_view digits = word.substr(name.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_plain = !digits.empty() && digits.front() >= '0' && digits.front() <= '9' &&
                        (digits.size() == 1 || digits.front() != '0');
  if (!is_plain || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  words.take();
  return number;
}

}  // namespace

std::string work_text(const Work& work) {
  constexpr Work kPlain;
  std::string text = fmt::format("{} {}", kFamilyNames[static_cast<std::size_t>(work.family)],
                                 device::kPrecisionNames[static_cast<std::size_t>(work.precision)]);
  for (const NumberWord& word : kNumbers)
    if (work.*word.number != kPlain.*word.number) text += fmt::format(" {}{}", word.name, work.*word.number);
  if (work.item_bytes != kPlain.item_bytes) text += fmt::format(" {}{}", kItem, work.item_bytes);
  for (const FlagWord& word : kFlags)
    if (work.*word.flag) text += fmt::format(" {}", word.name);
  return text;
}

Work parse_work_text(std::string_view text, const std::string& place) {
  Work work;
  Words words(text);
  work.family = take_name<Family>(words, kFamilyNames, place);
  work.precision = take_name<device::Precision>(words, device::kPrecisionNames, place);
  for (const NumberWord& word : kNumbers)
    if (const auto number = take_number(words, word.name)) work.*word.number = *number;
  if (const auto number = take_number(words, kItem)) {
    if (*number < 1 || *number > kMostItemBytes)
      refuse(place, "the work of the op cannot be", fmt::format("elements of 1 to {} bytes", kMostItemBytes), text);
    work.item_bytes = static_cast<int>(*number);
  }
  for (const FlagWord& word : kFlags) {
    if (words.next() != word.name) continue;
    work.*word.flag = true;
    words.take();
  }
  if (!words.is_over() || words.ends_in_a_space())
    refuse(place, "the work of the op cannot be read",
           "b, m, n, k, winograd, flops, skipped, bytes, row_bytes, random and item, each with a number, then backward "
           "and "
           "along_rows: each at most once, in this order",
           words.next());
  const bool is_in_range = std::all_of(kNumbers.begin(), kNumbers.end(),
                                       [&](const NumberWord& word) { return work.*word.number <= kMostNumber; });
  if (!is_in_range || !is_workable(work))
    refuse(place, "the work of the op cannot be",
           "numbers up to 10^17, whose products stay below that; no more skipped than flops", text);
  return work;
}

}  // namespace tidemark::cost
