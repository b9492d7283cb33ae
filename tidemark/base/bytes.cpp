#include "tidemark/base/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tidemark/base/decimal.h"
#include "tidemark/base/error.h"

namespace tidemark {

namespace {

struct Unit {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::int64_t kKiB = 1024;
constexpr std::array<Unit, 6> kBinaryUnits = {{{"B", 1},
                                               {"KiB", kKiB},
                                               {"MiB", kKiB* kKiB},
                                               {"GiB", kKiB* kKiB* kKiB},
                                               {"TiB", kKiB* kKiB* kKiB* kKiB},
                                               {"PiB", kKiB* kKiB* kKiB* kKiB* kKiB}}};
constexpr std::array<Unit, 6> kDecimalUnits = {{{"kB", 1'000},
                                                {"KB", 1'000},
                                                {"MB", 1'000'000},
                                                {"GB", 1'000'000'000},
                                                {"TB", 1'000'000'000'000},
                                                {"PB", 1'000'000'000'000'000}}};

constexpr std::int64_t kMostBudgetBytes = std::int64_t{1} << 62;  // what plan files count to

constexpr std::string_view kSizeHint = "70GiB, 1.5GiB or 80GB";
constexpr std::string_view kBudgetHint = "70GiB, 1.5GiB, 80GB or 90%";

std::int64_t unit_bytes(std::string_view name) {
  for (const Unit& unit : kBinaryUnits)
    if (unit.name == name) return unit.bytes;
  for (const Unit& unit : kDecimalUnits)
    if (unit.name == name) return unit.bytes;
  return 0;
}

[[noreturn]] void refuse(std::string_view text, std::string_view place, std::string_view problem,
                         std::string_view hint) {
  throw Error({.kind = ErrorKind::kInput,
               .place = std::string(place),
               .problem = std::string(problem),
               .expected = "a number with a unit",
               .got = fmt::format("\"{}\"", text),
               .remedy = fmt::format("write it as {}", hint)});
}

struct Amount {
  Decimal value;
  std::string_view unit;
};

Amount read_amount(std::string_view text, std::string_view place, std::string_view hint) {
  const auto prefix = read_decimal_prefix(text);
  if (!prefix) {
    const bool starts_as_number = !text.empty() && text.front() >= '0' && text.front() <= '9';
    refuse(text, place, starts_as_number ? "the number has too many digits" : "this is not a size", hint);
  }
  std::string_view unit = prefix->rest;
  if (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (unit.empty() && prefix->value.digits == 0) unit = "B";  // nothing is nothing in any unit
  if (unit.empty()) refuse(text, place, "the size has no unit (GiB is 2^30 bytes, GB is 10^9)", hint);
  return {prefix->value, unit};
}

std::int64_t to_bytes(const Amount& amount, std::string_view text, std::string_view place, std::string_view hint) {
  const std::int64_t unit = unit_bytes(amount.unit);
  if (unit == 0) refuse(text, place, fmt::format("\"{}\" is not a unit of memory", amount.unit), hint);
  const auto bytes = scale_down(amount.value, unit);
  if (!bytes) refuse(text, place, "the size does not fit 64 bits", hint);
  return *bytes;
}

}  // namespace

std::int64_t parse_bytes(std::string_view text, std::string_view place) {
  return to_bytes(read_amount(text, place, kSizeHint), text, place, kSizeHint);
}

Budget parse_budget(std::string_view text, std::string_view place) {
  const Amount amount = read_amount(text, place, kBudgetHint);
  if (amount.unit != "%") {
    const std::int64_t bytes = to_bytes(amount, text, place, kBudgetHint);
    if (bytes == 0) refuse(text, place, "a budget of zero bytes holds nothing", kBudgetHint);
    if (bytes > kMostBudgetBytes) refuse(text, place, "a budget is at most 2^62 bytes, or 4096PiB", kBudgetHint);
    return {bytes};
  }
  const int decimals = std::min(amount.value.decimals, 16);  // more are refused below, and must not overflow here
  if (amount.value.decimals > 15) refuse(text, place, "the percentage has too many decimals", kBudgetHint);
  std::int64_t hundred = 100;  // in the percentage's own decimals
  for (int i = 0; i < decimals; ++i) hundred *= 10;
  if (amount.value.digits <= 0 || amount.value.digits > hundred)
    refuse(text, place, "a percentage must be above 0 and at most 100", kBudgetHint);
  return {Percentage{amount.value.digits, amount.value.decimals}};
}

std::int64_t Budget::bytes_on(std::int64_t device_bytes) const {
  if (const auto* bytes = std::get_if<std::int64_t>(&amount)) return *bytes;
  const auto& share = std::get<Percentage>(amount);
  if (device_bytes <= 0) {
    throw Error({.kind = ErrorKind::kInput,
                 .place = "budget",
                 .problem = "a percentage needs a device whose memory is known",
                 .expected = {},
                 .got = {},
                 .remedy = fmt::format("name a device, or write the budget as {}", kSizeHint)});
  }
  return *scale_down({share.digits, share.decimals + 2}, device_bytes);
}

std::string format_bytes(std::int64_t bytes) {
  // Magnitudes are unsigned so that the smallest integer has one too.
  const std::uint64_t size = bytes < 0 ? 0 - static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(bytes);
  const char* sign = bytes < 0 ? "-" : "";
  if (size < 1024) return fmt::format("{}{} B", sign, size);
  std::size_t i = 1;
  __extension__ using Wide = unsigned __int128;
  auto hundredths = [&](std::size_t unit) {
    const Wide scale = static_cast<Wide>(kBinaryUnits[unit].bytes);
    return static_cast<std::uint64_t>((static_cast<Wide>(size) * 100 + scale / 2) / scale);
  };
  while (i + 1 < kBinaryUnits.size() && hundredths(i) >= 102400) ++i;
  const std::uint64_t value = hundredths(i);
  return fmt::format("{}{}.{:02} {}", sign, value / 100, value % 100, kBinaryUnits[i].name);
}

std::string format_count(std::int64_t count) {
  const std::string digits = fmt::format("{}", count);
  const std::size_t sign = count < 0 ? 1 : 0;
  std::string text = digits.substr(0, sign);
  for (std::size_t i = sign; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string format_bytes_exact(std::int64_t bytes) { return format_count(bytes) + " B"; }

std::string format_budget(const Budget& budget) {
  if (const auto* share = std::get_if<Percentage>(&budget.amount)) {
    std::string digits = fmt::format("{:0{}}", share->digits, share->decimals + 1);
    if (share->decimals > 0) digits.insert(digits.size() - static_cast<std::size_t>(share->decimals), ".");
    return digits + "%";
  }
  const std::int64_t bytes = std::get<std::int64_t>(budget.amount);
  for (std::size_t i = kBinaryUnits.size(); i-- > 1;)
    if (bytes != 0 && bytes % kBinaryUnits[i].bytes == 0)
      return fmt::format("{}{}", bytes / kBinaryUnits[i].bytes, kBinaryUnits[i].name);
  return fmt::format("{}B", bytes);
}

}  // namespace tidemark
