#include "tidemark/base/duration.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "tidemark/base/error.h"

namespace tidemark {

std::int64_t ps_from_ms(double ms, std::string_view place) {
  const double ps = ms * static_cast<double>(kPsPerMs);
  constexpr double kLimit = 9.2e18;  // below 2^63
  if (!std::isfinite(ms) || ms < 0 || ps > kLimit) {
    throw Error({.kind = ErrorKind::kInput,
                 .place = std::string(place),
                 .problem = "this is not a time",
                 .expected = "milliseconds from 0 to 9.2e9",
                 .got = fmt::format("{}", ms),
                 .remedy = {}});
  }
  return static_cast<std::int64_t>(std::llround(ps));
}

std::string format_ms(std::int64_t ps) {
  const bool negative = ps < 0;
  const std::uint64_t size = negative ? 0 - static_cast<std::uint64_t>(ps) : static_cast<std::uint64_t>(ps);
  constexpr auto kScale = static_cast<std::uint64_t>(kPsPerMs);
  std::string text = fmt::format("{}{}.{:09}", negative ? "-" : "", size / kScale, size % kScale);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string format_duration(std::int64_t ps) {
  struct Unit {
    const char* name;
    double ps;
  };
  constexpr std::array<Unit, 5> kUnits = {{{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}}};
  const double size = std::abs(static_cast<double>(ps));
  std::size_t i = 0;
  // 999.5 of a unit would print as 1000 of it with three digits, so that already takes the next one.
  while (i + 1 < kUnits.size() && size / kUnits[i].ps >= 999.5) ++i;
  const double value = static_cast<double>(ps) / kUnits[i].ps;
  const double shown = std::abs(value);
  const int decimals = i == 0 || shown >= 99.95 ? 0 : shown >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[i].name);
}

}  // namespace tidemark
