#include "tidemark/base/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace tidemark {
namespace {

Hash128 hash_of(std::initializer_list<std::string> texts) {
  Hasher h;
  for (const std::string& text : texts) h.add(std::string_view(text));
  return h.digest();
}

TEST(Hash, PiecesDoNotRunTogether) {
  EXPECT_NE(hash_of({"ab", "c"}), hash_of({"a", "bc"}));
  EXPECT_NE(hash_of({"", "a"}), hash_of({"a", ""}));
  EXPECT_EQ(hash_of({"a", "b"}), hash_of({"a", "b"}));
}

// XXH3's published test vector: the 128-bit hash of no bytes with seed 0 is 99aa06d3014798d86001c324468d497f.
TEST(Hash, IsXxh3) { EXPECT_EQ(Hasher().digest().hex(), "99aa06d3014798d86001c324468d497f"); }

TEST(Hash, LongInputsPassTheBuffer) {
  Hasher a;
  Hasher b;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    a.add(i);
    b.add(i);
  }
  EXPECT_EQ(a.digest(), b.digest());
  b.add(std::uint64_t{1});
  EXPECT_NE(a.digest(), b.digest());
  b.reset();
  EXPECT_EQ(b.digest(), Hasher().digest());
}

}  // namespace
}  // namespace tidemark
