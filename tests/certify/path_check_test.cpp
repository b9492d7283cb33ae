#include "tidemark/verify/path_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "../planner/all_paths.h"
#include "../planner/random_problem.h"
#include "../support/random.h"
#include "tidemark/planner/path.h"
#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/time_lines.h"

// The pass that checks certificates on graphs made at random, against all paths with all sets of groups.

namespace tidemark::verify {
namespace {

using planner::Arc;
using planner::Episode;
using planner::Path;
using planner::PathFigures;

std::vector<std::int64_t> random_prices(test::Random& random, std::int64_t most) {
  std::set<std::int64_t> prices = {0};
  for (std::int64_t i = random.between(0, 6); i > 0; --i)
    prices.insert(random.between(1, most) << random.between(0, kPriceBits));
  return {prices.begin(), prices.end()};
}

RingHint random_ring(test::Random& random, std::int64_t most) {
  if (random.chance(40)) return {};
  return {.unit_bytes = random.between(1, most),
          .modulus = random.between(1, 40),
          .unit_cost = random.between(0, 5 * most),
          .parts = random.between(1, 9)};
}

// Whatever the prices are, the answer is that of trying all paths: what they leave out is never missed.
TEST(PathCheck, FindsWhatAllPathsSay) {
  const std::uint64_t count = std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 100'000 : 400;
  std::int64_t questions = 0;
  std::int64_t with_path = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    test::Random random(seed);
    const test::ProblemScale scale{.most = random.pick<std::int64_t>({3, 20, 1000}), .max_states = 4, .max_groups = 4};
    const Episode episode = test::random_episode(random, scale);
    std::vector<PathFigures> all;
    test::for_each_path(episode, [&](const Path& p) { all.push_back(measure(episode, p)); });
    if (all.empty() || all.size() > 20'000) continue;
    const LeastPeaks peaks = find_least_peaks(episode);
    std::set<std::int64_t> rooms;
    for (const PathFigures& figures : all) rooms.insert(figures.peak_bytes);
    ASSERT_EQ(peaks.from_state[0], *rooms.begin()) << "seed " << seed;
    while (rooms.size() > 12)
      rooms.erase(std::next(rooms.begin(), static_cast<std::ptrdiff_t>(random.below(rooms.size()))));
    for (const std::int64_t at : rooms)
      for (const std::int64_t room : {at - 1, at}) {
        std::int64_t best = kNoWay;
        for (const PathFigures& figures : all)
          if (figures.peak_bytes <= room) best = std::min(best, figures.time_ps);
        const TimeLines lines(episode, peaks, room, random_prices(random, scale.most));
        const std::int64_t last = best == kNoWay ? std::int64_t{1} << 40 : best;
        for (const std::int64_t target : {last - 1, last, last + 7}) {
          const PathCheck check = look_for_path(episode, peaks, lines,
                                                {.room_bytes = room,
                                                 .target_ps = target,
                                                 .max_entries = 1 << 30,
                                                 .unit_bytes = random.between(0, 1) * random.between(1, scale.most),
                                                 .ring = random_ring(random, scale.most)});
          ++questions;
          const bool is_there = best <= target;
          with_path += is_there ? 1 : 0;
          ASSERT_EQ(check.answer, is_there ? PathAnswer::kFound : PathAnswer::kNone)
              << "seed " << seed << " room " << room << " target " << target << " best " << best;
          if (is_there) {
            ASSERT_EQ(check.found_ps, best) << "seed " << seed << " room " << room;
          }
        }
      }
  }
  EXPECT_GT(with_path, 1000);
  EXPECT_GT(questions - with_path, 1000);
}

// Two arcs after each other, each a unit with one group of 10 bytes and 100 ps. Both saved: 20 bytes are kept and
// nothing runs again; one saved: 10 bytes, 100 ps. The tail of the second arc is 5 on top of what the first keeps, and
// the end has no peak, so that the peak is 5 plus what the first arc keeps.
TEST(PathCheck, AnExampleByHand) {
  Episode episode;
  episode.state_count = 3;
  for (std::uint32_t i = 0; i < 2; ++i) {
    Arc arc{.from = i, .to = i + 1, .candidate = 0, .groups = {}, .before = {}, .always_saved = {}};
    arc.tail_bytes = 5;
    arc.groups = {{.bytes = 10, .time_ps = 100}};
    arc.before.resize(2);
    episode.arcs.push_back(arc);
  }
  episode.first_arc = {0, 1, 2, 2};
  const LeastPeaks peaks = find_least_peaks(episode);
  EXPECT_EQ(peaks.from_state[0], 5);
  const auto answer = [&](std::int64_t room, std::int64_t target, std::int64_t entries) {
    const TimeLines lines(episode, peaks, room, {0, std::int64_t{10} << kPriceBits});
    return look_for_path(episode, peaks, lines, {.room_bytes = room, .target_ps = target, .max_entries = entries});
  };
  EXPECT_EQ(answer(14, 99, 100).answer, PathAnswer::kNone);
  EXPECT_EQ(answer(14, 100, 100).found_ps, 100);
  EXPECT_EQ(answer(15, 0, 100).answer, PathAnswer::kFound);
  EXPECT_EQ(answer(4, 1000, 100).answer, PathAnswer::kNone);
  EXPECT_EQ(answer(14, 100, 1).answer, PathAnswer::kTooManyEntries);
}

}  // namespace
}  // namespace tidemark::verify
