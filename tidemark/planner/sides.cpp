#include "tidemark/planner/sides.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "tidemark/planner/floors.h"
#include "tidemark/planner/ways.h"

namespace tidemark::planner {

namespace {

// By arc: whether a path that takes it may fit, as far as one side tells.
std::vector<std::uint8_t> find_fitting(const Episode& episode, std::int64_t budget_bytes) {
  const std::vector<std::int64_t> floors = find_floors(episode);
  std::vector<std::int64_t> least_kept(episode.state_count, kNoPath);
  least_kept[0] = 0;
  std::vector<std::uint8_t> fits(episode.arcs.size(), 0);
  for (std::size_t a = 0; a < episode.arcs.size(); ++a) {  // by the state they come from
    const Arc& arc = episode.arcs[a];
    if (least_kept[arc.from] == kNoPath || floors[arc.to] == kNoPath) continue;
    if (floor_of(arc, floors[arc.to]) > budget_bytes - least_kept[arc.from]) continue;
    fits[a] = 1;
    least_kept[arc.to] = std::min(least_kept[arc.to], least_kept[arc.from] + arc.keep_bytes);
  }
  return fits;
}

// Rounded down.
std::int64_t ps_of(Int128 value) { return static_cast<std::int64_t>(value >> kPriceBits); }

// By arc: what may be kept before it, at most what all ways there keep with everything saved.
std::vector<std::int64_t> find_caps(const Episode& episode, std::int64_t budget_bytes) {
  const std::vector<std::int64_t> floors = find_floors(episode);
  std::vector<std::int64_t> most_kept(episode.state_count, 0);
  std::vector<std::int64_t> caps;
  for (const Arc& arc : episode.arcs) {  // by the state they come from
    const std::int64_t most = floors[arc.from] == kNoPath ? 0 : most_before(arc, floors, budget_bytes);
    caps.push_back(std::clamp<std::int64_t>(most, 0, most_kept[arc.from]));
    std::int64_t kept = most_kept[arc.from] + arc.keep_bytes;
    for (const ArcGroup& group : arc.groups) kept += group.bytes;
    most_kept[arc.to] = std::max(most_kept[arc.to], kept);
  }
  return caps;
}

// `prices` and `caps` are of the other side.
Episode priced(const Episode& side, const Episode& other, const std::vector<std::int64_t>& prices,
               const std::vector<std::int64_t>& caps) {
  Episode result = side;
  for (std::size_t a = 0; a < result.arcs.size(); ++a) {
    Arc& arc = result.arcs[a];
    const Arc& same = other.arcs[a];
    const Int128 fall = prices[arc.from] - prices[arc.to];
    arc.base_ps += ps_of(static_cast<Int128>(prices[arc.to]) * same.keep_bytes - fall * caps[a]);
    for (std::size_t g = 0; g < arc.groups.size(); ++g) {
      const std::int64_t saved_ps = price_of_group(same.groups[g], prices[arc.to], arc.groups[g].time_ps);
      arc.base_ps += saved_ps;
      arc.groups[g].time_ps -= saved_ps;
    }
  }
  return result;
}

View with_ways(View view, std::int64_t budget_bytes) {
  view.floors = find_floors(view.episode);
  if (view.floors[0] <= budget_bytes) view.ways = find_ways(view.episode, view.floors, budget_bytes);
  return view;
}

}  // namespace

Sides fitting_sides(const Episode& episode, const Episode* forward, std::int64_t budget_bytes) {
  std::vector<std::uint8_t> fits = find_fitting(episode, budget_bytes);
  if (forward != nullptr) {
    const std::vector<std::uint8_t> fits_forward = find_fitting(*forward, budget_bytes);
    std::transform(fits.begin(), fits.end(), fits_forward.begin(), fits.begin(), std::bit_and<>());
  }
  Sides sides;
  sides.here.state_count = sides.forward.state_count = episode.state_count;
  sides.here.first_arc.assign(episode.state_count + 1, 0);
  for (std::uint32_t a = 0; a < episode.arcs.size(); ++a) {
    if (fits[a] == 0) continue;
    NarrowedArc origin{a, {}, {}};
    for (std::uint32_t g = 0; g < episode.arcs[a].groups.size(); ++g) origin.open.push_back(g);
    sides.origin.push_back(std::move(origin));
    sides.here.arcs.push_back(episode.arcs[a]);
    if (forward != nullptr) sides.forward.arcs.push_back(forward->arcs[a]);
    ++sides.here.first_arc[episode.arcs[a].from + 1];
  }
  for (std::uint32_t i = 0; i < episode.state_count; ++i) sides.here.first_arc[i + 1] += sides.here.first_arc[i];
  sides.forward.first_arc = sides.here.first_arc;
  return sides;
}

Path Sides::widened(const Path& path) const { return Narrowed{here, origin, 0}.widened(path); }

std::int64_t mixed(std::int64_t here, std::int64_t forward, std::int64_t share) {
  if (share == 0) return here;
  if (share == kShares) return forward;
  if (here == kNoPeak || forward == kNoPeak) return kNoPeak;
  const Int128 sum = static_cast<Int128>(here) * (kShares - share) + static_cast<Int128>(forward) * share;
  const Int128 floor = sum >= 0 ? sum / kShares : -((-sum + kShares - 1) / kShares);
  return static_cast<std::int64_t>(floor);
}

Episode mixture(const Episode& episode, const Episode& forward, std::int64_t share) {
  if (share == 0) return episode;
  if (share == kShares) return forward;
  Episode result = episode;
  for (std::size_t a = 0; a < result.arcs.size(); ++a) {
    Arc& arc = result.arcs[a];
    const Arc& other = forward.arcs[a];
    arc.tail_bytes = mixed(least_peak(arc), least_peak(other), share);
    arc.keep_bytes = mixed(arc.keep_bytes, other.keep_bytes, share);
    for (std::size_t j = 0; j < arc.groups.size(); ++j) {
      arc.groups[j].bytes = mixed(arc.groups[j].bytes, other.groups[j].bytes, share);
      arc.groups[j].inside_bytes = kNoPeak;
    }
    std::fill(arc.before.begin(), arc.before.end(), ArcGap());
  }
  return result;
}

std::int64_t price_of_group(const ArcGroup& other, std::int64_t price, std::int64_t time_ps) {
  const Int128 ps = (static_cast<Int128>(price) * other.bytes) >> kPriceBits;
  return ps < time_ps ? static_cast<std::int64_t>(ps) : time_ps;
}

View view_of(const Sides& sides, std::int64_t share, std::int64_t budget_bytes) {
  return with_ways({share, mixture(sides.here, sides.forward, share), {}, {}}, budget_bytes);
}

View priced_view(const Sides& sides, std::int64_t share, const std::vector<std::int64_t>& prices,
                 std::int64_t budget_bytes) {
  const Episode& side = share == 0 ? sides.here : sides.forward;
  const Episode& other = share == 0 ? sides.forward : sides.here;
  View view{share, {}, {}, {}, &other, &prices, find_caps(other, budget_bytes)};
  view.episode = priced(side, other, prices, view.other_caps);
  return with_ways(std::move(view), budget_bytes);
}

// The bound rises with the share up to somewhere and falls from there on: golden sections.
std::int64_t choose_share(const Sides& sides, std::int64_t budget_bytes) {
  constexpr std::int64_t kClose = kShares / 512;
  std::map<std::int64_t, std::int64_t> bounds;  // by share
  const auto bound_at = [&](std::int64_t share) {
    const auto [at, is_new] = bounds.emplace(share, Convex::kNotEnough);
    if (!is_new) return at->second;
    const View view = view_of(sides, share, budget_bytes);
    if (!view.ways.empty())
      at->second = Bounds(view.episode, view.floors, budget_bytes,
                          find_prices(view.episode, view.floors, budget_bytes, view.ways))
                       .bound_ps();
    return at->second;
  };
  if (bound_at(0) >= bound_at(kLittleShare)) return 0;
  if (bound_at(kShares) >= bound_at(kShares - kLittleShare)) return kShares;
  std::int64_t low = 0;
  std::int64_t high = kShares;
  while (high - low > kClose) {
    const std::int64_t step = (high - low) * 382 / 1000;
    if (bound_at(low + step) < bound_at(high - step))
      low += step;
    else
      high -= step;
  }
  return std::max_element(bounds.begin(), bounds.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

SidePrices find_prices(const Sides& sides, std::int64_t budget_bytes, std::int64_t forward_share) {
  const View mix = view_of(sides, forward_share, budget_bytes);
  const std::vector<std::int64_t> none(sides.here.state_count, 0);
  SidePrices prices{none, none};
  if (mix.ways.empty()) return prices;
  prices.forward = find_prices(mix.episode, mix.floors, budget_bytes, mix.ways);
  for (std::int64_t& price : prices.forward)
    price = static_cast<std::int64_t>(static_cast<Int128>(price) * forward_share / kShares);
  const std::vector<std::int64_t> floors = find_floors(sides.here);
  const Episode here = priced(sides.here, sides.forward, prices.forward, find_caps(sides.forward, budget_bytes));
  prices.here = find_prices(here, floors, budget_bytes, find_ways(here, floors, budget_bytes));
  // Sums of prices have to stay far below 2^63.
  const auto is_large = [](const Episode& side, const std::vector<std::int64_t>& of_side) {
    constexpr Int128 kMost = static_cast<Int128>(1) << 58;
    Int128 most_kept = 0;
    for (const Arc& arc : side.arcs) {
      most_kept += arc.keep_bytes;
      for (const ArcGroup& group : arc.groups) most_kept += group.bytes;
    }
    return most_kept >= kMost || ((of_side[0] * most_kept) >> kPriceBits) >= kMost;
  };
  if (is_large(sides.here, prices.here) || is_large(sides.forward, prices.forward)) return {none, none};
  return prices;
}

}  // namespace tidemark::planner
