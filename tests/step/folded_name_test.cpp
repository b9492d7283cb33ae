#include "tidemark/step/folded_name.h"

#include <gtest/gtest.h>

namespace tidemark::step {
namespace {

TEST(FoldedName, FoldsTheLastNumber) {
  EXPECT_EQ(fold_name("layers.3.mlp").pattern, "layers.*.mlp");
  EXPECT_EQ(fold_name("layers.3.mlp").number, 3);
  EXPECT_EQ(fold_name("a.1.b.20").pattern, "a.1.b.*");
  EXPECT_EQ(fold_name("a.1.b.20").number, 20);
  EXPECT_EQ(fold_name("7").pattern, "*");
  for (const char* name : {"", "head", "layer3.conv", "a.12345678901234567890"}) {
    EXPECT_EQ(fold_name(name).pattern, name);
    EXPECT_EQ(fold_name(name).number, -1);
  }
}

TEST(FoldedName, TellsNumbersAsRanges) {
  EXPECT_EQ(unfold_names("layers.*.mlp", {7, 0, 2, 1, 3}), "layers.{0-3,7}.mlp");
  EXPECT_EQ(unfold_names("layers.*", {4}), "layers.4");
  EXPECT_EQ(unfold_names("layers.*", {4, 4}), "layers.4");
  EXPECT_EQ(unfold_names("layers.*", {4, 5}), "layers.{4-5}");
  EXPECT_EQ(unfold_names("head", {}), "head");
}

}  // namespace
}  // namespace tidemark::step
