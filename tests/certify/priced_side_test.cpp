#include "tidemark/verify/priced_side.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "../planner/all_paths.h"
#include "../planner/random_problem.h"
#include "../support/random.h"
#include "random_hints.h"
#include "tidemark/planner/path.h"
#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/path_check.h"
#include "tidemark/verify/time_lines.h"

// One side with prices on the bytes of the other, on graphs made at random: against all paths with all sets of groups.

namespace tidemark::verify {
namespace {

using planner::Arc;
using planner::Episode;
using planner::kNoPeak;
using planner::Path;

// Whatever the prices are, a path that fits both sides takes no longer with them, so that nothing below its time is
// ever proved with them alone; by units and residues no more than by prices.
TEST(PricedSide, NoPathThatFitsTakesLonger) {
  const std::uint64_t count = std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 100'000 : 600;
  std::int64_t sharp = 0;
  std::int64_t questions = 0;
  for (std::uint64_t seed = 1; seed <= count && !HasFailure(); ++seed) {
    test::Random random(seed);
    const std::int64_t most = random.pick<std::int64_t>({3, 20, 1000});
    const Episode here = test::random_episode(random, {.most = most, .max_states = 4, .max_groups = 4});
    if (test::path_count(here) > 3000) continue;
    const Episode forward = test::random_forward(here, random, most);
    std::set<std::int64_t> rooms;
    test::for_each_path(here, [&](const Path& p) {
      rooms.insert(std::max(measure(here, p).peak_bytes, measure(forward, p).peak_bytes));
    });
    while (rooms.size() > 4)
      rooms.erase(std::next(rooms.begin(), static_cast<std::ptrdiff_t>(random.below(rooms.size()))));
    for (const std::int64_t room : rooms) {
      const Sides sides = fitting_sides(here, forward, room);
      const bool is_forward = random.chance(50);
      const PricedSide priced(sides, is_forward, test::random_other_prices(random, most, kPriceBits), room);
      std::int64_t best = kNoWay;
      std::int64_t best_priced = kNoWay;
      test::for_each_path(sides.here, [&](const Path& p) {
        const planner::PathFigures one = measure(sides.here, p);
        if (std::max(one.peak_bytes, measure(sides.forward, p).peak_bytes) > room) return;
        const std::int64_t priced_ps = measure(priced.episode(), p).time_ps;
        ASSERT_LE(priced_ps, one.time_ps) << "seed " << seed << " room " << room;
        best = std::min(best, one.time_ps);
        best_priced = std::min(best_priced, priced_ps);
      });
      ASSERT_NE(best, kNoWay) << "seed " << seed;
      ++questions;
      sharp += best_priced == best && best > 0 ? 1 : 0;
      const LeastPeaks peaks = find_least_peaks(priced.episode());
      const TimeLines lines(priced.episode(), peaks, room,
                            {0, random.between(1, most) << random.between(0, kPriceBits)});
      PathQuestion question{.room_bytes = room, .target_ps = best_priced, .max_entries = 1 << 30};
      if (random.chance(30)) question.unit_bytes = random.between(1, most);
      if (random.chance(30))
        question.ring = {random.between(1, most), random.between(1, 40), random.between(0, 5 * most),
                         random.between(1, 9)};
      const PathCheck check = look_for_path(priced.episode(), peaks, lines, question);
      ASSERT_EQ(check.answer, PathAnswer::kFound) << "seed " << seed << " room " << room;
      ASSERT_LE(check.found_ps, best_priced) << "seed " << seed << " room " << room;
    }
  }
  EXPECT_GT(questions, 1000);
  EXPECT_GT(sharp, 20);
}

// Two units after each other, each with a group of 10 bytes and 100 ps that the program parks: the forward keeps 10
// bytes for each whatever is saved. What follows has a peak of 5 here, where in a room of 22 bytes 17 may be kept
// before it, and of 2 in the forward.
Sides two_units() {
  Sides sides;
  sides.here.state_count = sides.forward.state_count = 4;
  for (std::uint32_t i = 0; i < 3; ++i) {
    Arc arc{.from = i, .to = i + 1, .groups = {}, .before = {}, .always_saved = {}};
    Arc forward = arc;
    if (i < 2) {
      arc.groups = {{.bytes = 10, .time_ps = 100}};
      arc.before.resize(2);
      forward = arc;
      forward.groups[0].bytes = 0;
      forward.keep_bytes = 10;
    } else {
      arc.tail_bytes = 5;
      forward.tail_bytes = 2;
    }
    sides.here.arcs.push_back(arc);
    sides.forward.arcs.push_back(forward);
  }
  sides.here.first_arc = sides.forward.first_arc = {0, 1, 2, 3, 3};
  return sides;
}

constexpr std::int64_t kPs = std::int64_t{1} << kPriceBits;  // a price of one ps

// At 10 ps for a byte, saving a group costs what running it again does: 100 ps either way on both units, less 17 bytes'
// worth, which the price falls by where they may be there: 30 ps, and so many a plan does take in parts.
TEST(PricedSide, AnExampleByHand) {
  const PricedSide priced(two_units(), true, {{0, 10 * kPs}}, 22);
  const std::vector<Arc>& arcs = priced.episode().arcs;
  EXPECT_EQ(arcs[0].base_ps, 100);
  EXPECT_EQ(arcs[0].groups[0].time_ps, 0);
  EXPECT_EQ(arcs[0].groups[0].bytes, 0);  // bytes stay those of the side
  EXPECT_EQ(arcs[1].base_ps, 100);
  EXPECT_EQ(arcs[2].base_ps, -170);
  // Before the end, 17 of 20 bytes fit below the peak of 5; at the end, nothing has a price.
  EXPECT_EQ(priced.ps_from(2, 0, 5), -170);
  EXPECT_EQ(priced.ps_from(2, 0, kNoPeak), -200);
  EXPECT_EQ(priced.ps_from(3, 7, kNoPeak), 7);
  // In the second unit, with its group open: its 100 ps and 17 bytes before; saved: 7 bytes; run again: the 10 bytes of
  // the first unit.
  EXPECT_EQ(priced.ps_within({.arc = 1, .group = 1, .ps = 0, .other_peak = 5}), -70);
  EXPECT_EQ(priced.ps_within({.arc = 1, .group = 0, .ps = 0, .other_peak = 15}), -70);
  EXPECT_EQ(priced.ps_within({.arc = 1, .group = 0, .ps = 100, .other_peak = 5}), 0);
}

// At half a ps for a byte: 17 of them are worth 8.5 ps and 7 of them 3.5, of which no less is taken off.
TEST(PricedSide, RoundsToTheSafeSide) {
  const PricedSide priced(two_units(), true, {{0, kPs / 2}}, 22);
  EXPECT_EQ(priced.episode().arcs[0].base_ps, 5);
  EXPECT_EQ(priced.episode().arcs[0].groups[0].time_ps, 95);
  EXPECT_EQ(priced.episode().arcs[2].base_ps, -9);
  EXPECT_EQ(priced.ps_from(2, 0, 5), -9);
  EXPECT_EQ(priced.ps_within({.arc = 1, .group = 0, .ps = 0, .other_peak = 15}), -4);
  // Saving 10 bytes at a quarter of a ps and a bit costs 2.5, of which no more counts.
  const PricedSide quarter(two_units(), true, {{0, kPs / 4 + 1}}, 22);
  EXPECT_EQ(quarter.episode().arcs[0].base_ps, 2);
}

// Prices that rise along the forward take nothing off, since nothing need be kept before; those for states that there
// are not say nothing; and with those that cost more than running again, groups count as much as that.
TEST(PricedSide, TakesAnyPrices) {
  const PricedSide rising(two_units(), true, {{2, 10 * kPs}, {9, 50 * kPs}}, 22);
  EXPECT_EQ(rising.episode().arcs[0].base_ps, 0);
  EXPECT_EQ(rising.episode().arcs[0].groups[0].time_ps, 100);
  EXPECT_EQ(rising.episode().arcs[1].base_ps, 100);
  EXPECT_EQ(rising.episode().arcs[2].base_ps, -170);
  const PricedSide high(two_units(), true, {{0, 1000 * kPs}}, 22);
  EXPECT_EQ(high.episode().arcs[0].base_ps, 100);
  EXPECT_EQ(high.episode().arcs[0].groups[0].time_ps, 0);
  EXPECT_EQ(high.episode().arcs[2].base_ps, -17'000);
  // What might overflow is as good as no price: 2^58 / 2^24 ps for each of 2^40 bytes.
  Sides large = two_units();
  large.here.arcs[0].groups[0].bytes = std::int64_t{1} << 40;
  const PricedSide none(large, true, {{0, kMostPrice}}, std::int64_t{1} << 50);
  EXPECT_EQ(none.episode().arcs, large.forward.arcs);
}

}  // namespace
}  // namespace tidemark::verify
