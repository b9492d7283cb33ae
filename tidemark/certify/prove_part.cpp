#include "tidemark/certify/prove_part.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tidemark/certify/prices.h"
#include "tidemark/planner/sides.h"
#include "tidemark/planner/simplify.h"
#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/priced_side.h"
#include "tidemark/verify/time_lines.h"
#include "tidemark/verify/two_sided_check.h"

namespace tidemark::certify {

namespace {

using verify::PathAnswer;

constexpr std::int64_t kFewEntries = 3'000'000;
constexpr std::int64_t kManyEntries = 40'000'000;
constexpr std::int64_t kShortEntries = 300'000;
constexpr std::int64_t kMoreEntries = 10'000'000;
constexpr std::int64_t kCoarsestShare = 16;  // of the places that a ring may have

static_assert(verify::kShares == planner::kShares);

}  // namespace

PartProver::PartProver(const planner::Problem& problem, std::size_t episode, std::int64_t room_bytes,
                       std::int64_t max_entries)
    : here_(problem.episodes[episode]), room_bytes_(room_bytes), max_entries_(max_entries) {
  if (problem.forward_episodes.empty()) return;
  forward_ = &problem.forward_episodes[episode];
  sides_ = verify::fitting_sides(here_, *forward_, room_bytes_);
}

// Quick tries of all kinds come before long ones of any.
PathAnswer PartProver::prove(verify::PartProof& part) const {
  const Side here(here_, 0, room_bytes_);
  if (forward_ == nullptr) return prove_alone(here, part);
  planner::Sides simple{sides_.here, sides_.forward, {}};
  planner::simplify(simple.here, simple.forward);
  const std::int64_t share = planner::choose_share(simple, room_bytes_);
  const Side forward(sides_.forward, verify::kShares, room_bytes_);
  const auto is_proved = [](PathAnswer answer) { return answer == PathAnswer::kNone; };
  const std::int64_t few = std::min(max_entries_, kFewEntries);
  const PathAnswer by_here = look(here, {}, few, part);
  if (is_proved(by_here)) return by_here;
  const PathAnswer by_forward = look(forward, {}, few, part);
  if (is_proved(by_forward)) return by_forward;
  if (share > 0 && share < verify::kShares &&
      is_proved(look(Side(verify::mixed(sides_, share), share, room_bytes_), {}, few, part)))
    return PathAnswer::kNone;
  const PathAnswer by_both = prove_both(mixtures(share), few, part);
  std::vector<verify::SideHints> priced;
  if (by_both == PathAnswer::kTooManyEntries || part.entries > kShortEntries) priced = priced_sides(share);
  if (is_proved(by_both) && part.entries > kShortEntries) {
    // The check may be shorter with prices on the other side.
    verify::PartProof other = part;
    if (is_proved(prove_both(priced, part.entries / 2, other))) part = other;
  }
  if (by_both != PathAnswer::kTooManyEntries) return by_both;
  if (is_proved(prove_both(priced, few, part))) return PathAnswer::kNone;
  // Whole groups of one side, with prices on the other, tell ways apart that look alike in parts.
  const std::int64_t more = std::min(max_entries_, kMoreEntries);
  for (verify::SideHints& side : priced)
    if (!side.other_prices.empty()) add_groups(side, part.bound_ps);
  if (is_proved(prove_both(priced, more, part))) return PathAnswer::kNone;
  // What one side has no way below for is proved there. Otherwise only both at once are left.
  for (const auto& [side, answer] : {std::pair(&here, by_here), std::pair(&forward, by_forward)}) {
    if (answer != PathAnswer::kTooManyEntries) continue;
    const verify::RingHint ring = choose_ring(side->episode, room_bytes_, part.bound_ps);
    if (ring.unit_bytes > 0 && is_proved(look(*side, {.ring = ring}, more, part))) return PathAnswer::kNone;
  }
  return prove_both(std::move(priced), max_entries_, part);
}

PartProver::Side::Side(planner::Episode of, std::int64_t share, std::int64_t room_bytes)
    : episode(std::move(of)),
      forward_share(share),
      peaks(verify::find_least_peaks(episode)),
      prices(choose_prices(episode, peaks.from_state, room_bytes)),
      lines(episode, peaks, room_bytes, verify::from_zero(prices)) {}

PathAnswer PartProver::look(const Side& side, const verify::SideHints& hints, std::int64_t max_entries,
                            verify::PartProof& part) const {
  const verify::PathCheck check = verify::look_for_path(side.episode, side.peaks, side.lines,
                                                        {.room_bytes = room_bytes_,
                                                         .target_ps = part.bound_ps - 1,
                                                         .max_entries = max_entries,
                                                         .unit_bytes = hints.unit_bytes,
                                                         .ring = hints.ring});
  part.entries = check.entries;
  part.sides = {hints};
  part.sides[0].forward_share = side.forward_share;
  part.sides[0].prices = side.prices;
  return check.answer;
}

// Prices alone do for most; where very many ways look alike, residues or all sums of units tell them apart.
PathAnswer PartProver::prove_alone(const Side& side, verify::PartProof& part) const {
  PathAnswer answer = look(side, {}, std::min(max_entries_, kFewEntries), part);
  if (answer != PathAnswer::kTooManyEntries) return answer;
  const verify::RingHint ring = choose_ring(side.episode, room_bytes_, part.bound_ps);
  if (ring.unit_bytes > 0) answer = look(side, {.ring = ring}, std::min(max_entries_, kManyEntries), part);
  if (answer == PathAnswer::kNone && part.entries > kMoreEntries) {
    // Mostly these are places of the ring, and a coarser one may do.
    for (std::int64_t share = 4; share <= kCoarsestShare; share *= 4) {
      verify::PartProof other = part;
      const verify::RingHint coarse =
          choose_ring(side.episode, room_bytes_, part.bound_ps, verify::kMostRingCells / (2 * share));
      if (coarse.unit_bytes > 0 && look(side, {.ring = coarse}, part.entries / 2, other) == PathAnswer::kNone)
        part = other;
    }
  }
  if (answer != PathAnswer::kTooManyEntries) return answer;
  return look(side, {.unit_bytes = choose_unit(side.episode, room_bytes_)}, max_entries_, part);
}

// With prices of the graph that the hints are about.
verify::SideHints PartProver::hints_for(verify::SideHints hints) const {
  const planner::Episode side = verify::episode_of(sides_, hints, room_bytes_);
  hints.prices = choose_prices(side, verify::find_least_peaks(side).from_state, room_bytes_);
  return hints;
}

std::vector<verify::SideHints> PartProver::mixtures(std::int64_t middle_share) const {
  std::vector<verify::SideHints> hints;
  for (const std::int64_t share : std::set<std::int64_t>{0, middle_share, verify::kShares})
    hints.push_back(hints_for({.forward_share = share}));
  return hints;
}

// Each side with prices on the other, and without.
std::vector<verify::SideHints> PartProver::priced_sides(std::int64_t share) const {
  const OtherPrices prices = choose_other_prices(
      sides_, room_bytes_, std::clamp(share, planner::kLittleShare, verify::kShares - planner::kLittleShare));
  std::vector<verify::SideHints> hints;
  if (!prices.of_forward.empty())
    hints.push_back(hints_for({.forward_share = verify::kShares, .other_prices = prices.of_forward}));
  if (!prices.of_here.empty()) hints.push_back(hints_for({.forward_share = 0, .other_prices = prices.of_here}));
  for (const std::int64_t side : {std::int64_t{0}, verify::kShares})
    hints.push_back(hints_for({.forward_share = side}));
  return hints;
}

// Bounds by residues, or where there are none by whole units.
void PartProver::add_groups(verify::SideHints& hints, std::int64_t bound_ps) const {
  const planner::Episode side = verify::episode_of(sides_, hints, room_bytes_);
  hints.ring = choose_ring(side, room_bytes_, bound_ps);
  if (hints.ring.unit_bytes == 0) hints.unit_bytes = choose_unit(side, room_bytes_);
}

PathAnswer PartProver::prove_both(std::vector<verify::SideHints> hints, std::int64_t max_entries,
                                  verify::PartProof& part) const {
  part.sides = std::move(hints);
  const verify::PathCheck check = verify::look_for_path(
      sides_, part.sides, {.room_bytes = room_bytes_, .target_ps = part.bound_ps - 1, .max_entries = max_entries});
  part.entries = check.entries;
  return check.answer;
}

}  // namespace tidemark::certify
