#include "tidemark/base/duration.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tidemark/base/error.h"

namespace tidemark {
namespace {

TEST(Duration, MillisecondsBecomeWholePicoseconds) {
  EXPECT_EQ(ps_from_ms(0.34953, "t"), 349530000);  // 0.34953 * 10^9
  EXPECT_EQ(ps_from_ms(0, "t"), 0);
  EXPECT_EQ(ps_from_ms(1e-9, "t"), 1);
  EXPECT_EQ(ps_from_ms(4e-10, "t"), 0);  // below half a picosecond
}

TEST(Duration, WhatIsNoTimeIsRefused) {
  for (const double ms : {-1.0, 1e10, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_THROW(ps_from_ms(ms, "t"), Error) << ms;
}

TEST(Duration, FilesHoldExactMilliseconds) {
  EXPECT_EQ(format_ms(349530000), "0.34953");
  EXPECT_EQ(format_ms(1), "0.000000001");
  EXPECT_EQ(format_ms(5 * kPsPerMs), "5");
  EXPECT_EQ(format_ms(0), "0");
  EXPECT_EQ(format_ms(-1500000000), "-1.5");
}

TEST(Duration, PeopleSeeThreeDigits) {
  EXPECT_EQ(format_duration(789), "789 ps");
  EXPECT_EQ(format_duration(4560000), "4.56 us");
  EXPECT_EQ(format_duration(12345000000), "12.3 ms");
  EXPECT_EQ(format_duration(999600000), "1.00 ms");  // 999.6 us would print as 1000 us
  EXPECT_EQ(format_duration(0), "0 ps");
}

RC_GTEST_PROP(Duration, ReadsBackWhatItWrites, ()) {
  // Reading and scaling round twice, each by at most 2^-53 of the value: below 2^50 ps (19 minutes) that is a quarter
  // of a picosecond.
  const auto ps = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 50);
  RC_ASSERT(ps_from_ms(std::stod(format_ms(ps)), "t") == ps);
}

}  // namespace
}  // namespace tidemark
