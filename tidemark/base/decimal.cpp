#include "tidemark/base/decimal.h"

#include <limits>

#include "tidemark/base/checked.h"

namespace tidemark {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t count_digits(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  return n;
}

}  // namespace

std::optional<DecimalPrefix> read_decimal_prefix(std::string_view text) {
  std::string_view whole = text.substr(0, count_digits(text));
  std::string_view rest = text.substr(whole.size());
  std::string_view fraction;
  if (whole.empty()) return std::nullopt;
  if (!rest.empty() && rest.front() == '.') {
    fraction = rest.substr(1, count_digits(rest.substr(1)));
    if (fraction.empty()) return std::nullopt;
    rest = rest.substr(1 + fraction.size());
  }
  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  while (whole.size() > 1 && whole.front() == '0') whole.remove_prefix(1);

  std::optional<std::int64_t> digits = 0;
  for (const std::string_view part : {whole, fraction})
    for (const char c : part) {
      if (digits) digits = checked_mul(*digits, 10);
      if (digits) digits = checked_add(*digits, c - '0');
      if (!digits) return std::nullopt;
    }
  return DecimalPrefix{{*digits, static_cast<int>(fraction.size())}, rest};
}

std::optional<std::int64_t> scale_down(const Decimal& value, std::int64_t unit) {
  __extension__ using Wide = __int128;  // both factors are below 2^63, so the product fits
  Wide product = static_cast<Wide>(value.digits) * unit;
  for (int i = 0; i < value.decimals; ++i) product /= 10;
  if (product > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return static_cast<std::int64_t>(product);
}

}  // namespace tidemark
