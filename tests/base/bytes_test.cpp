#include "tidemark/base/bytes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "tidemark/base/checked.h"
#include "tidemark/base/error.h"

namespace tidemark {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_budget(text, "--budget");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Bytes, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("512B", "size"), 512);
  EXPECT_EQ(parse_bytes("70GiB", "size"), 75161927680);  // 70 * 2^30
  EXPECT_EQ(parse_bytes("80GB", "size"), 80000000000);   // 80 * 10^9
  EXPECT_EQ(parse_bytes("1.5GiB", "size"), 1610612736);  // 1.5 * 2^30
  EXPECT_EQ(parse_bytes("1 MiB", "size"), 1048576);
  EXPECT_EQ(parse_bytes("3kB", "size"), 3000);
  EXPECT_EQ(parse_bytes("3KB", "size"), 3000);
  EXPECT_EQ(parse_bytes("2TiB", "size"), 2199023255552);  // 2 * 2^40
}

TEST(Bytes, AreExactWithoutFloatingPoint) {
  EXPECT_EQ(parse_bytes("0.1GB", "size"), 100000000);                  // 0.1 is no binary fraction
  EXPECT_EQ(parse_bytes("0.1GiB", "size"), 107374182);                 // 107374182.4 rounded down
  EXPECT_EQ(parse_bytes("8191.999PiB", "size"), 9223370910954868965);  // floor(8191999 * 2^50 / 1000)
  EXPECT_EQ(parse_bytes("1.50000000000000000000GiB", "size"), 1610612736);
}

TEST(Bytes, ABareNumberIsRefusedWithTheHint) {
  EXPECT_EQ(
      error_of("70"),
      "[--budget] the size has no unit (GiB is 2^30 bytes, GB is 10^9); expected a number with a unit, got \"70\"; "
      "try: write it as 70GiB, 1.5GiB, 80GB or 90%");
}

TEST(Bytes, NothingNeedsNoUnit) {
  EXPECT_EQ(parse_bytes("0", "--reserve"), 0);
  EXPECT_EQ(parse_bytes("0.0", "--reserve"), 0);
  EXPECT_NE(error_of("0").find("a budget of zero bytes holds nothing"), std::string::npos);
}

TEST(Bytes, NonsenseIsRefused) {
  for (const char* text : {"",
                           " ",
                           "GiB",
                           "-1GiB",
                           "+1GiB",
                           "1.GiB",
                           ".5GiB",
                           "1e3GiB",
                           "1GiB ",
                           " 1GiB",
                           "1gib",
                           "1  GiB",
                           "1,5GiB",
                           "nan GiB",
                           "0x10B",
                           "1.2.3GiB",
                           "99999999999999999999B",
                           "9223372036854775808B",
                           "8192PiB",
                           "101%",
                           "0%",
                           "-5%",
                           "%",
                           "0GiB",
                           "0.1B"})
    EXPECT_THROW(parse_budget(text, "--budget"), Error) << text;
}

TEST(Bytes, AcceptsTheLargestSize) {
  EXPECT_EQ(parse_bytes("9223372036854775807B", "size"), std::numeric_limits<std::int64_t>::max());
}

// What plan files count to.
TEST(Budget, IsAtMostFourEiB) {
  EXPECT_EQ(parse_budget("4096PiB", "b").bytes_on(0), std::int64_t{1} << 62);
  EXPECT_NE(error_of("4611686018427387905B").find("a budget is at most 2^62 bytes"), std::string::npos);
}

TEST(Budget, APercentageNeedsADevice) {
  EXPECT_EQ(parse_budget("90%", "b").bytes_on(1000), 900);
  EXPECT_EQ(parse_budget("87.5%", "b").bytes_on(1000), 875);
  EXPECT_EQ(parse_budget("33.3%", "b").bytes_on(10), 3);  // 3.33 rounded down
  EXPECT_EQ(parse_budget("100%", "b").bytes_on(85899345920), 85899345920);
  EXPECT_EQ(parse_budget("1GiB", "b").bytes_on(0), 1073741824);
  EXPECT_THROW(parse_budget("90%", "b").bytes_on(0), Error);
}

TEST(Bytes, PrintForPeople) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1610612736), "1.50 GiB");
  EXPECT_EQ(format_bytes(1048575), "1.00 MiB");  // 1023.999 KiB would print as 1024.00
  EXPECT_EQ(format_bytes(-2048), "-2.00 KiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::int64_t>::max()), "8192.00 PiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::int64_t>::min()), "-8192.00 PiB");
  EXPECT_EQ(format_bytes_exact(1610612736), "1,610,612,736 B");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(999), "999");
}

RC_GTEST_PROP(Budget, ReadsBackWhatItPrints, ()) {
  const auto bytes = *rc::gen::inRange<std::int64_t>(1, (std::int64_t{1} << 62) + 1);
  const Budget budget{bytes};
  RC_ASSERT(parse_budget(format_budget(budget), "b") == budget);
  const Budget share{Percentage{*rc::gen::inRange<std::int64_t>(1, 1000), 1}};
  RC_ASSERT(parse_budget(format_budget(share), "b").bytes_on(1 << 30) == share.bytes_on(1 << 30));
}

TEST(Checked, NoticesOverflow) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_sub(-kMax, 2), std::nullopt);
  EXPECT_EQ(checked_sub(5, 7), -2);
  EXPECT_EQ(checked_mul(std::int64_t{1} << 32, std::int64_t{1} << 30), std::int64_t{1} << 62);
  EXPECT_EQ(checked_mul(std::int64_t{1} << 32, std::int64_t{1} << 31), std::nullopt);
}

}  // namespace
}  // namespace tidemark
