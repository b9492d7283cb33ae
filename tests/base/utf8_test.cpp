#include "tidemark/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace tidemark {
namespace {

TEST(Utf8, AcceptsWellFormedText) {
  for (const char* text : {"", "plain", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "a\xC3\xA9z"})
    EXPECT_TRUE(is_utf8(text)) << text;
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
}

TEST(Utf8, RefusesTheRest) {
  for (const char* text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC3", "\xE0\x80\x80", "\xE2\x82", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xC3(", "\xE2\x28\xA1"})
    EXPECT_FALSE(is_utf8(text));
}

// Every two-byte string against the rule of the standard, written out anew.
TEST(Utf8, AllPairsOfBytes) {
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) {
      const std::string text{static_cast<char>(a), static_cast<char>(b)};
      const bool both_ascii = a < 0x80 && b < 0x80;
      const bool one_character = a >= 0xC2 && a <= 0xDF && b >= 0x80 && b <= 0xBF;
      EXPECT_EQ(is_utf8(text), both_ascii || one_character) << a << " " << b;
    }
}

}  // namespace
}  // namespace tidemark
