#include "tidemark/planner/convex.h"

#include <algorithm>

namespace tidemark::planner {

namespace {

// Whether b lies on or above the line from a to c.
bool is_above(const Convex::Corner& a, const Convex::Corner& b, const Convex::Corner& c) {
  const Int128 left = static_cast<Int128>(b.ps - a.ps) * (c.bytes - a.bytes);
  const Int128 right = static_cast<Int128>(c.ps - a.ps) * (b.bytes - a.bytes);
  return left >= right;
}

// Points come as a few ascending runs, one after the other, which are merged by twos.
void sort_runs(std::vector<Convex::Corner>& points) {
  const auto is_before = [](const Convex::Corner& a, const Convex::Corner& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.ps < b.ps;
  };
  std::vector<std::ptrdiff_t> starts = {0};
  const auto count = static_cast<std::ptrdiff_t>(points.size());
  for (std::ptrdiff_t i = 1; i < count; ++i)
    if (is_before(points[static_cast<std::size_t>(i)], points[static_cast<std::size_t>(i - 1)])) starts.push_back(i);
  std::vector<Convex::Corner> merged(starts.size() > 1 ? points.size() : 0);
  while (starts.size() > 1) {
    std::vector<std::ptrdiff_t> left;
    for (std::size_t i = 0; i < starts.size(); i += 2) {
      const std::ptrdiff_t middle = i + 1 < starts.size() ? starts[i + 1] : count;
      const std::ptrdiff_t end = i + 2 < starts.size() ? starts[i + 2] : count;
      std::merge(points.begin() + starts[i], points.begin() + middle, points.begin() + middle, points.begin() + end,
                 merged.begin() + starts[i], is_before);
      left.push_back(starts[i]);
    }
    points.swap(merged);
    starts.swap(left);
  }
}

}  // namespace

Convex Convex::below(std::vector<Corner> points) {
  sort_runs(points);
  Convex f;
  std::vector<Corner>& hull = f.corners_;
  for (const Corner& point : points) {
    if (!hull.empty() && point.ps >= hull.back().ps) continue;
    while (hull.size() > 1 && is_above(hull[hull.size() - 2], hull.back(), point)) hull.pop_back();
    hull.push_back(point);
  }
  return f;
}

std::size_t Convex::piece_at(std::int64_t bytes) const {
  const auto after = std::upper_bound(corners_.begin(), corners_.end(), bytes,
                                      [](std::int64_t value, const Corner& corner) { return value < corner.bytes; });
  return static_cast<std::size_t>(after - corners_.begin()) - 1;
}

std::int64_t Convex::at(std::size_t piece, std::int64_t bytes) const {
  const Corner& a = corners_[piece];
  if (piece + 1 == corners_.size()) return a.ps;
  const Corner& b = corners_[piece + 1];
  const Int128 spared = static_cast<Int128>(a.ps - b.ps) * (bytes - a.bytes);
  const std::int64_t width = b.bytes - a.bytes;
  return a.ps - static_cast<std::int64_t>((spared + width - 1) / width);
}

std::int64_t Convex::at(std::int64_t bytes) const {
  if (corners_.empty() || bytes < corners_.front().bytes) return kNotEnough;
  return at(piece_at(bytes), bytes);
}

void Convex::cut(std::int64_t most_bytes) {
  if (corners_.empty() || corners_.back().bytes <= most_bytes) return;
  if (corners_.front().bytes > most_bytes) {
    corners_.clear();
    return;
  }
  const std::size_t piece = piece_at(most_bytes);
  const Corner last = {most_bytes, at(piece, most_bytes)};
  corners_.resize(piece + 1);
  if (last.ps >= corners_.back().ps) return;
  // Rounding down may have bent the last piece the wrong way.
  while (corners_.size() > 1 && is_above(corners_[corners_.size() - 2], corners_.back(), last)) corners_.pop_back();
  corners_.push_back(last);
}

void add_steps(const Convex& f, Convex::Corner start, const std::vector<Convex::Corner>& steps, std::int64_t most_bytes,
               std::vector<Convex::Corner>& points) {
  const std::vector<Convex::Corner>& corners = f.corners();
  if (corners.empty()) return;
  Convex::Corner at = {corners[0].bytes + start.bytes, corners[0].ps + start.ps};
  std::size_t i = 1;
  std::size_t k = 0;
  while (true) {
    points.push_back(at);
    if (at.bytes > most_bytes || (i == corners.size() && k == steps.size())) return;
    bool is_own = i == corners.size();
    if (!is_own && k < steps.size()) {
      const Int128 own = static_cast<Int128>(steps[k].ps) * (corners[i].bytes - corners[i - 1].bytes);
      const Int128 other = static_cast<Int128>(corners[i - 1].ps - corners[i].ps) * steps[k].bytes;
      is_own = own > other;
    }
    if (is_own) {
      at.bytes += steps[k].bytes;
      at.ps -= steps[k].ps;
      ++k;
    } else {
      at.bytes += corners[i].bytes - corners[i - 1].bytes;
      at.ps -= corners[i - 1].ps - corners[i].ps;
      ++i;
    }
  }
}

}  // namespace tidemark::planner
