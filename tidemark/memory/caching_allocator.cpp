#include "tidemark/memory/caching_allocator.h"

#include <algorithm>

#include "tidemark/base/checked.h"
#include "tidemark/base/error.h"
#include "tidemark/base/rounding.h"
#include "tidemark/step/limits.h"

namespace tidemark::memory {

namespace {

// The constants of c10/cuda/CUDACachingAllocator.cpp.
constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kMaxSmallBytes = kMiB;
constexpr std::int64_t kSmallSegmentBytes = 2 * kMiB;
constexpr std::int64_t kLargeSegmentBytes = 20 * kMiB;
constexpr std::int64_t kMinOwnSegmentBytes = 10 * kMiB;
constexpr std::int64_t kOwnSegmentRounding = 2 * kMiB;

std::int64_t segment_bytes(std::int64_t bytes) {
  if (bytes <= kMaxSmallBytes) return kSmallSegmentBytes;
  return bytes < kMinOwnSegmentBytes ? kLargeSegmentBytes : round_up(bytes, kOwnSegmentRounding);
}

}  // namespace

std::uint32_t CachingAllocator::new_block(const Block& block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<std::uint32_t>(blocks_.size() - 1);
  }
  const std::uint32_t position = unused_.back();
  unused_.pop_back();
  blocks_[position] = block;
  return position;
}

void CachingAllocator::reserve(std::int64_t bytes) {
  const auto sum = checked_add(reserved_bytes_, bytes);
  if (!sum)
    throw Error({.kind = ErrorKind::kLimit,
                 .place = "caching allocator",
                 .problem = "the bytes reserved together do not fit 63 bits",
                 .expected = "less than 2^63",
                 .got = {},
                 .remedy = {}});
  reserved_bytes_ = *sum;
}

// Segments get ascending addresses that do not touch; blocks of different segments are never neighbours anyway.
std::uint32_t CachingAllocator::new_segment(std::int64_t bytes, bool is_small) {
  const std::int64_t address = reserved_bytes_;
  reserve(bytes);
  ++segment_count_;
  return new_block({address, bytes, kNoBlock, kNoBlock, is_small, false});
}

// Maps as many whole pieces as are needed behind the last block, which is used too if it is free.
std::uint32_t CachingAllocator::grow_segment(std::int64_t bytes, bool is_small) {
  std::uint32_t& last = last_block(is_small);
  const bool use_last = last != kNoBlock && blocks_[last].is_free;
  const std::int64_t there = use_last ? blocks_[last].bytes : 0;
  const std::int64_t more = round_up(bytes - there, is_small ? kSmallSegmentBytes : kLargeSegmentBytes);
  reserve(more);
  if (use_last) {
    remove_free(last);
    blocks_[last].bytes += more;
    return last;
  }
  if (last == kNoBlock) ++segment_count_;
  const std::int64_t address = last == kNoBlock ? 0 : blocks_[last].address + blocks_[last].bytes;
  const std::uint32_t block = new_block({address, more, last, kNoBlock, is_small, false});
  if (last != kNoBlock) blocks_[last].after = block;
  last = block;
  return block;
}

std::uint32_t CachingAllocator::take_free(std::int64_t bytes, bool is_small) {
  FreeBlocks& pool = free_blocks(is_small);
  const auto found = pool.lower_bound({bytes, 0});
  if (found == pool.end()) return kNoBlock;
  const std::uint32_t block = found->second;
  remove_free(block);
  return block;
}

void CachingAllocator::remove_free(std::uint32_t block) {
  free_blocks(blocks_[block].is_small).erase({blocks_[block].bytes, blocks_[block].address});
  blocks_[block].is_free = false;
}

void CachingAllocator::add_free(std::uint32_t block) {
  blocks_[block].is_free = true;
  free_blocks(blocks_[block].is_small).emplace(std::pair(blocks_[block].bytes, blocks_[block].address), block);
}

// Keeps the front of the block; the rest becomes a free block if it is worth it.
void CachingAllocator::split(std::uint32_t block, std::int64_t bytes) {
  const Block whole = blocks_[block];
  const std::int64_t left = whole.bytes - bytes;
  const bool keeps_little = whole.is_small || options_.expandable_segments;
  if (keeps_little ? left < kCudaRoundingBytes : left <= kMaxSmallBytes) return;
  const std::uint32_t rest = new_block({whole.address + bytes, left, block, whole.after, whole.is_small, false});
  blocks_[block].bytes = bytes;
  blocks_[block].after = rest;
  if (whole.after != kNoBlock) blocks_[whole.after].before = rest;
  if (last_block(whole.is_small) == block) last_block(whole.is_small) = rest;
  add_free(rest);
}

// Two neighbours become the first of them.
std::uint32_t CachingAllocator::merge(std::uint32_t first, std::uint32_t second) {
  blocks_[first].bytes += blocks_[second].bytes;
  blocks_[first].after = blocks_[second].after;
  if (blocks_[second].after != kNoBlock) blocks_[blocks_[second].after].before = first;
  if (last_block(blocks_[first].is_small) == second) last_block(blocks_[first].is_small) = first;
  unused_.push_back(second);
  return first;
}

std::uint32_t CachingAllocator::allocate(std::int64_t bytes) {
  if (bytes == 0) return kNoBlock;
  if (bytes < 0 || bytes > step::kMaxTotalBytes)
    throw Error({.kind = ErrorKind::kInput,
                 .place = "caching allocator",
                 .problem = "a size is out of range",
                 .expected = "from 0 to 2^62 bytes",
                 .got = std::to_string(bytes),
                 .remedy = {}});
  const std::int64_t rounded = round_up(bytes, kCudaRoundingBytes);
  const bool is_small = rounded <= kMaxSmallBytes;
  std::uint32_t block = take_free(rounded, is_small);
  if (block == kNoBlock)
    block =
        options_.expandable_segments ? grow_segment(rounded, is_small) : new_segment(segment_bytes(rounded), is_small);
  split(block, rounded);
  allocated_bytes_ += blocks_[block].bytes;
  return block;
}

void CachingAllocator::free(std::uint32_t block) {
  if (block == kNoBlock) return;
  allocated_bytes_ -= blocks_[block].bytes;
  const std::uint32_t before = blocks_[block].before;
  const std::uint32_t after = blocks_[block].after;
  if (after != kNoBlock && blocks_[after].is_free) {
    remove_free(after);
    merge(block, after);
  }
  if (before != kNoBlock && blocks_[before].is_free) {
    remove_free(before);
    block = merge(before, block);
  }
  add_free(block);
}

namespace {

// Feeds a CachingAllocator and keeps what it says at its highest.
class Feeder {
 public:
  explicit Feeder(const CachingAllocatorOptions& options) : allocator_(options) {}

  void came(const BlockId& block, std::int64_t bytes) {
    handles_[block] = allocator_.allocate(bytes);
    use_.peak_allocated_bytes = std::max(use_.peak_allocated_bytes, allocator_.allocated_bytes());
    if (allocator_.reserved_bytes() <= use_.peak_reserved_bytes) return;
    use_.peak_reserved_bytes = allocator_.reserved_bytes();
    use_.allocated_at_peak_bytes = allocator_.allocated_bytes();
  }

  void went(const BlockId& block) {
    const auto found = handles_.find(block);
    allocator_.free(found->second);
    handles_.erase(found);
  }

  AllocatorUse use() {
    use_.segments = allocator_.segment_count();
    return use_;
  }

 private:
  CachingAllocator allocator_;
  std::map<BlockId, std::uint32_t> handles_;
  AllocatorUse use_;
};

}  // namespace

AllocatorUse use_caching_allocator(const step::Step& step, const Timeline& timeline,
                                   const CachingAllocatorOptions& options) {
  const step::StepTables& t = step.tables();
  std::vector<bool> is_made(t.storages.size(), false);
  for (const step::Event& event : t.events)
    if (event.kind == step::EventKind::kAlloc) is_made[event.id] = true;
  Feeder feeder(options);
  for (std::uint32_t i = 0; i < t.storages.size(); ++i)
    if (!is_made[i]) feeder.came({BlockKind::kOriginal, i, 0}, t.storages[i].bytes);
  for (const Change& change : timeline.changes) {
    if (change.block.kind == BlockKind::kRngState) continue;
    if (change.kind == ChangeKind::kAlloc) {
      feeder.came(change.block, change.bytes);
    } else {
      feeder.went(change.block);
    }
  }
  return feeder.use();
}

}  // namespace tidemark::memory
