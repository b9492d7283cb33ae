#include "tidemark/base/id.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace tidemark {
namespace {

using CatId = Id<struct CatTag>;
using DogId = Id<struct DogTag>;

TEST(Id, KeepsTablesApart) {
  static_assert(!std::is_convertible_v<CatId, DogId>);
  static_assert(!std::is_convertible_v<std::uint32_t, CatId>);
  static_assert(!std::is_convertible_v<CatId, std::uint32_t>);
  static_assert(sizeof(CatId) == 4);
}

TEST(Id, ADefaultOneIsNone) {
  EXPECT_TRUE(CatId().is_none());
  EXPECT_EQ(CatId(), CatId::none());
  EXPECT_TRUE(CatId(0).has_value());
  EXPECT_NE(CatId(0), CatId());
  EXPECT_LT(CatId(1), CatId(2));
  EXPECT_EQ((std::unordered_set<CatId>{CatId(1), CatId(1), CatId(2)}.size()), 2u);
}

}  // namespace
}  // namespace tidemark
