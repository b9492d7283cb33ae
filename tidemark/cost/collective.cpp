#include "tidemark/cost/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tidemark/base/error.h"

namespace tidemark::cost {

namespace {

void check(const Topology& t, std::int64_t bytes) {
  const auto refuse = [](std::string problem, std::string expected, std::string got, std::string remedy = {}) {
    throw Error({.kind = ErrorKind::kInput,
                 .place = "ranks",
                 .problem = std::move(problem),
                 .expected = std::move(expected),
                 .got = std::move(got),
                 .remedy = std::move(remedy)});
  };
  if (t.ranks < 1) refuse("there are no ranks", "at least 1", fmt::format("{}", t.ranks));
  if (t.ranks_per_node < 1 || t.ranks % t.ranks_per_node != 0)
    refuse("the ranks do not fill whole nodes", fmt::format("a divisor of {}", t.ranks),
           fmt::format("{} ranks per node", t.ranks_per_node));
  if (bytes < 0) refuse("the number of bytes is negative", "0 or more", fmt::format("{}", bytes));
  if (!(t.within.bytes_per_s > 0)) refuse("a link has no rate", "a positive number of bytes per second", "0");
  if (t.ranks > t.ranks_per_node && !(t.between.bytes_per_s > 0))
    refuse("the device has no link between nodes", "a `network` in its device file",
           fmt::format("{} nodes", t.ranks / t.ranks_per_node),
           "add `network` to a copy of the file (docs/device_format.md), or put all ranks in one node");
}

// One pass of all pieces around a ring of n: each rank sends n - 1 of them.
double ring_pass(double bytes, double n, const LinkClass& link) {
  return (n - 1) * (link.latency_s + bytes / n / link.bytes_per_s);
}

double tree_pass(double bytes, double n, const LinkClass& link) {
  return std::ceil(std::log2(n)) * (link.latency_s + bytes / link.bytes_per_s);
}

double on_one_level(Collective kind, double bytes, double n, const LinkClass& link) {
  if (n <= 1) return 0;
  switch (kind) {
    case Collective::kAllReduce:
      return std::min(2 * ring_pass(bytes, n, link), 2 * tree_pass(bytes, n, link));
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return ring_pass(bytes, n, link);
    case Collective::kBroadcast:
      return std::min(tree_pass(bytes, n, link), link.latency_s * (n - 1) + bytes / link.bytes_per_s);
    case Collective::kBarrier:
    case Collective::kSend:
      break;
  }
  return link.latency_s + bytes / link.bytes_per_s;
}

}  // namespace

Topology topology_of(const Machine& machine, std::int64_t ranks, std::int64_t ranks_per_node) {
  const Topology topology{.ranks = ranks,
                          .ranks_per_node = ranks_per_node == 0 ? ranks : ranks_per_node,
                          .within = {machine.link_latency_s, machine.link_bytes_per_s},
                          .between = {machine.network_latency_s, machine.network_bytes_per_s}};
  check(topology, 0);
  return topology;
}

double collective_s(Collective kind, std::int64_t bytes, const Topology& topology) {
  check(topology, bytes);
  if (kind == Collective::kBarrier) return collective_s(Collective::kAllReduce, 0, topology);
  const auto size = static_cast<double>(bytes);
  const auto local = static_cast<double>(topology.ranks_per_node);
  const std::int64_t node_count = topology.ranks / topology.ranks_per_node;  // without remainder: checked above
  const auto nodes = static_cast<double>(node_count);
  if (nodes <= 1) return on_one_level(kind, size, local, topology.within);
  if (kind == Collective::kSend) return on_one_level(kind, size, 2, topology.between);
  if (kind == Collective::kAllReduce)  // scattered within the node, reduced across nodes, gathered again
    return 2 * ring_pass(size, local, topology.within) + on_one_level(kind, size / local, nodes, topology.between);
  if (kind == Collective::kAllToAll) {  // nobody can pass on what is another's: a piece for each, by its link
    const auto piece = [&](const LinkClass& link) {
      return link.latency_s + size / static_cast<double>(topology.ranks) / link.bytes_per_s;
    };
    return (local - 1) * piece(topology.within) + (nodes - 1) * local * piece(topology.between);
  }
  // Each rank talks to its like in other nodes about its part, while the node shares the whole.
  return on_one_level(kind, size, local, topology.within) +
         on_one_level(kind, kind == Collective::kBroadcast ? size : size / local, nodes, topology.between);
}

}  // namespace tidemark::cost
