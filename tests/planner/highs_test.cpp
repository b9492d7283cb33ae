#include "tidemark/planner/highs.h"

#include <gtest/gtest.h>

#include "../support/highs.h"
#include "tidemark/base/error.h"

namespace tidemark::planner {
namespace {

std::string message_of(const std::vector<std::string>& paths) {
  try {
    const Highs highs(paths);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Highs, SaysHowToGetIt) {
  for (const auto& paths : {std::vector<std::string>{}, std::vector<std::string>{"/nowhere/libhighs.so"}}) {
    const std::string message = message_of(paths);
    EXPECT_NE(message.find("pip install highsbox"), std::string::npos) << message;
    EXPECT_NE(message.find("--highs"), std::string::npos) << message;
  }
  EXPECT_NE(message_of({"/nowhere/libhighs.so"}).find("/nowhere/libhighs.so"), std::string::npos);
}

TEST(Highs, RefusesAnotherLibrary) {
  EXPECT_NE(message_of({"libc.so.6"}).find("no function Highs_create"), std::string::npos) << message_of({"libc.so.6"});
}

// 0.5 x + 2 y for whole x + y >= 2.5, x <= 2: x = 2 and y = 1 cost 3; parts would cost 2.
TEST(Highs, SolvesWholeNumbers) {
  LinearModel model{.name = "small", .columns = {}, .rows = {}};
  const std::uint32_t x = model.add({.name = "x", .cost = 0.5, .upper = 2, .is_integer = true});
  const std::uint32_t y = model.add({.name = "y", .cost = 2, .is_integer = true});
  model.rows.push_back({.name = "enough", .lower = 2.5, .terms = {{x, 1}, {y, 1}}});
  const LinearSolution solution = test::highs().solve(model);
  ASSERT_EQ(solution.end, LinearEnd::kOptimal);
  EXPECT_NEAR(solution.objective, 3, 1e-9);
  EXPECT_NEAR(solution.bound, 3, 1e-9);
  ASSERT_EQ(solution.values.size(), 2u);
  EXPECT_NEAR(solution.values[0], 2, 1e-9);
  EXPECT_NEAR(solution.values[1], 1, 1e-9);

  model.columns[x].is_integer = model.columns[y].is_integer = false;
  EXPECT_NEAR(test::highs().solve(model).objective, 2, 1e-9);
  EXPECT_NEAR(test::highs().solve(model).bound, 2, 1e-9);

  model.columns[y].upper = 0.25;
  EXPECT_EQ(test::highs().solve(model).end, LinearEnd::kInfeasible);
}

TEST(Highs, SolvesAnEmptyModel) {
  const LinearSolution solution = test::highs().solve({});
  EXPECT_EQ(solution.end, LinearEnd::kOptimal);
  EXPECT_EQ(solution.objective, 0);
}

TEST(Highs, RefusesAFileThatIsNoModel) { EXPECT_THROW(test::highs().solve_file("/nowhere/model.mps"), Error); }

}  // namespace
}  // namespace tidemark::planner
