#include "tidemark/planner/ties.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "tidemark/step/folded_name.h"

namespace tidemark::planner {

using namespace step;

TieOrder::TieOrder(const Step& step, const Space& space)
    : begins_(space.index.begins), layer_of_(step.tables().calls.size()) {
  for (const plan::EventRange& region : space.index.regions) begin_of_call_.push_back(region.begin);
  std::vector<CallId> calls;
  for (const Candidate& candidate : space.candidates) calls.push_back(candidate.call);
  std::sort(calls.begin(), calls.end(),
            [&](CallId a, CallId b) { return begin_of_call_[a.index()] < begin_of_call_[b.index()]; });
  std::map<std::string, std::uint32_t> names;
  for (const CallId call : calls) {
    const auto [found, is_new] =
        names.emplace(fold_name(step.fqn(step[call].module)).pattern, static_cast<std::uint32_t>(layer_count_.size()));
    if (is_new) layer_count_.push_back(0);
    layer_of_[call.index()] = {found->second, layer_count_[found->second]++};
  }
}

std::int64_t TieOrder::unevenness(const plan::Plan& plan) const {
  std::vector<std::vector<std::uint32_t>> chosen(layer_count_.size());
  for (const plan::Unit& unit : plan.units) {
    const Layer& layer = layer_of_[unit.call.index()];
    chosen[layer.name].push_back(layer.position);
  }
  std::int64_t sum = 0;
  for (std::size_t name = 0; name < chosen.size(); ++name) {
    std::sort(chosen[name].begin(), chosen[name].end());
    std::int64_t before = -1;
    const auto add = [&](std::int64_t position) {
      sum += (position - before) * (position - before);
      before = position;
    };
    for (const std::uint32_t position : chosen[name]) add(position);
    add(layer_count_[name]);
  }
  return sum;
}

bool TieOrder::is_better(const plan::Plan& a, const plan::Plan& b) const {
  if (a.units.size() != b.units.size()) return a.units.size() < b.units.size();
  const std::int64_t uneven_a = unevenness(a);
  const std::int64_t uneven_b = unevenness(b);
  if (uneven_a != uneven_b) return uneven_a < uneven_b;
  return order_of(a) < order_of(b);
}

TieOrder::Order TieOrder::order_of(const plan::Plan& plan) const {
  Order order;
  for (const plan::Unit& unit : plan.units) {
    std::vector<std::uint32_t> saved;
    for (const OpId op : unit.saved_ops) saved.push_back(begins_[op.index()]);
    std::sort(saved.begin(), saved.end());
    order.calls.push_back(begin_of_call_[unit.call.index()]);
    order.saved.emplace_back(order.calls.back(), std::move(saved));
  }
  std::sort(order.calls.begin(), order.calls.end());
  std::sort(order.saved.begin(), order.saved.end());
  return order;
}

}  // namespace tidemark::planner
