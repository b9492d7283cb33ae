#include "tidemark/planner/largest.h"

#include <gtest/gtest.h>

#include <set>

namespace tidemark::planner {
namespace {

// Sizes up to `limit` fit; a size takes a byte each. No size is asked for twice, or out of range.
Largest largest_up_to(std::int64_t limit, LargestOptions options, std::set<std::int64_t> exceptions = {}) {
  std::set<std::int64_t> asked;
  return find_largest(options, [&](std::int64_t size) {
    EXPECT_TRUE(asked.insert(size).second) << size;
    EXPECT_GE(size, options.first);
    EXPECT_LE(size, options.last);
    return SizeTrial{size, size, (size <= limit) != exceptions.contains(size)};
  });
}

TEST(Largest, IsTheLargestOfAll) {
  for (std::int64_t last = 1; last <= 70; ++last)
    for (std::int64_t limit = 0; limit <= 75; ++limit) {
      const Largest found = largest_up_to(limit, {.first = 1, .last = last});
      EXPECT_EQ(found.size, std::min(limit, last));
      EXPECT_EQ(found.is_cut, limit >= last);
      EXPECT_TRUE(found.is_monotone);
    }
}

// 2^20 sizes: 21 doublings at most, 20 halvings, and the three above the answer.
TEST(Largest, AsksLittle) {
  const Largest found = largest_up_to(777'777, {.first = 1, .last = 1 << 20});
  EXPECT_EQ(found.size, 777'777);
  EXPECT_LE(found.trials.size(), 44u);
  EXPECT_EQ(found.trials.front(), (SizeTrial{1, 1, true}));
}

TEST(Largest, SaysWhenMoreTakesLess) {
  // 20 fits and 21 does not, but 36 does, which is one of those tried above the answer.
  const Largest found = largest_up_to(20, {.first = 1, .last = 1000}, {36});
  EXPECT_EQ(found.size, 36);
  EXPECT_FALSE(found.is_monotone);
}

TEST(Largest, ComparesThePeaksOfWhatDoesNotFit) {
  const Largest found = find_largest({.first = 1, .last = 1000}, [](std::int64_t size) {
    return SizeTrial{size, size == 24 ? 21 : size, size <= 20};  // 24 needs less than 22
  });
  EXPECT_EQ(found.size, 20);
  EXPECT_FALSE(found.is_monotone);
}

TEST(Largest, NothingFits) {
  const Largest found = largest_up_to(0, {.first = 1, .last = 1000});
  EXPECT_EQ(found.size, 0);
  EXPECT_EQ(found.trials.size(), 1u);
}

}  // namespace
}  // namespace tidemark::planner
