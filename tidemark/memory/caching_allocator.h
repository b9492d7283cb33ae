#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tidemark/memory/timeline.h"
#include "tidemark/step/step.h"

namespace tidemark::memory {

// A model of PyTorch's CUDA caching allocator on one stream: sizes are rounded up to 512 B; requests of up to 1 MiB
// come from small segments of 2 MiB, others from large ones of 20 MiB, or of their own size, rounded up to 2 MiB, from
// 10 MiB on. The smallest free block that is large enough is taken, the lowest address among equals; what is left of it
// becomes a free block when it is worth keeping (512 B of a small one, more than 1 MiB of a large one), and
// neighbouring free blocks become one. Segments are never given back. With expandable segments each pool is one segment
// that grows by 2 or 20 MiB at its end, and everything left over is worth keeping.
struct CachingAllocatorOptions {
  bool expandable_segments = false;
};

class CachingAllocator {
 public:
  // What allocate() returns for zero bytes, which take no memory.
  static constexpr std::uint32_t kNoBlock = 0xFFFFFFFFu;

  explicit CachingAllocator(const CachingAllocatorOptions& options = {}) : options_(options) {}

  // A handle for free(). Throws: Error when the bytes reserved together do not fit 63 bits.
  std::uint32_t allocate(std::int64_t bytes);
  // Requires: a handle that has not been freed.
  void free(std::uint32_t block);

  std::int64_t allocated_bytes() const { return allocated_bytes_; }  // after rounding
  std::int64_t reserved_bytes() const { return reserved_bytes_; }    // all segments
  std::size_t segment_count() const { return segment_count_; }

 private:
  struct Block {
    std::int64_t address = 0;
    std::int64_t bytes = 0;
    std::uint32_t before = kNoBlock;  // neighbours in the segment
    std::uint32_t after = kNoBlock;
    bool is_small = false;
    bool is_free = false;
  };
  using FreeBlocks = std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t>;  // by size and address

  FreeBlocks& free_blocks(bool is_small) { return free_[is_small ? 0 : 1]; }
  std::uint32_t& last_block(bool is_small) { return last_[is_small ? 0 : 1]; }
  std::uint32_t new_block(const Block& block);
  void reserve(std::int64_t bytes);
  std::uint32_t new_segment(std::int64_t bytes, bool is_small);
  std::uint32_t grow_segment(std::int64_t bytes, bool is_small);
  std::uint32_t take_free(std::int64_t bytes, bool is_small);
  void remove_free(std::uint32_t block);
  void add_free(std::uint32_t block);
  void split(std::uint32_t block, std::int64_t bytes);
  std::uint32_t merge(std::uint32_t first, std::uint32_t second);

  CachingAllocatorOptions options_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> unused_;  // positions in blocks_
  std::array<FreeBlocks, 2> free_;
  std::array<std::uint32_t, 2> last_ = {kNoBlock, kNoBlock};  // expandable: the last block of each pool
  std::int64_t allocated_bytes_ = 0;
  std::int64_t reserved_bytes_ = 0;
  std::size_t segment_count_ = 0;
};

// How the allocator fares with the changes of a timeline.
struct AllocatorUse {
  std::int64_t peak_allocated_bytes = 0;
  std::int64_t peak_reserved_bytes = 0;
  std::int64_t allocated_at_peak_bytes = 0;  // when reserved_bytes first reaches its peak
  std::size_t segments = 0;

  // What is reserved and cannot be used at that moment.
  std::int64_t fragmentation_bytes() const { return peak_reserved_bytes - allocated_at_peak_bytes; }
  friend bool operator==(const AllocatorUse&, const AllocatorUse&) = default;
};

// Feeds what is there at the start, in the order of storage ids, and then every change to a caching allocator. RNG
// states are left out: they are in the host's memory. Requires: a timeline of this step with its changes.
AllocatorUse use_caching_allocator(const step::Step& step, const Timeline& timeline,
                                   const CachingAllocatorOptions& options = {});

}  // namespace tidemark::memory
