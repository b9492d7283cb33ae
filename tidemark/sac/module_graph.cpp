#include "tidemark/sac/module_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "tidemark/base/error.h"
#include "tidemark/base/strict_json.h"

namespace tidemark::sac {

namespace {

[[noreturn]] void refuse(std::string problem, std::string expected = {}, std::string got = {}) {
  throw Error({.kind = ErrorKind::kInput,
               .place = "module info",
               .problem = std::move(problem),
               .expected = std::move(expected),
               .got = std::move(got),
               .remedy = "export it again from a step"});
}

[[noreturn]] void refuse_name(std::string problem, const std::string& name) {
  refuse(std::move(problem), {}, shown_in_error(name));
}

// "GPT.layers" of "GPT.layers.0".
std::string_view name_above(std::string_view fqn) {
  const std::size_t dot = fqn.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : fqn.substr(0, dot);
}

using Numbers = std::unordered_map<std::string_view, std::uint32_t>;

// The nearest module above that ran: lists of modules are never called themselves.
std::optional<std::uint32_t> parent_of(const Numbers& numbers, std::string_view fqn) {
  for (std::string_view above = name_above(fqn); !above.empty(); above = name_above(above))
    if (const auto found = numbers.find(above); found != numbers.end()) return found->second;
  return std::nullopt;
}

}  // namespace

ModuleGraph build_module_graph(const ModuleInfo& info) {
  Numbers records;
  for (std::uint32_t i = 0; i < info.modules.size(); ++i)
    if (!records.emplace(info.modules[i].fqn, i).second) refuse_name("a module is listed twice", info.modules[i].fqn);
  if (info.order.forward_pre.size() != info.modules.size() || info.order.forward_post.size() != info.modules.size())
    refuse("orders and modules differ in number", fmt::format("{} names", info.modules.size()),
           fmt::format("{} in pre-order, {} in post-order", info.order.forward_pre.size(),
                       info.order.forward_post.size()));
  // By pre-order; a module that several others call may come before its parent or after its end, so numbers follow from
  // the tree.
  std::vector<std::optional<std::uint32_t>> parents;
  std::vector<std::vector<std::uint32_t>> children(info.modules.size());
  Numbers positions;
  for (const std::string& name : info.order.forward_pre) {
    if (!records.contains(name)) refuse_name("the pre-order names a module without statistics", name);
    const auto position = static_cast<std::uint32_t>(positions.size());
    if (!positions.emplace(name, position).second) refuse_name("the pre-order names a module twice", name);
  }
  for (const std::string& name : info.order.forward_pre) {
    const auto position = static_cast<std::uint32_t>(parents.size());
    parents.push_back(parent_of(positions, name));
    if (position > 0 && !parents.back()) refuse_name("a module is below none that ran", name);
    if (position == 0 && parents.back()) refuse_name("the first module is below another one", name);
    if (parents.back()) children[*parents.back()].push_back(position);
  }
  ModuleGraph graph;
  Numbers numbers;
  std::vector<std::uint32_t> open;
  if (!parents.empty()) open.push_back(0);
  while (!open.empty()) {
    const std::uint32_t position = open.back();
    open.pop_back();
    open.insert(open.end(), children[position].rbegin(), children[position].rend());
    const std::string& name = info.order.forward_pre[position];
    const auto number = static_cast<std::uint32_t>(graph.nodes.size());
    ModuleNode node;
    node.stats = info.modules[records.at(name)];
    if (parents[position]) node.parent = numbers.at(info.order.forward_pre[*parents[position]]);
    node.last_descendant = number;
    numbers.emplace(name, number);
    graph.nodes.push_back(std::move(node));
  }
  for (auto i = static_cast<std::uint32_t>(graph.nodes.size()); i-- > 1;) {
    ModuleNode& parent = graph.nodes[*graph.nodes[i].parent];
    parent.last_descendant = std::max(parent.last_descendant, graph.nodes[i].last_descendant);
  }
  std::vector<bool> seen(graph.nodes.size(), false);
  for (const std::string& name : info.order.forward_post) {
    const auto found = numbers.find(name);
    if (found == numbers.end() || seen[found->second])
      refuse_name("the post-order names a wrong or repeated module", name);
    seen[found->second] = true;
    graph.nodes[found->second].forward_post_position = static_cast<std::uint32_t>(graph.forward_post_order.size());
    graph.forward_post_order.push_back(found->second);
  }
  return graph;
}

Baseline reference_baseline(const ModuleGraph& graph) {
  Baseline baseline;
  if (graph.nodes.empty()) return baseline;
  const ModuleStats& root = graph.nodes.front().stats;
  for (const ModuleNode& node : graph.nodes) {
    const ModuleStats& stats = node.stats;
    baseline.peak_bytes =
        std::max(baseline.peak_bytes, root.parameter_bytes + stats.gradients_before_bytes +
                                          stats.activation_gradient_bytes + stats.activations_after_bytes);
  }
  baseline.compute_ms = root.forward_ms + root.backward_ms;
  return baseline;
}

}  // namespace tidemark::sac
