#include "tidemark/planner/arc_ways.h"

#include <algorithm>

namespace tidemark::planner {

namespace {

constexpr std::size_t kManyGroups = 24;

// What so many bytes cost in a piece of the way's function, rounded up.
std::int64_t price(const Convex& way, std::size_t piece, std::int64_t bytes) {
  const std::vector<Convex::Corner>& corners = way.corners();
  if (piece + 1 == corners.size()) return 0;
  const std::int64_t width = corners[piece + 1].bytes - corners[piece].bytes;
  const Int128 ps = static_cast<Int128>(corners[piece].ps - corners[piece + 1].ps) * bytes;
  return static_cast<std::int64_t>((ps + width - 1) / width);
}

// With another group, which is saved as a whole, in part or not at all.
Convex with_group(const Convex& way, const ArcGroup& group, std::int64_t most_bytes) {
  if (group.bytes == 0 || group.time_ps == 0) return way;  // saved for nothing, or not worth it
  std::vector<Convex::Corner> points;
  add_steps(way, {0, group.time_ps}, {{group.bytes, group.time_ps}}, most_bytes, points);
  return Convex::below(std::move(points));
}

}  // namespace

void ArcWays::turn_to(const Arc& arc, const Convex& way, std::int64_t own_bytes, std::int64_t most_bytes) {
  arc_ = &arc;
  way_ = &way;
  rest_.clear();
  joint_.clear();
  if (arc.groups.size() < kManyGroups) return;
  joint_.push_back(way);
  joint_.back().cut(std::min(own_bytes, most_bytes));
  for (std::size_t j = 0; j < arc.groups.size() && !joint_.back().is_empty(); ++j)
    joint_.push_back(with_group(joint_.back(), arc.groups[j], most_bytes));
  joint_.resize(arc.groups.size() + 1);
}

std::int64_t ArcWays::least_ps(std::size_t j, std::int64_t bytes, std::int64_t way_bytes) {
  const Convex& way = *way_;
  if (way.is_empty() || std::min(bytes, way_bytes) < way.least_bytes()) return Convex::kNotEnough;
  const std::int64_t own_ps = way_bytes < bytes ? way.at(way_bytes) : 0;
  if (!joint_.empty()) return std::max(own_ps, joint_[j].at(bytes));
  const std::size_t piece = way.piece_at(bytes);
  const std::int64_t rest_ps = rest_of(piece)[j];
  if (way_bytes >= bytes) return rest_ps + way.at(piece, bytes);
  return std::max(own_ps, own_ps - price(way, piece, bytes - way_bytes) + rest_ps);
}

const std::vector<std::int64_t>& ArcWays::rest_of(std::size_t piece) {
  if (piece >= rest_.size()) rest_.resize(piece + 1);
  std::vector<std::int64_t>& sums = rest_[piece];
  if (!sums.empty()) return sums;
  const std::vector<Convex::Corner>& corners = way_->corners();
  const bool is_last = piece + 1 == corners.size();
  const std::int64_t ps = is_last ? 0 : corners[piece].ps - corners[piece + 1].ps;
  const std::int64_t bytes = is_last ? 1 : corners[piece + 1].bytes - corners[piece].bytes;
  sums.push_back(0);
  for (const ArcGroup& group : arc_->groups) {
    const Int128 saved = static_cast<Int128>(ps) * group.bytes / bytes;
    sums.push_back(sums.back() + (saved < group.time_ps ? static_cast<std::int64_t>(saved) : group.time_ps));
  }
  return sums;
}

}  // namespace tidemark::planner
