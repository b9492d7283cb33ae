#include "tidemark/certify/prove_part.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tidemark/certify/prices.h"
#include "tidemark/planner/simplify.h"
#include "tidemark/planner/two_sides.h"
#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/time_lines.h"
#include "tidemark/verify/two_sided_check.h"

namespace tidemark::certify {

namespace {

using verify::PathAnswer;

constexpr std::int64_t kFewEntries = 3'000'000;
constexpr std::int64_t kManyEntries = 40'000'000;

static_assert(verify::kShares == planner::kShares);

}  // namespace

PartProver::PartProver(const planner::Problem& problem, std::size_t episode, std::int64_t room_bytes,
                       std::int64_t max_entries)
    : here_(problem.episodes[episode]), room_bytes_(room_bytes), max_entries_(max_entries) {
  if (problem.forward_episodes.empty()) return;
  forward_ = &problem.forward_episodes[episode];
  sides_ = verify::fitting_sides(here_, *forward_, room_bytes_);
}

PathAnswer PartProver::prove(verify::PartProof& part) const {
  const PathAnswer here = prove_alone(here_, 0, part);
  if (here == PathAnswer::kNone || forward_ == nullptr) return here;
  if (prove_alone(sides_.forward, verify::kShares, part) == PathAnswer::kNone) return PathAnswer::kNone;
  planner::Sides simple{sides_.here, sides_.forward, {}};
  planner::simplify(simple.here, simple.forward);
  const std::int64_t share = planner::choose_share(simple, room_bytes_);
  if (share > 0 && share < verify::kShares &&
      prove_alone(verify::mixed(sides_, share), share, part) == PathAnswer::kNone)
    return PathAnswer::kNone;
  return prove_both(share, part);
}

PathAnswer PartProver::prove_alone(const planner::Episode& side, std::int64_t forward_share,
                                   verify::PartProof& part) const {
  const verify::LeastPeaks peaks = verify::find_least_peaks(side);
  verify::SideHints hints{.forward_share = forward_share, .prices = choose_prices(side, peaks.from_state, room_bytes_)};
  const verify::TimeLines lines(side, peaks, room_bytes_, verify::from_zero(hints.prices));
  // Prices alone do for most; where very many ways look alike, residues or all sums of units tell them apart.
  verify::PathQuestion question{
      .room_bytes = room_bytes_, .target_ps = part.bound_ps - 1, .max_entries = std::min(max_entries_, kFewEntries)};
  verify::PathCheck check = verify::look_for_path(side, peaks, lines, question);
  if (check.answer == PathAnswer::kTooManyEntries) {
    hints.ring = question.ring = choose_ring(side, room_bytes_, part.bound_ps);
    question.max_entries = std::min(max_entries_, kManyEntries);
    if (hints.ring.unit_bytes > 0) check = verify::look_for_path(side, peaks, lines, question);
  }
  if (check.answer == PathAnswer::kTooManyEntries) {
    hints.ring = question.ring = {};
    hints.unit_bytes = question.unit_bytes = choose_unit(side, room_bytes_);
    question.max_entries = max_entries_;
    check = verify::look_for_path(side, peaks, lines, question);
  }
  part.entries = check.entries;
  part.sides = {std::move(hints)};
  return check.answer;
}

PathAnswer PartProver::prove_both(std::int64_t middle_share, verify::PartProof& part) const {
  part.sides.clear();
  for (const std::int64_t share : std::set<std::int64_t>{0, middle_share, verify::kShares}) {
    const planner::Episode side = verify::mixed(sides_, share);
    part.sides.push_back({.forward_share = share,
                          .prices = choose_prices(side, verify::find_least_peaks(side).from_state, room_bytes_)});
  }
  const verify::PathCheck check = verify::look_for_path(
      sides_, part.sides, {.room_bytes = room_bytes_, .target_ps = part.bound_ps - 1, .max_entries = max_entries_});
  part.entries = check.entries;
  return check.answer;
}

}  // namespace tidemark::certify
