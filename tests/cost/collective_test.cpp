// Collectives by the alpha-beta model, worked out by hand.

#include "tidemark/cost/collective.h"

#include <gtest/gtest.h>

#include "tidemark/base/error.h"

namespace tidemark::cost {
namespace {

// 1 us and 1 GB/s within a node, 10 us and 0.1 GB/s between nodes.
Topology topology(std::int64_t ranks, std::int64_t per_node) {
  return {.ranks = ranks, .ranks_per_node = per_node, .within = {1e-6, 1e9}, .between = {10e-6, 1e8}};
}

TEST(Collective, ARingMovesEachPieceOnce) {
  // Four ranks, 4 MB: three steps of 1 MB, 1 us + 1 ms each; the all-reduce does it twice. The tree would take
  // 2 * 2 * (1 us + 4 ms).
  EXPECT_NEAR(collective_s(Collective::kAllGather, 4'000'000, topology(4, 4)), 3.003e-3, 1e-12);
  EXPECT_NEAR(collective_s(Collective::kReduceScatter, 4'000'000, topology(4, 4)), 3.003e-3, 1e-12);
  EXPECT_NEAR(collective_s(Collective::kAllReduce, 4'000'000, topology(4, 4)), 6.006e-3, 1e-12);
}

TEST(Collective, ATreeIsBetterForLittle) {
  // 64 ranks, nothing to send: a ring takes 2 * 63 us, a tree 2 * 6.
  EXPECT_NEAR(collective_s(Collective::kAllReduce, 0, topology(64, 64)), 12e-6, 1e-15);
}

TEST(Collective, NodesAreJoinedBySlowerLinks) {
  // Two nodes of two, 4 MB: within, 2 * 1 * (1 us + 2 ms) = 4.002 ms; across, 2 MB: 2 * 1 * (10 us + 10 ms) = 20.02 ms.
  EXPECT_NEAR(collective_s(Collective::kAllReduce, 4'000'000, topology(4, 2)), 24.022e-3, 1e-12);
  // All to all: 1 MB for the one in the node, 1.001 ms, and 1 MB for each of two others, 2 * 10.01 ms.
  EXPECT_NEAR(collective_s(Collective::kAllToAll, 4'000'000, topology(4, 2)), 21.021e-3, 1e-12);
}

// Nothing twice up and down a tree of eight: three messages of latency each way.
TEST(Collective, ABarrierIsAnAllReduceOfNothing) {
  const Topology eight{.ranks = 8, .ranks_per_node = 8, .within = {2e-6, 1e9}, .between = {}};
  EXPECT_NEAR(collective_s(Collective::kBarrier, 4, eight), 2 * 3 * 2e-6, 1e-12);
}

TEST(Collective, OneRankHasNobodyToTalkTo) {
  EXPECT_EQ(collective_s(Collective::kAllReduce, 1'000'000, topology(1, 1)), 0);
}

TEST(Collective, RefusesWhatMakesNoSense) {
  EXPECT_THROW(collective_s(Collective::kAllReduce, 1, topology(0, 1)), Error);
  EXPECT_THROW(collective_s(Collective::kAllReduce, 1, topology(4, 3)), Error);
  EXPECT_THROW(collective_s(Collective::kAllReduce, -1, topology(4, 4)), Error);
  EXPECT_THROW(
      collective_s(Collective::kAllReduce, 1, Topology{.ranks = 2, .ranks_per_node = 2, .within = {}, .between = {}}),
      Error);
}

}  // namespace
}  // namespace tidemark::cost
