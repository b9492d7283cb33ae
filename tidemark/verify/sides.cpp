#include "tidemark/verify/sides.h"

#include <algorithm>
#include <cstddef>

#include "tidemark/verify/arc_peaks.h"
#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/time_lines.h"

namespace tidemark::verify {

using planner::Arc;
using planner::Episode;
using planner::kNoPeak;

namespace {

// By arc: whether a path that takes it may fit.
std::vector<std::uint8_t> find_fitting(const Episode& episode, std::int64_t room_bytes) {
  const LeastPeaks peaks = find_least_peaks(episode);
  std::vector<std::int64_t> least_kept(episode.state_count, kNoWay);
  least_kept[0] = 0;
  std::vector<std::uint8_t> fits(episode.arcs.size(), 0);
  for (std::size_t a = 0; a < episode.arcs.size(); ++a) {  // by the state they come from
    const Arc& arc = episode.arcs[a];
    if (least_kept[arc.from] == kNoWay || peaks.through_arc[a] == kNoWay) continue;
    if (peaks.through_arc[a] > room_bytes - least_kept[arc.from]) continue;
    fits[a] = 1;
    least_kept[arc.to] = std::min(least_kept[arc.to], least_kept[arc.from] + arc.keep_bytes);
  }
  return fits;
}

}  // namespace

Sides fitting_sides(const Episode& here, const Episode& forward, std::int64_t room_bytes) {
  const std::vector<std::uint8_t> fits_here = find_fitting(here, room_bytes);
  const std::vector<std::uint8_t> fits_forward = find_fitting(forward, room_bytes);
  Sides sides;
  sides.here.state_count = here.state_count;
  for (std::uint32_t state = 0; state < here.state_count; ++state) {
    sides.here.first_arc.push_back(static_cast<std::uint32_t>(sides.here.arcs.size()));
    for (std::uint32_t a = here.first_arc[state]; a < here.first_arc[state + 1]; ++a) {
      if (fits_here[a] == 0 || fits_forward[a] == 0) continue;
      sides.here.arcs.push_back(here.arcs[a]);
      sides.forward.arcs.push_back(forward.arcs[a]);
    }
  }
  sides.here.first_arc.push_back(static_cast<std::uint32_t>(sides.here.arcs.size()));
  sides.forward.state_count = here.state_count;
  sides.forward.first_arc = sides.here.first_arc;
  return sides;
}

std::int64_t mixed(std::int64_t here, std::int64_t forward, std::int64_t forward_share) {
  if (forward_share == 0) return here;
  if (forward_share == kShares) return forward;
  if (here == kNoPeak || forward == kNoPeak) return kNoPeak;
  const Int128 sum =
      static_cast<Int128>(here) * (kShares - forward_share) + static_cast<Int128>(forward) * forward_share;
  const Int128 rounded = sum >= 0 ? sum / kShares : -((-sum + kShares - 1) / kShares);
  return static_cast<std::int64_t>(rounded);
}

Episode mixed(const Sides& sides, std::int64_t forward_share) {
  if (forward_share == 0) return sides.here;
  if (forward_share == kShares) return sides.forward;
  Episode result = sides.here;
  for (std::size_t a = 0; a < result.arcs.size(); ++a) {
    Arc& arc = result.arcs[a];
    const Arc& other = sides.forward.arcs[a];
    arc.tail_bytes = mixed(own_peak(arc), own_peak(other), forward_share);
    arc.keep_bytes = mixed(arc.keep_bytes, other.keep_bytes, forward_share);
    for (std::size_t g = 0; g < arc.groups.size(); ++g) {
      arc.groups[g].bytes = mixed(arc.groups[g].bytes, other.groups[g].bytes, forward_share);
      arc.groups[g].inside_bytes = kNoPeak;
    }
    std::fill(arc.before.begin(), arc.before.end(), planner::ArcGap());
  }
  return result;
}

Difference find_difference(const Sides& sides) {
  constexpr std::int64_t kFarBytes = std::int64_t{1} << 60;
  Difference difference{std::vector<std::int64_t>(sides.here.state_count, kFarBytes),
                        std::vector<std::int64_t>(sides.here.state_count, -kFarBytes)};
  difference.least[0] = difference.most[0] = 0;
  for (std::size_t a = 0; a < sides.here.arcs.size(); ++a) {  // by the state they come from
    const Arc& arc = sides.here.arcs[a];
    const Arc& forward = sides.forward.arcs[a];
    if (difference.least[arc.from] == kFarBytes) continue;  // no way leads there
    std::int64_t least = forward.keep_bytes - arc.keep_bytes;
    std::int64_t most = least;
    for (std::size_t g = 0; g < arc.groups.size(); ++g) {
      const std::int64_t if_saved = forward.groups[g].bytes - arc.groups[g].bytes;
      (if_saved < 0 ? least : most) += if_saved;
    }
    difference.least[arc.to] = std::min(difference.least[arc.to], difference.least[arc.from] + least);
    difference.most[arc.to] = std::max(difference.most[arc.to], difference.most[arc.from] + most);
  }
  return difference;
}

}  // namespace tidemark::verify
