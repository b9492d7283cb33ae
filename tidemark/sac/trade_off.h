#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/sac/greedy_order.h"

namespace tidemark::sac {

struct CurvePoint {
  double x = 0;  // part of the module's bytes that is given up, plus the estimator's 0.01
  double y = 0;  // part of the module's time that is run again
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

// A continuous function of one or two straight pieces. Piece i is slopes[i] * x + intercepts[i] on
// [breaks[i], breaks[i + 1]].
struct PiecewiseLine {
  std::vector<double> breaks;
  std::vector<double> slopes;
  std::vector<double> intercepts;
  double squared_error = 0;
};

// The least-squares fit with `pieces` (1 or 2) pieces. The best break of two pieces is found exactly, not by trying
// places: either the two lines fitted to the points left and right of it cross there, or it lies on a point.
// Requires: at least one point, x ascending.
PiecewiseLine fit_piecewise(std::span<const CurvePoint> points, int pieces);

// What a module's time is for its bytes, in greedy order, as the SAC estimator draws and fits it.
// Requires: `max_pieces` is 1 or 2.
struct TradeOff {
  std::vector<CurvePoint> curve;
  PiecewiseLine fit;  // of the curve pushed up by one point; no pieces for a module without bytes or time
};
TradeOff trade_off(const ModuleOperators& operators, const GreedyOrder& order, Rules rules = Rules::kTidemark,
                   int max_pieces = 2);

}  // namespace tidemark::sac
