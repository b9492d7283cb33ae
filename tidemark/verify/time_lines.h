#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tidemark/planner/problem.h"
#include "tidemark/verify/least_peaks.h"

namespace tidemark::verify {

__extension__ using Int128 = __int128;

// What ways take at least, by prices. With a price on every kept byte the least time plus price of all ways to a state
// is a shortest path, and
//
//   time of a way to the state that keeps S bytes  >=  before(state, price) - price * S
//
// Where an arc follows, S is at most a cap, so that lines of a higher price hold for a lower one:
// before(state, q) - (q - p) * cap is as good as before(state, p) for every q >= p. Any prices give true bounds; good
// ones give sharp ones. All values are in units of 2^-kPriceBits ps.
inline constexpr int kPriceBits = 24;
inline constexpr std::int64_t kMostPrice = std::int64_t{1} << 58;
inline constexpr Int128 kFar = static_cast<Int128>(1) << 123;

inline Int128 scaled(std::int64_t ps) { return static_cast<Int128>(ps) << kPriceBits; }

// With the price of nothing before them, as TimeLines wants them.
std::vector<std::int64_t> from_zero(const std::vector<std::int64_t>& prices);

class TimeLines {
 public:
  // Requires: prices ascend, from 0, up to kMostPrice.
  TimeLines(const planner::Episode& episode, const LeastPeaks& peaks, std::int64_t room_bytes,
            std::vector<std::int64_t> prices);

  const std::vector<std::int64_t>& prices() const { return prices_; }
  bool is_reached(std::uint32_t state) const { return before_[state * prices_.size()] < kFar; }
  // What may be kept before an arc.
  std::int64_t cap(std::uint32_t arc) const { return cap_[arc]; }
  Int128 before(std::uint32_t state, std::size_t k) const { return before_[state * prices_.size() + k]; }
  // The rest of a path from a state where S bytes are kept takes at least after(state, k) + price * S.
  Int128 after(std::uint32_t state, std::size_t k) const { return after_[state * prices_.size() + k]; }
  // By price: the way to the arc, of which at most `cap` bytes may be kept, in terms of what is kept by then.
  void way_to(std::uint32_t state, std::int64_t cap, std::vector<Int128>& lines) const;

 private:
  std::vector<std::int64_t> prices_;
  std::vector<std::int64_t> cap_;  // by arc
  std::vector<Int128> before_;     // by state and price
  std::vector<Int128> after_;
};

}  // namespace tidemark::verify
