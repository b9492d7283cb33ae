#include "tidemark/verify/priced_side.h"

#include <algorithm>

#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/time_lines.h"

namespace tidemark::verify {

using planner::Arc;
using planner::Episode;
using planner::kNoPeak;

namespace {

// Rounded down, and up.
std::int64_t floor_ps(Int128 value) { return static_cast<std::int64_t>(value >> kPriceBits); }
std::int64_t ceil_ps(Int128 value) { return -static_cast<std::int64_t>((-value) >> kPriceBits); }

// What is left of the room below a peak, but no more than `most`.
std::int64_t left_of(std::int64_t room_bytes, std::int64_t peak, std::int64_t most) {
  if (peak == kNoPeak) return most;
  return std::clamp<std::int64_t>(room_bytes - peak, 0, std::max<std::int64_t>(most, 0));
}

}  // namespace

PricedSide::PricedSide(const Sides& sides, bool is_forward, const std::vector<PriceFrom>& prices,
                       std::int64_t room_bytes)
    : is_forward_(is_forward), room_bytes_(room_bytes), episode_(is_forward ? sides.forward : sides.here) {
  const Episode& other = is_forward ? sides.here : sides.forward;
  find_kept(other, room_bytes);
  take_prices(prices, other);
  for (std::size_t a = 0; a < episode_.arcs.size(); ++a) price_arc(episode_.arcs[a], other.arcs[a], other_[a]);
}

// What may be kept before arcs on the other side, of all ways there that fit.
void PricedSide::find_kept(const Episode& other, std::int64_t room_bytes) {
  const LeastPeaks peaks = find_least_peaks(other);
  std::vector<std::int64_t> least_kept(other.state_count, kNoWay);
  most_kept_.assign(other.state_count, 0);
  least_kept[0] = 0;
  other_.resize(other.arcs.size());
  for (std::size_t a = 0; a < other.arcs.size(); ++a) {  // by the state they come from
    const Arc& arc = other.arcs[a];
    OtherArc& result = other_[a];
    result.kept_bytes.assign(1, 0);
    for (const planner::ArcGroup& group : arc.groups)
      result.kept_bytes.push_back(result.kept_bytes.back() + group.bytes);
    if (least_kept[arc.from] == kNoWay || peaks.through_arc[a] > room_bytes) continue;  // no path takes it
    result.least_before = least_kept[arc.from];
    result.most_before = std::min(most_kept_[arc.from], room_bytes - peaks.through_arc[a]);
    least_kept[arc.to] = std::min(least_kept[arc.to], least_kept[arc.from] + arc.keep_bytes);
    most_kept_[arc.to] = std::max(most_kept_[arc.to], most_kept_[arc.from] + arc.keep_bytes + result.kept_bytes.back());
  }
}

void PricedSide::take_prices(const std::vector<PriceFrom>& prices, const Episode& other) {
  constexpr Int128 kMost = static_cast<Int128>(1) << 56;
  prices_.assign(other.state_count, 0);
  Int128 highest = 0;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const std::int64_t end = i + 1 < prices.size() ? prices[i + 1].state : other.state_count;
    for (std::int64_t state = std::max<std::int64_t>(prices[i].state, 0); state < end && state < other.state_count;
         ++state)
      prices_[static_cast<std::size_t>(state)] = prices[i].price;
    highest = std::max<Int128>(highest, prices[i].price);
  }
  prices_.back() = 0;
  // The most that all arcs together might cost, with every price as high as the highest.
  Int128 most_bytes = 0;
  for (std::size_t a = 0; a < other_.size(); ++a)
    most_bytes += static_cast<Int128>(other.arcs[a].keep_bytes) + other_[a].kept_bytes.back() +
                  std::max(other_[a].most_before, other_[a].least_before);
  if (most_bytes > kMost || ((highest * most_bytes) >> kPriceBits) > kMost) prices_.assign(other.state_count, 0);
}

void PricedSide::price_arc(Arc& arc, const Arc& same, OtherArc& other) const {
  other.price = prices_[arc.to];
  other.fall = prices_[arc.from] - prices_[arc.to];
  const Int128 off = static_cast<Int128>(other.fall) * (other.fall < 0 ? other.least_before : other.most_before);
  arc.base_ps += floor_ps(static_cast<Int128>(other.price) * same.keep_bytes - off);
  other.saved_ps.assign(1, 0);
  for (std::size_t g = 0; g < arc.groups.size(); ++g) {
    // No more than running it again takes, so that nothing is run again to be paid for it.
    const std::int64_t saved_ps = std::min(floor_ps(static_cast<Int128>(other.price) * same.groups[g].bytes),
                                           std::max<std::int64_t>(arc.groups[g].time_ps, 0));
    arc.base_ps += saved_ps;
    arc.groups[g].time_ps -= saved_ps;
    other.saved_ps.push_back(other.saved_ps.back() + saved_ps);
  }
}

std::int64_t PricedSide::ps_from(std::uint32_t state, std::int64_t ps, std::int64_t other_peak) const {
  if (prices_[state] == 0) return ps;
  return ps - ceil_ps(static_cast<Int128>(prices_[state]) * left_of(room_bytes_, other_peak, most_kept_[state]));
}

// With S bytes before the arc and K of its groups before the position, the price of those is
// price(from) * S + price(to) * K = price(to) * (S + K) + fall * S.
std::int64_t PricedSide::ps_within(const Within& within) const {
  const OtherArc& other = other_[within.arc];
  const std::int64_t most = other.most_before + other.kept_bytes[within.group];
  const std::int64_t kept = left_of(room_bytes_, within.other_peak, most);
  const std::int64_t before =
      other.fall < 0 ? other.least_before
                     : left_of(room_bytes_, std::max(within.other_peak, within.own_peak), other.most_before);
  const Int128 cost = static_cast<Int128>(other.price) * kept + static_cast<Int128>(other.fall) * before;
  return within.ps + other.saved_ps[within.group] - ceil_ps(cost);
}

Episode episode_of(const Sides& sides, const SideHints& hints, std::int64_t room_bytes) {
  if (hints.other_prices.empty()) return mixed(sides, hints.forward_share);
  return PricedSide(sides, hints.forward_share == kShares, hints.other_prices, room_bytes).episode();
}

}  // namespace tidemark::verify
