#include "tidemark/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>

namespace tidemark {
namespace {

class ThreadPoolTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ThreadPoolTest, RunsEveryIndexOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.thread_count(), GetParam());
  std::vector<int> hits(1000, 0);
  pool.for_each_index(hits.size(), [&](std::size_t i) { ++hits[i]; });
  EXPECT_EQ(hits, std::vector<int>(1000, 1));
  pool.for_each_index(0, [&](std::size_t) { FAIL(); });
}

TEST_P(ThreadPoolTest, TasksMayUseThePoolThemselves) {
  ThreadPool pool(GetParam());
  std::atomic<int> sum = 0;
  pool.for_each_index(
      20, [&](std::size_t) { pool.for_each_index(20, [&](std::size_t j) { sum += static_cast<int>(j); }); });
  EXPECT_EQ(sum, 20 * 190);  // 0 + 1 + ... + 19 = 190
}

TEST_P(ThreadPoolTest, TheErrorOfTheSmallestIndexComesThrough) {
  ThreadPool pool(GetParam());
  std::atomic<int> ran = 0;
  try {
    pool.for_each_index(100, [&](std::size_t i) {
      ++ran;
      if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "7");
  }
  EXPECT_EQ(ran, 100);
}

TEST_P(ThreadPoolTest, ManyShortLoopsDoNotHang) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 2000; ++round) {
    std::atomic<int> count = 0;
    pool.for_each_index(3, [&](std::size_t) { ++count; });
    ASSERT_EQ(count, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, ::testing::Values(0, 1, 2, 4));

}  // namespace
}  // namespace tidemark
