#include "tidemark/verify/two_sided_check.h"

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
#include "tidemark/verify/time_lines.h"

// Checks of paths that have to fit on two sides, on graphs made at random: against all paths with all sets of groups.

namespace tidemark::verify {
namespace {

using planner::Episode;
using planner::Path;

struct Figures {
  std::int64_t here_bytes = 0;
  std::int64_t forward_bytes = 0;
  std::int64_t ps = 0;

  std::int64_t peak_bytes() const { return std::max(here_bytes, forward_bytes); }
};

struct Case {
  std::int64_t most = 0;  // of its numbers
  Episode here;
  Episode forward;
  std::vector<Figures> all;  // of its paths; empty: too many
};

Case random_case(test::Random& random) {
  Case c;
  c.most = random.pick<std::int64_t>({3, 20, 1000});
  c.here = test::random_episode(random, {.most = c.most, .max_states = 4, .max_groups = 4});
  c.forward = test::random_forward(c.here, random, c.most);
  if (test::path_count(c.here) > 5000) return c;
  test::for_each_path(c.here, [&](const Path& p) {
    const planner::PathFigures here = measure(c.here, p);
    c.all.push_back({here.peak_bytes, measure(c.forward, p).peak_bytes, here.time_ps});
  });
  return c;
}

std::vector<std::int64_t> some_rooms(const Case& c, test::Random& random) {
  std::set<std::int64_t> peaks;
  for (const Figures& one : c.all) peaks.insert(one.peak_bytes());
  while (peaks.size() > 8)
    peaks.erase(std::next(peaks.begin(), static_cast<std::ptrdiff_t>(random.below(peaks.size()))));
  std::vector<std::int64_t> rooms;
  for (const std::int64_t peak : peaks) rooms.insert(rooms.end(), {peak - 1, peak});
  return rooms;
}

std::int64_t least_ps(const Case& c, std::int64_t room) {
  std::int64_t best = kNoWay;
  for (const Figures& one : c.all)
    if (one.peak_bytes() <= room) best = std::min(best, one.ps);
  return best;
}

SideHints random_hints(test::Random& random, std::int64_t most) {
  SideHints hints{.forward_share = random.chance(50) ? random.between(0, 2) * kShares / 2 : random.between(0, kShares)};
  std::set<std::int64_t> prices;
  for (std::int64_t i = random.between(0, 6); i > 0; --i)
    prices.insert(random.between(1, most) << random.between(0, kPriceBits));
  hints.prices.assign(prices.begin(), prices.end());
  if (random.chance(30)) hints.unit_bytes = random.between(1, most);
  if (random.chance(30))
    hints.ring = {random.between(1, most), random.between(1, 40), random.between(0, 5 * most), random.between(1, 9)};
  if (random.chance(50)) {
    hints.forward_share = random.between(0, 1) * kShares;
    hints.other_prices = test::random_other_prices(random, most, kPriceBits);
  }
  return hints;
}

// Whatever the hints are, the answer is that of trying all paths.
TEST(TwoSidedCheck, FindsWhatAllPathsSay) {
  const std::uint64_t count = std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 100'000 : 400;
  std::int64_t without = 0;
  std::int64_t with_path = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    test::Random random(seed);
    const Case c = random_case(random);
    if (c.all.empty()) continue;
    for (const std::int64_t room : some_rooms(c, random)) {
      const std::int64_t best = least_ps(c, room);
      const std::int64_t last = best == kNoWay ? std::int64_t{1} << 40 : best;
      const Sides sides = fitting_sides(c.here, c.forward, room);
      for (const std::int64_t target : {last - 1, last, last + 7}) {
        std::vector<SideHints> hints;
        for (std::int64_t i = random.between(0, 3); i > 0; --i) hints.push_back(random_hints(random, c.most));
        const PathCheck check =
            look_for_path(sides, hints, {.room_bytes = room, .target_ps = target, .max_entries = 1 << 30});
        const bool is_there = best <= target;
        ++(is_there ? with_path : without);
        ASSERT_EQ(check.answer, is_there ? PathAnswer::kFound : PathAnswer::kNone)
            << "seed " << seed << " room " << room << " target " << target << " best " << best;
        if (is_there) {
          ASSERT_EQ(check.found_ps, best) << "seed " << seed << " room " << room;
        }
      }
    }
  }
  EXPECT_GT(with_path, 1000);
  EXPECT_GT(without, 1000);
}

// On a mixture alone, every path has at most the mixture of its peaks, so that none that fits both sides is missed.
TEST(TwoSidedCheck, AMixtureHasAllThatFitsBothSides) {
  const std::uint64_t count = std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 20'000 : 200;
  std::int64_t proved = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    test::Random random(seed);
    const Case c = random_case(random);
    if (c.all.empty()) continue;
    const std::int64_t share = random.between(0, kShares);
    const Episode mixture = mixed({c.here, c.forward}, share);
    std::size_t i = 0;
    test::for_each_path(c.here, [&](const Path& p) {
      const Figures& one = c.all[i++];
      ASSERT_LE(measure(mixture, p).peak_bytes, mixed(one.here_bytes, one.forward_bytes, share)) << "seed " << seed;
    });
    for (const std::int64_t room : some_rooms(c, random)) {
      const std::int64_t best = least_ps(c, room);
      if (best == kNoWay) continue;
      const Episode side = mixed(fitting_sides(c.here, c.forward, room), share);
      const LeastPeaks peaks = find_least_peaks(side);
      const TimeLines lines(side, peaks, room, {0});
      const PathQuestion question{.room_bytes = room, .target_ps = best, .max_entries = 1 << 30};
      const PathCheck check = look_for_path(side, peaks, lines, question);
      ASSERT_EQ(check.answer, PathAnswer::kFound) << "seed " << seed << " room " << room;
      proved += check.found_ps == best ? 1 : 0;
    }
  }
  EXPECT_GT(proved, 200);
}

// Two units after each other, each with a group of 10 bytes and 100 ps, which the program parks: the forward keeps 10
// bytes for each whatever is saved. What follows the second has a peak of 5 here and of 2 in the forward, where 20
// bytes are kept by then: 22 in any case. With both saved, 20 bytes are kept here, too, and the peak is 25; with
// one, 15.
TEST(TwoSidedCheck, AnExampleByHand) {
  Sides sides;
  sides.here.state_count = sides.forward.state_count = 4;
  for (std::uint32_t i = 0; i < 3; ++i) {
    planner::Arc arc{.from = i, .to = i + 1, .groups = {}, .before = {}, .always_saved = {}};
    planner::Arc forward = arc;
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
  const Difference difference = find_difference(sides);
  EXPECT_EQ(difference.least, (std::vector<std::int64_t>{0, 0, 0, 0}));
  EXPECT_EQ(difference.most, (std::vector<std::int64_t>{0, 10, 20, 20}));
  const auto answer = [&](std::int64_t room, std::int64_t target) {
    return look_for_path(sides, {{.forward_share = 0, .prices = {std::int64_t{10} << kPriceBits}}},
                         {.room_bytes = room, .target_ps = target, .max_entries = 100});
  };
  EXPECT_EQ(answer(21, 1000).answer, PathAnswer::kNone);
  EXPECT_EQ(answer(22, 99).answer, PathAnswer::kNone);
  EXPECT_EQ(answer(22, 100).found_ps, 100);
  EXPECT_EQ(answer(24, 99).answer, PathAnswer::kNone);
  EXPECT_EQ(answer(25, 0).answer, PathAnswer::kFound);
  EXPECT_EQ(answer(25, -1).answer, PathAnswer::kNone);
}

}  // namespace
}  // namespace tidemark::verify
