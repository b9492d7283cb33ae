#include "cost.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TIDEMARK_TEST_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TIDEMARK_TEST_SANITIZED
#endif

namespace {

std::atomic<std::int64_t> live_bytes = 0;
std::atomic<std::int64_t> peak_bytes = 0;

#ifdef TIDEMARK_TEST_SANITIZED
constexpr bool kCountsMemory = false;
constexpr double kSlowness = 20;
#else
constexpr bool kCountsMemory = true;
#ifdef NDEBUG
constexpr double kSlowness = 1;
#else
constexpr double kSlowness = 10;
#endif

void* count_new(void* block) {
  const auto size = static_cast<std::int64_t>(malloc_usable_size(block));
  const std::int64_t live = live_bytes.fetch_add(size, std::memory_order_relaxed) + size;
  std::int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
  return block;
}

void count_old(void* block) {
  live_bytes.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(block)), std::memory_order_relaxed);
}
#endif

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

// Replacing malloc counts operator new, which calls it, and C libraries such as zstd alike. glibc's own functions do
// the work.
#ifndef TIDEMARK_TEST_SANITIZED
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* block);

void* malloc(std::size_t size) noexcept { return count_new(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) noexcept { return count_new(__libc_calloc(count, size)); }
void* realloc(void* block, std::size_t size) noexcept {
  if (block != nullptr) count_old(block);
  return count_new(__libc_realloc(block, size));
}
void* memalign(std::size_t alignment, std::size_t size) noexcept { return count_new(__libc_memalign(alignment, size)); }
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return count_new(__libc_memalign(alignment, size));
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  *block = count_new(__libc_memalign(alignment, size));
  return *block == nullptr ? 12 : 0;  // ENOMEM
}
void free(void* block) noexcept {
  if (block != nullptr) count_old(block);
  __libc_free(block);
}
}
#endif

namespace tidemark::test {

bool counts_memory() { return kCountsMemory; }

Cost measure(const std::function<void()>& work) {
  const std::int64_t before = live_bytes.load();
  peak_bytes.store(before);
  const double start = cpu_seconds();
  work();
  return {cpu_seconds() - start, peak_bytes.load() - before};
}

void expect_cheap(const Cost& cost, std::int64_t decompressed_bytes) {
  EXPECT_LT(cost.seconds, (1.0 + 50e-9 * static_cast<double>(decompressed_bytes)) * kSlowness);
  if (!counts_memory()) return;
  EXPECT_LT(cost.peak_bytes, (std::int64_t{64} << 20) + 16 * decompressed_bytes);
}

}  // namespace tidemark::test
