#include "tidemark/planner/linear_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "../support/highs.h"
#include "../support/random.h"
#include "../support/scratch_folder.h"
#include "random_problem.h"
#include "tidemark/planner/exact_milp.h"

namespace tidemark::planner {
namespace {

LinearModel small() {
  LinearModel model{.name = "small", .columns = {}, .rows = {}};
  const std::uint32_t x = model.add({.name = "x", .cost = -1, .upper = 2.5, .is_integer = true});
  const std::uint32_t y = model.add({.name = "y", .cost = 0.1, .lower = -kUnbounded});
  const std::uint32_t z = model.add({.name = "z", .cost = 0, .lower = -3, .upper = -1});
  model.rows.push_back({.name = "both", .lower = -4, .upper = 9, .terms = {{x, 1}, {y, -2}}});
  model.rows.push_back({.name = "equal", .lower = 1, .upper = 1, .terms = {{y, 1}, {z, 1}}});
  return model;
}

TEST(LinearModel, MpsText) {
  EXPECT_EQ(mps_text(small()),
            "NAME small\nROWS\n N cost\n L both\n G both_low\n E equal\nCOLUMNS\n M0 'MARKER' 'INTORG'\n x cost -1\n"
            " x both 1\n x both_low 1\n M1 'MARKER' 'INTEND'\n y cost 0.1\n y both -2\n y both_low -2\n y equal 1\n"
            " z cost 0\n z equal 1\nRHS\n RHS both 9\n RHS both_low -4\n RHS equal 1\nBOUNDS\n LO B x 0\n UP B x 2.5\n"
            " FR B y\n LO B z -3\n UP B z -1\nENDATA\n");
}

TEST(LinearModel, LpText) {
  EXPECT_EQ(lp_text(small()),
            "\\ small\nMinimize\n cost: - 1 x + 0.1 y + 0 z\nSubject To\n both: + 1 x - 2 y <= 9\n"
            " both_low: + 1 x - 2 y >= -4\n equal: + 1 y + 1 z = 1\nBounds\n 0 <= x <= 2.5\n -inf <= y <= +inf\n"
            " -3 <= z <= -1\nGeneral\n x\nEnd\n");
}

void expect_same_when_read_back(const LinearModel& model) {
  const test::ScratchFolder folder;
  const LinearSolution direct = test::highs().solve(model);
  for (const auto& [name, text] : {std::pair{"model.mps", mps_text(model)}, std::pair{"model.lp", lp_text(model)}}) {
    const std::string path = folder.path(name);
    std::ofstream(path) << text;
    const LinearSolution read = test::highs().solve_file(path);
    ASSERT_EQ(read.end, direct.end) << name;
    ASSERT_NEAR(read.objective, direct.objective, 1e-6 * (1 + std::abs(direct.objective))) << name;
    ASSERT_EQ(read.values.size(), direct.values.size()) << name;
  }
}

TEST(LinearModel, ASolverReadsItBack) {
  expect_same_when_read_back(small());
  for (std::uint64_t seed = 1; seed <= 40 && !HasFatalFailure(); ++seed) {
    test::Random random(seed);
    Problem problem;
    problem.episodes.push_back(test::random_episode(random, {.most = seed % 2 == 0 ? 20 : 100'000}));
    const std::int64_t least = ExactSolver(problem).smallest_peak_bytes();
    expect_same_when_read_back(exact_milp(problem, least + random.between(-1, 5)).linear);
  }
}

}  // namespace
}  // namespace tidemark::planner
