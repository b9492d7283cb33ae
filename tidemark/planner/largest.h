#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tidemark::planner {

// The largest size of something (a batch, a sequence, a number of layers) that fits, by doubling until one does not and
// halving the distance from then on. That is right where more never needs less memory, which holds for sensible models
// but not for every kernel: a few sizes above the answer are tried, too, and the peaks of all that do not fit compared.

struct SizeTrial {
  std::int64_t size = 0;
  std::int64_t peak_bytes = 0;  // the smallest that any plan reaches, or one that fits
  bool fits = false;
  bool is_proved = true;  // false: no plan with a smaller peak is known, but there may be one

  friend bool operator==(const SizeTrial&, const SizeTrial&) = default;
};

struct Largest {
  std::int64_t size = 0;          // 0: not even the first size fits
  bool is_cut = false;            // the last size that may be tried fits
  bool is_monotone = true;        // of the sizes tried, none needs less than a smaller one that does not fit
  std::vector<SizeTrial> trials;  // by size
};

struct LargestOptions {
  std::int64_t first = 1;
  std::int64_t last = 1;
  std::vector<std::int64_t> also = {2, 4, 16};  // so many above the answer are tried, too
};

// Requires: 1 <= first <= last; the same size gives the same trial. Tries no size twice.
Largest find_largest(const LargestOptions& options, const std::function<SizeTrial(std::int64_t)>& try_size);

}  // namespace tidemark::planner
