#include "tidemark/planner/ways.h"

#include <algorithm>

#include "tidemark/planner/floors.h"

namespace tidemark::planner {

namespace {

// Groups that are worth their bytes first.
std::vector<Convex::Corner> steps_of(const Arc& arc) {
  std::vector<Convex::Corner> steps;
  for (const ArcGroup& group : arc.groups)
    if (group.bytes > 0 && group.time_ps > 0) steps.push_back({group.bytes, group.time_ps});
  std::sort(steps.begin(), steps.end(), [](const Convex::Corner& a, const Convex::Corner& b) {
    const Int128 left = static_cast<Int128>(a.ps) * b.bytes;
    const Int128 right = static_cast<Int128>(b.ps) * a.bytes;
    return left != right ? left > right : a.bytes < b.bytes;
  });
  return steps;
}

std::int64_t time_of_worth(const Arc& arc) {  // of the groups that cost bytes to save
  std::int64_t ps = arc.base_ps;
  for (const ArcGroup& group : arc.groups)
    if (group.bytes > 0) ps += group.time_ps;
  return ps;
}

constexpr std::int64_t kMostPrice = std::int64_t{1} << 58;

std::int64_t price_between(const Convex::Corner& a, const Convex::Corner& b) {
  const Int128 price = (static_cast<Int128>(a.ps - b.ps) << kPriceBits) / (b.bytes - a.bytes);
  return price < kMostPrice ? static_cast<std::int64_t>(price) : kMostPrice;
}

Int128 scaled(std::int64_t ps) { return static_cast<Int128>(ps) << kPriceBits; }

// Where a way's time plus the price of its bytes is least; of several such places the last.
struct Spot {
  Int128 value = 0;
  std::int64_t bytes = 0;
  std::int64_t price_before = 0;  // of the piece that ends there; 0: there is none
};

Spot cheapest(const Convex& way, std::int64_t price) {
  const std::vector<Convex::Corner>& corners = way.corners();
  std::size_t i = 0;
  while (i + 1 < corners.size() && price_between(corners[i], corners[i + 1]) >= price) ++i;
  return {scaled(corners[i].ps) + static_cast<Int128>(price) * corners[i].bytes, corners[i].bytes,
          i > 0 ? price_between(corners[i - 1], corners[i]) : 0};
}

}  // namespace

std::int64_t least_peak(const Arc& arc) {
  std::int64_t peak = arc.tail_bytes;
  for (const ArcGap& gap : arc.before) peak = std::max({peak, gap.recompute_bytes, gap.forward_bytes});
  return peak;
}

std::int64_t most_before(const Arc& arc, const std::vector<std::int64_t>& floors, std::int64_t budget_bytes) {
  const std::int64_t most = budget_bytes - std::max(floors[arc.from], least_peak(arc));
  return arc.from == 0 ? std::min<std::int64_t>(most, 0) : most;
}

std::vector<Convex> find_ways(const Episode& episode, const std::vector<std::int64_t>& floors,
                              std::int64_t budget_bytes) {
  std::vector<Convex> ways(episode.state_count);
  std::vector<std::vector<Convex::Corner>> points(episode.state_count);
  for (std::uint32_t state = 0; state < episode.state_count; ++state) {
    ways[state] = state == 0 ? Convex({0, 0}) : Convex::below(std::move(points[state]));
    if (state + 1 == episode.state_count) break;
    points[state] = {};
    if (floors[state] == kNoPath) ways[state] = {};
    ways[state].cut(budget_bytes - floors[state]);
    if (ways[state].is_empty()) continue;
    for (std::uint32_t a = episode.first_arc[state]; a < episode.first_arc[state + 1]; ++a) {
      const Arc& arc = episode.arcs[a];
      if (floors[arc.to] == kNoPath) continue;
      Convex f = ways[state];
      f.cut(budget_bytes - least_peak(arc));
      if (f.is_empty()) continue;
      add_steps(f, {arc.keep_bytes, time_of_worth(arc)}, steps_of(arc), budget_bytes - floors[arc.to], points[arc.to]);
    }
  }
  return ways;
}

std::vector<std::int64_t> find_prices(const Episode& episode, const std::vector<std::int64_t>& floors,
                                      std::int64_t budget_bytes, const std::vector<Convex>& ways) {
  std::vector<std::vector<std::uint32_t>> into(episode.state_count);
  for (std::uint32_t a = 0; a < episode.arcs.size(); ++a) into[episode.arcs[a].to].push_back(a);
  std::vector<std::int64_t> prices(episode.state_count, 0);
  // Backwards along the cheapest way in parts. Where the budget cuts it off, a byte more would spare what the last
  // piece does.
  std::uint32_t state = episode.state_count - 1;
  std::int64_t price = 0;
  while (state > 0) {
    const Arc* best = nullptr;
    Int128 best_value = 0;
    std::int64_t best_price = 0;
    for (const std::uint32_t a : into[state]) {
      const Arc& arc = episode.arcs[a];
      const std::int64_t cap = most_before(arc, floors, budget_bytes);
      Convex way = ways[arc.from];
      way.cut(cap);
      if (way.is_empty()) continue;
      const Spot spot = cheapest(way, price);
      Int128 value = spot.value + scaled(arc.base_ps) + static_cast<Int128>(price) * arc.keep_bytes;
      for (const ArcGroup& group : arc.groups)
        value += std::min(scaled(group.time_ps), static_cast<Int128>(price) * group.bytes);
      if (best != nullptr && value >= best_value) continue;
      best = &arc;
      best_value = value;
      best_price = spot.bytes == cap ? std::max(price, spot.price_before) : price;
    }
    if (best == nullptr) break;
    price = best_price;
    for (std::uint32_t s = best->from; s < state; ++s) prices[s] = price;
    state = best->from;
  }
  for (std::uint32_t s = episode.state_count; s-- > 1;) prices[s - 1] = std::max(prices[s - 1], prices[s]);
  return prices;
}

}  // namespace tidemark::planner
