#include "tidemark/base/error.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

TEST(Error, SaysPlaceProblemExpectationValueAndRemedy) {
  const Error error({.kind = ErrorKind::kInput,
                     .place = "plan.json, line 3",
                     .problem = "the unit is unknown",
                     .expected = "a module's name",
                     .got = "\"layers.9\"",
                     .remedy = "list them with inspect"});
  EXPECT_STREQ(
      error.what(),
      "[plan.json, line 3] the unit is unknown; expected a module's name, got \"layers.9\"; try: list them with "
      "inspect");
  EXPECT_STREQ(name_of(error.info().kind), "input");
}

TEST(Error, LeavesOutWhatIsNotKnown) {
  EXPECT_STREQ(
      Error({.kind = ErrorKind::kIo, .place = {}, .problem = "no", .expected = {}, .got = "x", .remedy = {}}).what(),
      "no; got x");
}

TEST(Check, NamesTheBrokenPromise) {
  try {
    TIDEMARK_CHECK(1 + 1 == 3, "arithmetic holds");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.info().kind, ErrorKind::kInternal);
    EXPECT_EQ(error.info().problem, "arithmetic holds (1 + 1 == 3 is false)");
    EXPECT_TRUE(error.info().place.starts_with("error_test.cpp:"));
  }
}

}  // namespace
}  // namespace tidemark
