#include "tidemark/certify/prices.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "tidemark/planner/floors.h"
#include "tidemark/planner/narrow.h"
#include "tidemark/planner/residues.h"
#include "tidemark/planner/sides.h"
#include "tidemark/planner/simplify.h"
#include "tidemark/planner/ways.h"
#include "tidemark/verify/certificate.h"
#include "tidemark/verify/time_lines.h"

namespace tidemark::certify {

namespace {

// Where the price changes. States of one place may differ a little, in which case each has the highest of those that
// come after it, so that prices fall along the numbers of states and change seldom.
std::vector<verify::PriceFrom> in_runs(std::vector<std::int64_t> prices) {
  std::int64_t highest = 0;
  for (std::size_t state = prices.size(); state-- > 0;) {
    highest = std::max(highest, prices[state]);
    prices[state] = highest;
  }
  std::vector<verify::PriceFrom> runs;
  for (std::size_t state = 0; state < prices.size(); ++state) {
    const verify::Int128 price = static_cast<verify::Int128>(prices[state])
                                 << (verify::kPriceBits - planner::kPriceBits);
    const auto capped = static_cast<std::int64_t>(std::min<verify::Int128>(price, verify::kMostPrice));
    if (runs.empty() ? capped > 0 : runs.back().price != capped)
      runs.push_back({static_cast<std::int64_t>(state), capped});
  }
  if (runs.size() > verify::kMostOtherPrices) runs.resize(verify::kMostOtherPrices);
  return runs;
}

}  // namespace

std::vector<std::int64_t> choose_prices(const planner::Episode& episode, const std::vector<std::int64_t>& floors,
                                        std::int64_t room_bytes) {
  using planner::Convex;
  constexpr std::ptrdiff_t kNear = 3;  // pieces on both sides of the price that is paid
  static_assert(verify::kPriceBits >= planner::kPriceBits);
  const std::vector<Convex> ways = planner::find_ways(episode, floors, room_bytes);
  const std::vector<std::int64_t> paid = planner::find_prices(episode, floors, room_bytes, ways);
  std::map<std::int64_t, std::int64_t> counts;  // of states, by price
  for (std::uint32_t state = 1; state < episode.state_count; ++state) {
    const auto add = [&](verify::Int128 price) {
      if (price > 0) ++counts[static_cast<std::int64_t>(std::min<verify::Int128>(price, verify::kMostPrice))];
    };
    add(static_cast<verify::Int128>(paid[state]) << (verify::kPriceBits - planner::kPriceBits));
    const std::vector<Convex::Corner>& corners = ways[state].corners();
    std::vector<verify::Int128> prices;  // falling
    for (std::size_t i = 0; i + 1 < corners.size(); ++i)
      prices.push_back(verify::scaled(corners[i].ps - corners[i + 1].ps) / (corners[i + 1].bytes - corners[i].bytes));
    const auto at = std::find_if(prices.begin(), prices.end(), [&](verify::Int128 price) {
      return price <= static_cast<verify::Int128>(paid[state]) << (verify::kPriceBits - planner::kPriceBits);
    });
    const auto begin = at - std::min<std::ptrdiff_t>(kNear, at - prices.begin());
    const auto end = at + std::min<std::ptrdiff_t>(kNear, prices.end() - at);
    for (auto price = begin; price < end; ++price) add(*price);
  }
  std::vector<std::int64_t> prices;
  for (const auto& [price, count] : counts) prices.push_back(price);
  if (prices.size() <= verify::kMostPrices) return prices;
  std::vector<std::int64_t> fewer;
  for (std::size_t i = 0; i < verify::kMostPrices; ++i)
    fewer.push_back(prices[i * (prices.size() - 1) / (verify::kMostPrices - 1)]);
  return fewer;
}

OtherPrices choose_other_prices(const verify::Sides& sides, std::int64_t room_bytes, std::int64_t forward_share) {
  const planner::SidePrices prices =
      planner::find_prices(planner::Sides{sides.here, sides.forward, {}}, room_bytes, forward_share);
  return {in_runs(prices.forward), in_runs(prices.here)};
}

std::int64_t choose_unit(const planner::Episode& episode, std::int64_t room_bytes) {
  constexpr std::int64_t kMostUnits = 100'000;  // in all of the room
  constexpr std::int64_t kMostParts = 16;
  const std::int64_t least = std::max<std::int64_t>(room_bytes / kMostUnits, 1);
  std::map<std::int64_t, std::int64_t> sizes;  // and how often they occur
  for (const planner::Arc& arc : episode.arcs) {
    if (arc.keep_bytes > 0) ++sizes[arc.keep_bytes];
    for (const planner::ArcGroup& group : arc.groups)
      if (group.bytes > 0) ++sizes[group.bytes];
  }
  const auto loss_of = [&](std::int64_t unit) {
    verify::Int128 loss = 0;
    for (const auto& [size, count] : sizes) loss += static_cast<verify::Int128>(size % unit) * count;
    return loss;
  };
  std::int64_t best = least;
  verify::Int128 best_loss = loss_of(best);
  for (const auto& [size, count] : sizes)
    for (std::int64_t parts = 1; parts <= kMostParts && size / parts >= least; ++parts) {
      if (size % parts != 0) continue;
      const verify::Int128 loss = loss_of(size / parts);
      if (loss > best_loss || (loss == best_loss && size / parts <= best)) continue;
      best = size / parts;
      best_loss = loss;
    }
  return best;
}

verify::RingHint choose_ring(planner::Episode episode, std::int64_t room_bytes, std::int64_t target_ps,
                             std::int64_t max_cells) {
  constexpr std::int64_t kMore = 1 << 11;  // sizes that are still open a little above, as in the search
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;
  planner::simplify(episode);
  const std::vector<std::int64_t> floors = planner::find_floors(episode);
  const planner::Bounds bounds(
      episode, floors, room_bytes,
      planner::find_prices(episode, floors, room_bytes, planner::find_ways(episode, floors, room_bytes)));
  const planner::Narrowed narrowed = bounds.narrow(target_ps + target_ps / kMore);
  const auto units = planner::Residues::choose(narrowed.episode, planner::find_floors(narrowed.episode), room_bytes,
                                               bounds, {.max_cells = max_cells, .max_work = kNoLimit});
  if (!units) return {};
  return {units->unit_bytes, units->modulus, units->unit_cost, units->parts};
}

}  // namespace tidemark::certify
