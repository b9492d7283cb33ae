#include "tidemark/step/numbered_names.h"

#include <gtest/gtest.h>

namespace tidemark::step {
namespace {

using Numbers = std::vector<std::vector<std::int64_t>>;
using Texts = std::vector<std::string>;

Texts texts(const std::string& pattern, const Numbers& numbers) {
  Texts result;
  for (const NamesTogether& together : fold_names(pattern, numbers)) result.push_back(together.text);
  return result;
}

TEST(NumberedNames, EveryNumberStandsForItself) {
  const NumberedName name = split_numbers("encoder.block.0.layer.12.wi");
  EXPECT_EQ(name.pattern, "encoder.block.*.layer.*.wi");
  EXPECT_EQ(name.numbers, (std::vector<std::int64_t>{0, 12}));
  for (const std::string plain : {"", "head", "conv2.a1", "1234567890"}) {
    EXPECT_EQ(split_numbers(plain).pattern, plain);
    EXPECT_TRUE(split_numbers(plain).numbers.empty());
  }
}

// T5: the number of the block varies, that of the layer in it does not; and the other way round.
TEST(NumberedNames, WhatVariesIsTheRange) {
  EXPECT_EQ(texts("block.*.layer.*", {{0, 1}, {1, 1}, {2, 1}}), (Texts{"block.{0-2}.layer.1"}));
  EXPECT_EQ(texts("block.*.layer.*", {{3, 0}, {3, 1}}), (Texts{"block.3.layer.{0-1}"}));
  EXPECT_EQ(texts("block.*.layer.*", {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}}),
            (Texts{"block.{0-2}.layer.{0-1}"}));
  EXPECT_EQ(texts("head", {{}, {}}), (Texts{"head"}));
}

// No name is told that is not there.
TEST(NumberedNames, OnlyWhatIsThere) {
  const std::vector<NamesTogether> rows = fold_names("a.*.b.*", {{0, 1}, {1, 0}, {2, 1}, {0, 1}});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].text, "a.{0,2}.b.1");
  EXPECT_EQ(rows[0].members, (std::vector<std::size_t>{0, 2, 3}));
  EXPECT_EQ(rows[1].text, "a.1.b.0");
  EXPECT_EQ(rows[1].members, std::vector<std::size_t>{1});
}

}  // namespace
}  // namespace tidemark::step
