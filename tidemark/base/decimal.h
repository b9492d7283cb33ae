#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tidemark {

// A non-negative decimal number read exactly: 1.50 is {150, 2}. No floating point, so that "0.1GB" is 100,000,000
// bytes everywhere.
struct Decimal {
  std::int64_t digits = 0;
  int decimals = 0;
};

struct DecimalPrefix {
  Decimal value;
  std::string_view rest;  // what follows the number
};

// Reads the decimal number at the start of `text`: digits, optionally a point and digits. Nothing when there is no
// digit or the digits do not fit 63 bits (trailing zeros after the point are dropped first).
std::optional<DecimalPrefix> read_decimal_prefix(std::string_view text);

// value * unit, rounded down; nothing when it does not fit.
std::optional<std::int64_t> scale_down(const Decimal& value, std::int64_t unit);

}  // namespace tidemark
