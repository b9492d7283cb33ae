// Strides as PyTorch computes them, on cases worked out by hand.

#include <gtest/gtest.h>

#include "tidemark/base/error.h"
#include "tidemark/ops/tensor.h"

namespace tidemark::ops {
namespace {

TEST(Layout, ContiguousStridesAreProductsOfTheSizesBehind) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Dims{});
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Dims{4, 4, 1}));  // a size of zero counts as one
}

TEST(Layout, DenseMeansEveryElementOnce) {
  EXPECT_TRUE(is_dense({2, 3}, {3, 1}));
  EXPECT_TRUE(is_dense({2, 3}, {1, 2}));
  EXPECT_TRUE(is_dense({2, 1, 3}, {3, 77, 1}));  // the stride of a single element does not matter
  EXPECT_FALSE(is_dense({2, 3}, {6, 1}));
  EXPECT_FALSE(is_dense({2, 3}, {0, 1}));
}

TEST(Layout, LikeStridesKeepTheOrderOfDimensions) {
  EXPECT_EQ(like_strides({2, 4, 3}, {12, 1, 4}), (Dims{12, 1, 4}));
  // A slice of every second column, last dimension outermost: packed again in the same order.
  EXPECT_EQ(like_strides({2, 3}, {1, 8}), (Dims{1, 2}));
}

TEST(Layout, AViewCutsWhatLiesTogether) {
  Dims strides;
  // [2, 3, 4] contiguous seen as [6, 4] and as [2, 12].
  EXPECT_TRUE(view_strides({2, 3, 4}, {12, 4, 1}, {6, 4}, strides));
  EXPECT_EQ(strides, (Dims{4, 1}));
  EXPECT_TRUE(view_strides({2, 3, 4}, {12, 4, 1}, {2, 12}, strides));
  EXPECT_EQ(strides, (Dims{12, 1}));
  // Transposed, the first two dimensions cannot become one.
  EXPECT_FALSE(view_strides({3, 2, 4}, {4, 12, 1}, {6, 4}, strides));
  EXPECT_TRUE(view_strides({3, 2, 4}, {4, 12, 1}, {3, 2, 2, 2}, strides));
  EXPECT_EQ(strides, (Dims{4, 12, 2, 1}));
}

TEST(Layout, BytesReachTheLastElement) {
  // Offsets 0 to (2 - 1) * 17 + (16 - 1) * 1 = 32: 33 elements of 8 bytes.
  EXPECT_EQ(bytes_of(DType::kInt64, {2, 16}, {17, 1}), 33 * 8);
  EXPECT_EQ(bytes_of(DType::kInt64, {2, 0}, {17, 1}), 0);
}

TEST(Layout, WhatCannotBeCountedIsRefused) {
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THROW(count_of({large, large}), Error);
  EXPECT_THROW(bytes_of(DType::kFloat32, {large, large}, {large, 1}), Error);
}

TEST(Layout, BroadcastFollowsNumPy) {
  EXPECT_EQ(broadcast({2, 1, 4}, {3, 1}), (Dims{2, 3, 4}));
  EXPECT_EQ(broadcast({}, {5}), (Dims{5}));
  EXPECT_THROW(broadcast({2}, {3}), Error);
}

}  // namespace
}  // namespace tidemark::ops
