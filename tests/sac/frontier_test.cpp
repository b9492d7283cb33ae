#include "tidemark/sac/frontier.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tidemark::sac {
namespace {

Candidate candidate(std::int64_t bytes, double ms) {
  Candidate result;
  result.bytes = bytes;
  result.ms = ms;
  return result;
}

// By trying all subsets: the least time for at least so many bytes.
std::vector<FrontierPoint> by_trying(const std::vector<Candidate>& candidates) {
  std::map<std::int64_t, std::int64_t> least;  // by bytes
  for (std::uint32_t set = 0; set < (1U << candidates.size()); ++set) {
    std::int64_t bytes = 0;
    std::int64_t ps = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      bytes += candidates[i].bytes;
      ps += static_cast<std::int64_t>(candidates[i].ms * 1e9);
    }
    const auto [at, is_new] = least.emplace(bytes, ps);
    if (!is_new) at->second = std::min(at->second, ps);
  }
  std::vector<FrontierPoint> points;
  for (auto it = least.rbegin(); it != least.rend(); ++it)
    if (points.empty() || it->second < points.back().recompute_ps) points.push_back({it->first, it->second});
  std::reverse(points.begin(), points.end());
  return points;
}

TEST(ExactFrontier, EqualsTryingAllSubsets) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    GreedyOrder order;
    const int count = static_cast<int>(random() % 11);
    for (int i = 0; i < count; ++i)
      order.candidates.push_back(candidate(static_cast<std::int64_t>(random() % 9), static_cast<double>(random() % 7)));
    const Frontier frontier = exact_frontier({}, order);
    EXPECT_TRUE(frontier.is_complete);
    EXPECT_EQ(frontier.points, by_trying(order.candidates)) << round;
  }
}

TEST(ExactFrontier, StartsWithWhatIsAlwaysRecomputed) {
  ModuleOperators all;
  all.operators.resize(1);
  all.operators[0].ms = 2;
  GreedyOrder order;
  order.recomputed = {0};
  order.candidates = {candidate(10, 1)};
  EXPECT_EQ(exact_frontier(all, order).points, (std::vector<FrontierPoint>{{0, 2'000'000'000}, {10, 3'000'000'000}}));
}

TEST(ExactFrontier, SaysWhenItWouldBeTooLarge) {
  GreedyOrder order;
  for (int i = 0; i < 12; ++i) order.candidates.push_back(candidate(1 << i, 1 << i));
  const Frontier frontier = exact_frontier({}, order, {.max_points = 1000});
  EXPECT_FALSE(frontier.is_complete);
  EXPECT_TRUE(frontier.points.empty());
  EXPECT_EQ(exact_frontier({}, order).points.size(), 4096U);
}

}  // namespace
}  // namespace tidemark::sac
