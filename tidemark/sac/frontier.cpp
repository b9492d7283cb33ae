#include "tidemark/sac/frontier.h"

#include <algorithm>

#include "tidemark/base/duration.h"

namespace tidemark::sac {

namespace {

// Merges two frontiers, dropping what another point beats or equals.
std::vector<FrontierPoint> merged(const std::vector<FrontierPoint>& a, const std::vector<FrontierPoint>& b) {
  std::vector<FrontierPoint> all;
  all.reserve(a.size() + b.size());
  const auto quicker = [](const FrontierPoint& x, const FrontierPoint& y) {
    if (x.recompute_ps != y.recompute_ps) return x.recompute_ps < y.recompute_ps;
    return x.given_up_bytes > y.given_up_bytes;
  };
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all), quicker);
  std::vector<FrontierPoint> kept;
  for (const FrontierPoint& point : all)
    if (kept.empty() || point.given_up_bytes > kept.back().given_up_bytes) kept.push_back(point);
  return kept;
}

}  // namespace

Frontier exact_frontier(const ModuleOperators& operators, const GreedyOrder& order, const FrontierOptions& options) {
  FrontierPoint start;
  for (const std::uint32_t member : order.recomputed) {
    start.given_up_bytes += operators.operators[member].bytes;
    start.recompute_ps += ps_from_ms(operators.operators[member].ms, "operator");
  }
  Frontier result;
  result.points = {start};
  for (const Candidate& candidate : order.candidates) {
    const std::int64_t candidate_ps = ps_from_ms(candidate.ms, "operator");
    std::vector<FrontierPoint> with = result.points;
    for (FrontierPoint& point : with) {
      point.given_up_bytes += candidate.bytes;
      point.recompute_ps += candidate_ps;
    }
    result.points = merged(result.points, with);
    if (result.points.size() > options.max_points) return {{}, false};
  }
  return result;
}

}  // namespace tidemark::sac
