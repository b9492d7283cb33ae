#include "tidemark/sac/trade_off.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tidemark::sac {
namespace {

// Two straight pieces that meet at (1, 1): y = x, then y = 3 x - 2.
TEST(FitPiecewise, FindsTheBreakOfTwoPieces) {
  const std::vector<CurvePoint> points = {{0, 0}, {0.5, 0.5}, {0.9, 0.9}, {1.2, 1.6}, {2, 4}, {3, 7}};
  const PiecewiseLine line = fit_piecewise(points, 2);
  ASSERT_EQ(line.breaks.size(), 3U);
  EXPECT_NEAR(line.breaks[1], 1, 1e-12);
  EXPECT_NEAR(line.slopes[0], 1, 1e-12);
  EXPECT_NEAR(line.slopes[1], 3, 1e-12);
  EXPECT_NEAR(line.intercepts[1], -2, 1e-12);
  EXPECT_NEAR(line.squared_error, 0, 1e-20);
}

TEST(FitPiecewise, OnePieceIsTheLeastSquaresLine) {
  // Means 1 and 2; slope (1 x 1 + 1 x 1) / 2.
  const std::vector<CurvePoint> points = {{0, 1}, {1, 2}, {2, 3}};
  const PiecewiseLine line = fit_piecewise(points, 1);
  EXPECT_EQ(line.slopes, std::vector<double>{1});
  EXPECT_EQ(line.intercepts, std::vector<double>{1});
  EXPECT_EQ(fit_piecewise(std::vector<CurvePoint>{{1, 5}}, 2).slopes, std::vector<double>{0});
}

// Both lines are determined by the break: the best of 20,000 breaks is never better than the exact one, which is
// reached by trying breaks ever closer.
double error_with_break(const std::vector<CurvePoint>& points, double at) {
  // y = a + b x + c (x - at)+ by Gauss elimination of the three normal equations.
  double m[3][4] = {};
  for (const CurvePoint& p : points) {
    const double basis[3] = {1, p.x, std::max(0.0, p.x - at)};
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) m[i][j] += basis[i] * basis[j];
      m[i][3] += basis[i] * p.y;
    }
  }
  for (int i = 0; i < 3; ++i) {
    int best = i;
    for (int k = i + 1; k < 3; ++k)
      if (std::abs(m[k][i]) > std::abs(m[best][i])) best = k;
    std::swap(m[i], m[best]);
    if (std::abs(m[i][i]) < 1e-14) return 1e300;
    for (int k = 0; k < 3; ++k) {
      if (k == i) continue;
      const double factor = m[k][i] / m[i][i];
      for (int j = i; j < 4; ++j) m[k][j] -= factor * m[i][j];
    }
  }
  double sum = 0;
  for (const CurvePoint& p : points) {
    const double error =
        p.y - m[0][3] / m[0][0] - m[1][3] / m[1][1] * p.x - m[2][3] / m[2][2] * std::max(0.0, p.x - at);
    sum += error * error;
  }
  return sum;
}

TEST(FitPiecewise, IsAsGoodAsTheBestOfManyBreaks) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> step(0.01, 1);
  for (int round = 0; round < 200; ++round) {
    std::vector<CurvePoint> points;
    CurvePoint p = {0, 0};
    const int count = 4 + round % 9;
    for (int i = 0; i < count; ++i) {
      p.x += step(random);
      p.y += step(random) * (i % 3);
      points.push_back(p);
    }
    const double exact = fit_piecewise(points, 2).squared_error;
    double best = 1e300;
    for (int i = 1; i < 2000; ++i) {
      const double at = points.front().x + (points.back().x - points.front().x) * i / 2000;
      best = std::min(best, error_with_break(points, at));
    }
    EXPECT_LE(exact, best + 1e-9) << round;
    EXPECT_NEAR(exact, best, 0.02 * best + 1e-6) << round;
  }
}

TEST(TradeOff, HasNoMorePiecesThanAsked) {
  ModuleOperators all;
  for (int i = 1; i <= 6; ++i) {
    Operator op;
    op.bytes = 100;
    op.ms = i * i;
    all.operators.push_back(op);
    all.total_bytes += op.bytes;
    all.total_ms += op.ms;
  }
  const GreedyOrder order = reference_greedy_order(all, Rules::kReferenceM);
  EXPECT_EQ(trade_off(all, order, Rules::kReferenceM).fit.slopes.size(), 2U);
  EXPECT_EQ(trade_off(all, order, Rules::kReferenceM, 1).fit.slopes.size(), 1U);
}

TEST(ReferenceTraits, FollowFromTheName) {
  EXPECT_TRUE(reference_traits("transpose_", Rules::kReferenceM).is_view_like);
  EXPECT_TRUE(reference_traits("relu_", Rules::kReferenceM).is_in_place);
  EXPECT_TRUE(reference_traits("__iand__", Rules::kReferenceM).is_in_place);
  EXPECT_FALSE(reference_traits("__and__", Rules::kReferenceM).is_in_place);
  EXPECT_TRUE(reference_traits("clone", Rules::kReferenceM).is_skipped);
  EXPECT_FALSE(reference_traits("clone", Rules::kReferenceB).is_skipped);
}

TEST(ReferenceTraits, TheResultIsTheLastThatIsNeitherViewNorInPlace) {
  std::vector<Operator> operators(4);
  for (Operator& op : operators) op.bytes = 8;
  operators[2].changes = 1;
  operators[3].is_view_like = true;
  free_the_last(operators);
  EXPECT_EQ(operators[1].bytes, 0);
  EXPECT_EQ(operators[0].bytes + operators[2].bytes + operators[3].bytes, 24);
}

}  // namespace
}  // namespace tidemark::sac
