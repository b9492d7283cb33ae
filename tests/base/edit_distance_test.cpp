// The number of letters that change, come or go.

#include "tidemark/base/edit_distance.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

TEST(EditDistance, CountsLettersThatChangeComeOrGo) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("h100-smx", "h100-sxm"), 2u);  // two letters change places: both change
  EXPECT_EQ(edit_distance("llama3-8B", "llama3-8b"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);  // k to s, e to i, and a g
}

}  // namespace
}  // namespace tidemark
