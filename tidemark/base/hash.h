#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tidemark {

// A 128-bit hash (XXH3) of a sequence of integers and strings, the same on every machine and compiler: integers are
// fed as eight little-endian bytes and strings with their length, so that no two sequences run together. It tells
// different content apart; it is no defence against someone who forges content.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  std::string hex() const;  // 32 lower-case digits
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void add(std::uint64_t value);
  void add_signed(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
  void add(std::string_view text);
  void add(const Hash128& hash);
  Hash128 digest() const;
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tidemark
