#pragma once

#include <cstdint>

namespace tidemark {

// How allocators round sizes. PyTorch's CUDA allocator hands out multiples of this (kMinBlockSize of
// c10/cuda/CUDACachingAllocator.h, torch 2.13).
inline constexpr std::int64_t kCudaRoundingBytes = 512;

// No allocator is believed to round to more.
inline constexpr std::int64_t kMostRoundingBytes = std::int64_t{1} << 30;

// The next multiple of `unit`; sizes are at most 2^62 and units at most 2^40, so that it fits.
constexpr std::int64_t round_up(std::int64_t bytes, std::int64_t unit) {
  const std::int64_t over = bytes % unit;
  return over == 0 ? bytes : bytes - over + unit;
}

}  // namespace tidemark
