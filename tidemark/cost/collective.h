#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tidemark/cost/machine.h"

namespace tidemark::cost {

// What devices do together. Bytes are those of the larger side: the input of a reduce-scatter, the output of an
// all-gather.
enum class Collective : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,  // and a reduce to one rank, which is the same backwards
  kAllToAll,   // and a gather to one rank or a scatter from one, whose links carry a piece for each other rank
  kBarrier,    // nothing, to and from everybody
  kSend,
};
inline constexpr std::array<std::string_view, 7> kCollectiveNames = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "barrier", "send"};

// A class of links: what a message costs at least, and a byte more.
struct LinkClass {
  double latency_s = 0;
  double bytes_per_s = 0;
};

// Devices in nodes: fast links within, slower ones between. One node when there is no second class.
struct Topology {
  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 1;  // a divisor of ranks
  LinkClass within;
  LinkClass between;
};

// Devices linked as the device file says: by `link` within a node, by `network` between nodes. `ranks_per_node` 0: all
// are in one node. Throws: Error when the ranks do not fill whole nodes, or the device has no network and needs one.
Topology topology_of(const Machine& machine, std::int64_t ranks, std::int64_t ranks_per_node = 0);

// Seconds by the alpha-beta model, the better of ring and tree, where both exist:
//   ring: steps (latency + piece / rate), with ranks - 1 pieces, twice for an all-reduce;
//   tree: 2 log2(ranks) (latency + bytes / rate) for an all-reduce, once for a broadcast.
// Over several nodes, a ring within each node and one across them; an all-to-all sends each piece by its link.
// Throws: Error when the topology makes no sense.
double collective_s(Collective kind, std::int64_t bytes, const Topology& topology);

}  // namespace tidemark::cost
