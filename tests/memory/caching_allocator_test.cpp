// The model of PyTorch's caching allocator, by its published rules.

#include "tidemark/memory/caching_allocator.h"

#include <gtest/gtest.h>

#include <map>

#include "../support/random.h"
#include "../support/random_plan.h"
#include "../support/random_step.h"
#include "../support/tiny_program.h"
#include "tidemark/base/error.h"
#include "tidemark/memory/replay.h"

namespace tidemark::memory {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr CachingAllocatorOptions kExpandable{.expandable_segments = true};

TEST(CachingAllocator, SmallAndLargeRequestsHaveSegmentsOfTheirOwn) {
  CachingAllocator allocator;
  allocator.allocate(1000);
  allocator.allocate(5 * kMiB);
  EXPECT_EQ(allocator.allocated_bytes(), 1024 + 5 * kMiB);  // 1,000 B round up to 2 * 512
  EXPECT_EQ(allocator.reserved_bytes(), 22 * kMiB);         // 2 MiB and 20 MiB
  EXPECT_EQ(allocator.segment_count(), 2u);
}

TEST(CachingAllocator, TwoOfSevenFitASegmentOfTwenty) {
  CachingAllocator allocator;
  for (int i = 0; i < 3; ++i) allocator.allocate(7 * kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), 40 * kMiB);  // 20 - 2 * 7 = 6 are left
  EXPECT_EQ(allocator.allocated_bytes(), 21 * kMiB);
}

TEST(CachingAllocator, LargeRequestsGetASegmentRoundedToTwo) {
  CachingAllocator allocator;
  allocator.allocate(10 * kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), 10 * kMiB);
  allocator.allocate(10 * kMiB + 1);  // 12 MiB, of which 2 MiB less 512 B are worth keeping
  EXPECT_EQ(allocator.reserved_bytes(), 22 * kMiB);
  EXPECT_EQ(allocator.allocated_bytes(), 20 * kMiB + 512);
}

TEST(CachingAllocator, ZeroBytesTakeNothing) {
  CachingAllocator allocator;
  const std::uint32_t block = allocator.allocate(0);
  EXPECT_EQ(allocator.reserved_bytes(), 0);
  allocator.free(block);
  EXPECT_THROW(allocator.allocate(-1), Error);
}

TEST(CachingAllocator, ALargeBlockIsSplitOnlyWhenMoreThanOneMiBIsLeft) {
  CachingAllocator allocator;
  allocator.free(allocator.allocate(20 * kMiB));
  allocator.allocate(19 * kMiB);  // exactly 1 MiB would be left: it goes along
  EXPECT_EQ(allocator.allocated_bytes(), 20 * kMiB);
  CachingAllocator other;
  other.free(other.allocate(20 * kMiB));
  other.allocate(19 * kMiB - 512);
  EXPECT_EQ(other.allocated_bytes(), 19 * kMiB - 512);
  CachingAllocator expandable(kExpandable);
  expandable.free(expandable.allocate(20 * kMiB));
  expandable.allocate(19 * kMiB);
  EXPECT_EQ(expandable.allocated_bytes(), 19 * kMiB);
}

TEST(CachingAllocator, TakesTheSmallestFreeBlockThatIsLargeEnough) {
  CachingAllocator allocator;
  const std::uint32_t a = allocator.allocate(12 * kMiB);
  const std::uint32_t b = allocator.allocate(10 * kMiB);
  allocator.free(a);
  allocator.free(b);
  allocator.allocate(9 * kMiB + 512);  // from the 10 MiB, of which less than 1 MiB is left
  EXPECT_EQ(allocator.allocated_bytes(), 10 * kMiB);
  allocator.allocate(12 * kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), 22 * kMiB);
}

TEST(CachingAllocator, NeighboursThatAreFreeBecomeOne) {
  CachingAllocator allocator;
  const std::uint32_t a = allocator.allocate(6 * kMiB);
  const std::uint32_t b = allocator.allocate(6 * kMiB);
  const std::uint32_t c = allocator.allocate(6 * kMiB);  // 2 MiB are left behind it
  allocator.free(a);
  allocator.free(c);
  allocator.allocate(8 * kMiB);  // c and what is left
  EXPECT_EQ(allocator.reserved_bytes(), 20 * kMiB);
  allocator.free(b);
  allocator.allocate(9 * kMiB);  // a and b together have 12
  EXPECT_EQ(allocator.reserved_bytes(), 20 * kMiB);
}

TEST(CachingAllocator, ASmallBlockDoesNotServeALargeRequest) {
  CachingAllocator allocator;
  allocator.free(allocator.allocate(kMiB));  // small: 2 MiB
  allocator.allocate(kMiB + 1);              // large: 20 MiB
  EXPECT_EQ(allocator.reserved_bytes(), 22 * kMiB);
}

TEST(CachingAllocator, ExpandableSegmentsGrowAtTheirEnd) {
  CachingAllocator allocator(kExpandable);
  allocator.allocate(7 * kMiB);
  allocator.allocate(7 * kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), 20 * kMiB);
  allocator.allocate(7 * kMiB);  // 6 are left, so 20 more
  EXPECT_EQ(allocator.reserved_bytes(), 40 * kMiB);
  allocator.allocate(30 * kMiB);  // 19 are left, so 20 more
  EXPECT_EQ(allocator.reserved_bytes(), 60 * kMiB);
  EXPECT_EQ(allocator.segment_count(), 1u);
}

// Any sequence: blocks never overlap their segment's bytes, and when all is free again a segment is whole.
TEST(CachingAllocator, WhatIsFreedCanBeUsedAgain) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    test::Random random(seed);
    CachingAllocator allocator({.expandable_segments = seed % 2 == 0});
    std::vector<std::uint32_t> blocks;
    std::vector<std::int64_t> sizes;
    std::int64_t asked = 0;
    for (int i = 0; i < 300; ++i) {
      if (blocks.empty() || random.chance(55)) {
        const std::int64_t bytes = random.chance(50) ? random.between(1, kMiB) : random.between(kMiB, 30 * kMiB);
        blocks.push_back(allocator.allocate(bytes));
        sizes.push_back(bytes);
        asked += bytes;
      } else {
        const std::size_t k = random.below(blocks.size());
        allocator.free(blocks[k]);
        asked -= sizes[k];
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(k));
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(k));
      }
      ASSERT_GE(allocator.allocated_bytes(), asked);
      ASSERT_GE(allocator.reserved_bytes(), allocator.allocated_bytes());
    }
    for (const std::uint32_t block : blocks) allocator.free(block);
    ASSERT_EQ(allocator.allocated_bytes(), 0);
    const std::int64_t reserved = allocator.reserved_bytes();
    const std::uint32_t again = allocator.allocate(sizes.empty() ? 1 : sizes.front());
    ASSERT_EQ(allocator.reserved_bytes(), reserved);
    allocator.free(again);
  }
}

TEST(CachingAllocator, FollowsATimeline) {
  test::TinyProgram p;
  p.resident(step::Role::kParameter, 1000);
  p.pass(step::PassKind::kForward);
  p.free(p.op("aten.mm.default", {}, 5 * kMiB));
  p.op("aten.mm.default", {}, 6 * kMiB);
  const step::Step step = p.finish();
  const AllocatorUse use = use_caching_allocator(step, replay(step, {}, {.keep_changes = true}));
  // 2 MiB for the parameter, 20 MiB for the 5 MiB; when these are free again, the 6 MiB fit in.
  EXPECT_EQ(use.peak_reserved_bytes, 22 * kMiB);
  EXPECT_EQ(use.peak_allocated_bytes, 1024 + 6 * kMiB);
  EXPECT_EQ(use.allocated_at_peak_bytes, 1024 + 5 * kMiB);
  EXPECT_EQ(use.fragmentation_bytes(), 17 * kMiB - 1024);
  EXPECT_EQ(use.segments, 2u);
}

TEST(CachingAllocator, TakesTheTimelinesOfRandomStepsAndPlans) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const step::Step step = test::random_step(seed);
    const plan::Plan plan = test::random_plan(step, seed);
    const Timeline timeline = replay(step, plan, {.round_to_bytes = 512, .preserve_rng = false, .keep_changes = true});
    const AllocatorUse use = use_caching_allocator(step, timeline, {.expandable_segments = seed % 2 == 0});
    ASSERT_GE(use.peak_allocated_bytes, timeline.peak.total_bytes);  // large blocks may be larger than asked for
    ASSERT_GE(use.peak_reserved_bytes, use.peak_allocated_bytes);
  }
}

}  // namespace
}  // namespace tidemark::memory
