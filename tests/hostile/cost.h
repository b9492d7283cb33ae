#pragma once

#include <cstdint>
#include <functional>

namespace tidemark::test {

// What a piece of work took. Seconds are of this thread's processor time, so that a busy machine does not matter;
// memory is the most that was allocated at one time, by anyone in the process (the library, zstd, ...), beyond what was
// there before.
struct Cost {
  double seconds = 0;
  std::int64_t peak_bytes = 0;
};

Cost measure(const std::function<void()>& work);

// Sanitizers have an allocator of their own, which cannot be counted; it also keeps what is freed.
bool counts_memory();

// A hostile file of up to 1 MiB may take one second and 64 MiB beyond what its text, when it is compressed, may take
// after decompression: 50 ns and 16 bytes for each byte of it. Checked with EXPECT; builds that are slow on purpose
// (sanitizers, no optimisation) get more time.
void expect_cheap(const Cost& cost, std::int64_t decompressed_bytes = 0);

}  // namespace tidemark::test
