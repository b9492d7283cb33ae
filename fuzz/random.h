#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

// The choices of a mutator: the same seed, the same choices.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {  // SplitMix64
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : next() % limit; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class List>
  const auto& pick(const List& items) {
    return items[below(std::size(items))];
  }

 private:
  std::uint64_t state_;
};
