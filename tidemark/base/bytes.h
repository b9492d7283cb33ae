#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace tidemark {

// Memory sizes are exact integers of bytes, in variables named `..._bytes`. GiB is 2^30 and GB is 10^9; the two are
// never mixed, and a number without a unit is refused, because half of the field reads it as the other one.
//
//   parse_bytes("1.5GiB")          -> 1610612736
//   parse_budget("90%")            -> 90 % of whatever the device has
//   format_bytes(1610612736)       -> "1.50 GiB"
//   format_bytes_exact(1610612736) -> "1,610,612,736 B"

// A part of the device's memory, kept as an exact decimal: 87.5 % is {875, 1}.
struct Percentage {
  std::int64_t digits = 0;  // all digits without the point
  int decimals = 0;         // how many of them follow the point

  friend bool operator==(const Percentage&, const Percentage&) = default;
};

// What a user writes for a budget: a number of bytes, or a percentage of the device's memory.
struct Budget {
  std::variant<std::int64_t, Percentage> amount;

  // The budget in bytes on a device with `device_bytes`, rounded down. Throws: Error when a percentage meets a
  // device without memory.
  std::int64_t bytes_on(std::int64_t device_bytes) const;

  friend bool operator==(const Budget&, const Budget&) = default;
};

// Reads "512B", "70GiB", "1.5GiB", "80GB" (B; KiB MiB GiB TiB PiB; kB KB MB GB TB PB), a space before the unit
// allowed; a fraction of a byte is rounded down. Throws: Error naming `place`, also when the number has no unit.
std::int64_t parse_bytes(std::string_view text, std::string_view place);

// Reads a size as above up to 2^62 bytes, or "90%" (more than 0, at most 100).
Budget parse_budget(std::string_view text, std::string_view place);

// "0 B", "1023 B", "1.00 KiB", "1.50 GiB": at most two decimals, rounded to nearest, for people.
std::string format_bytes(std::int64_t bytes);

// "1,610,612,736 B": every byte, for checking by hand.
std::string format_bytes_exact(std::int64_t bytes);

// "70GiB" when the size is a whole number of a binary unit, else "1234567B": reads back as the same number.
std::string format_budget(const Budget& budget);

// 1234567 -> "1,234,567".
std::string format_count(std::int64_t count);

}  // namespace tidemark
