#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark {

// Times are integer picoseconds inside, in variables named `..._ps`, so that sums do not depend on their order; they
// are milliseconds in files and tables. 2^63 ps is 106 days.
//
//   ps_from_ms(0.34953, "op 3")  -> 349530000
//   format_ms(349530000)         -> "0.34953"

inline constexpr std::int64_t kPsPerNs = 1'000;
inline constexpr std::int64_t kPsPerMs = 1'000'000'000;

// The nearest picosecond. Throws: Error naming `place` when `ms` is negative, not finite or too large.
std::int64_t ps_from_ms(double ms, std::string_view place);

// Milliseconds as an exact decimal, without trailing zeros: this is how files write a time.
std::string format_ms(std::int64_t ps);

// "12.3 ms", "4.56 us", "789 ps": three significant digits, for people.
std::string format_duration(std::int64_t ps);

}  // namespace tidemark
