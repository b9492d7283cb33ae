#include "tidemark/sac/trade_off.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tidemark::sac {

namespace {

constexpr double kShift = 0.01;

struct Line {
  double slope = 0;
  double intercept = 0;

  double at(double x) const { return slope * x + intercept; }
};

// Through one point: level.
Line fit_line(std::span<const CurvePoint> points) {
  const auto n = static_cast<double>(points.size());
  double mean_x = 0;
  double mean_y = 0;
  for (const CurvePoint& p : points) {
    mean_x += p.x / n;
    mean_y += p.y / n;
  }
  double xx = 0;
  double xy = 0;
  for (const CurvePoint& p : points) {
    xx += (p.x - mean_x) * (p.x - mean_x);
    xy += (p.x - mean_x) * (p.y - mean_y);
  }
  const double slope = xx > 0 ? xy / xx : 0;
  return {slope, mean_y - slope * mean_x};
}

struct TwoLines {
  Line left, right;
  double at = 0;
  double squared_error = 0;
};

double squared_error(std::span<const CurvePoint> points, const Line& left, const Line& right, double at) {
  double sum = 0;
  for (const CurvePoint& p : points) {
    const double error = p.y - (p.x <= at ? left : right).at(p.x);
    sum += error * error;
  }
  return sum;
}

// The best pair of lines that meet at x = `at`: y = c + p (at - x)+ + q (x - at)+, by its normal equations.
TwoLines fit_meeting_at(std::span<const CurvePoint> points, double at) {
  double n = 0, sl = 0, sr = 0, ll = 0, rr = 0, sy = 0, ly = 0, ry = 0;
  for (const CurvePoint& p : points) {
    const double l = std::max(0.0, at - p.x);
    const double r = std::max(0.0, p.x - at);
    n += 1;
    sl += l;
    sr += r;
    ll += l * l;
    rr += r * r;
    sy += p.y;
    ly += l * p.y;
    ry += r * p.y;
  }
  // l * r is 0 everywhere, so that p and q follow from c.
  const double a = ll > 0 ? sl / ll : 0;
  const double b = rr > 0 ? sr / rr : 0;
  const double c = (sy - a * ly - b * ry) / (n - a * sl - b * sr);
  const double p = ll > 0 ? (ly - c * sl) / ll : 0;
  const double q = rr > 0 ? (ry - c * sr) / rr : 0;
  TwoLines result = {{-p, c + p * at}, {q, c - q * at}, at, 0};
  result.squared_error = squared_error(points, result.left, result.right, at);
  return result;
}

// Lines fitted apart, if they cross between the points that they are fitted to.
std::optional<TwoLines> fit_crossing_after(std::span<const CurvePoint> points, std::size_t left_count) {
  const Line left = fit_line(points.first(left_count));
  const Line right = fit_line(points.subspan(left_count));
  if (left.slope == right.slope) return std::nullopt;
  const double at = (right.intercept - left.intercept) / (left.slope - right.slope);
  if (!(at >= points[left_count - 1].x && at <= points[left_count].x)) return std::nullopt;
  return TwoLines{left, right, at, squared_error(points, left, right, at)};
}

}  // namespace

PiecewiseLine fit_piecewise(std::span<const CurvePoint> points, int pieces) {
  const Line whole = fit_line(points);
  PiecewiseLine result = {{points.front().x, points.back().x},
                          {whole.slope},
                          {whole.intercept},
                          squared_error(points, whole, whole, points.back().x)};
  if (pieces < 2 || points.size() < 3) return result;
  std::optional<TwoLines> best;
  const auto consider = [&](const TwoLines& lines) {
    if (!best || lines.squared_error < best->squared_error) best = lines;
  };
  for (std::size_t i = 1; i + 1 < points.size(); ++i) {
    consider(fit_meeting_at(points, points[i].x));
    if (i < 2) continue;
    if (const auto lines = fit_crossing_after(points, i)) consider(*lines);
  }
  return {{points.front().x, best->at, points.back().x},
          {best->left.slope, best->right.slope},
          {best->left.intercept, best->right.intercept},
          best->squared_error};
}

TradeOff trade_off(const ModuleOperators& all, const GreedyOrder& order, Rules rules, int max_pieces) {
  TradeOff result;
  if (all.total_bytes <= 0 || all.total_ms <= 0) return result;
  double bytes = 0;
  double ms = 0;
  const auto add = [&](double more_bytes, double more_ms) {
    bytes += more_bytes;
    ms += more_ms;
    const CurvePoint point = {bytes / static_cast<double>(all.total_bytes) + kShift, ms / all.total_ms};
    // A candidate without bytes replaces the point before it.
    if (!result.curve.empty() && result.curve.back().x == point.x)
      result.curve.back() = point;
    else
      result.curve.push_back(point);
  };
  const auto sum_of = [&](std::span<const std::uint32_t> members) {
    double of_bytes = 0;
    double of_ms = 0;
    for (const std::uint32_t member : members) {
      of_bytes += static_cast<double>(all.operators[member].bytes);
      of_ms += all.operators[member].ms;
    }
    add(of_bytes, of_ms);
  };
  sum_of(order.recomputed);
  for (const Candidate& candidate : order.candidates) add(static_cast<double>(candidate.bytes), candidate.ms);
  if (rules != Rules::kReferenceB) sum_of(order.stored);

  std::vector<CurvePoint> pushed;
  for (std::size_t i = 0; i + 1 < result.curve.size(); ++i)
    pushed.push_back({result.curve[i].x, result.curve[i + 1].y});
  if (pushed.empty()) pushed = result.curve;
  const int spare = static_cast<int>(pushed.size()) - (rules == Rules::kReferenceB ? 1 : 2);
  result.fit = fit_piecewise(pushed, std::clamp(spare, 1, max_pieces));
  return result;
}

}  // namespace tidemark::sac
