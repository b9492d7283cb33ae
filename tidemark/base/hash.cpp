#include "tidemark/base/hash.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <cstddef>

namespace tidemark {

// Small pieces are gathered before they reach the hash, which is made for long runs.
struct Hasher::State {
  XXH3_state_t* hash = XXH3_createState();
  std::array<unsigned char, 4096> buffer;
  std::size_t used = 0;

  State() { XXH3_128bits_reset(hash); }
  ~State() { XXH3_freeState(hash); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void flush() {
    XXH3_128bits_update(hash, buffer.data(), used);
    used = 0;
  }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;

void Hasher::add(std::uint64_t value) {
  State& s = *state_;
  if (s.used + 8 > s.buffer.size()) s.flush();
  for (int i = 0; i < 8; ++i) s.buffer[s.used++] = static_cast<unsigned char>(value >> (8 * i));
}

void Hasher::add(std::string_view text) {
  add(static_cast<std::uint64_t>(text.size()));
  state_->flush();
  XXH3_128bits_update(state_->hash, text.data(), text.size());
}

void Hasher::add(const Hash128& hash) {
  add(hash.high);
  add(hash.low);
}

Hash128 Hasher::digest() const {
  state_->flush();
  const XXH128_hash_t result = XXH3_128bits_digest(state_->hash);
  return {result.high64, result.low64};
}

void Hasher::reset() {
  state_->used = 0;
  XXH3_128bits_reset(state_->hash);
}

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

}  // namespace tidemark
