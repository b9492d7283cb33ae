#include "tidemark/step/dtype.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace tidemark::step {
namespace {

TEST(DType, NamesReadBackAndAreUnique) {
  std::set<std::string_view> short_names;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
    EXPECT_TRUE(short_names.insert(short_name(dtype)).second) << short_name(dtype);
  }
  EXPECT_EQ(dtype_from_name("float31"), std::nullopt);
}

TEST(DType, SizesOfTheUsualOnes) {
  EXPECT_EQ(item_bytes(DType::kFloat32), 4);
  EXPECT_EQ(item_bytes(DType::kBFloat16), 2);
  EXPECT_EQ(item_bytes(DType::kInt64), 8);
  EXPECT_EQ(item_bytes(DType::kBool), 1);
  EXPECT_EQ(item_bytes(DType::kComplex128), 16);
}

}  // namespace
}  // namespace tidemark::step
