#include "tidemark/plan/trained_calls.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tidemark::plan {

using namespace step;

TrainedCalls find_trained_calls(const Step& step, const EventIndex& index) {
  const StepTables& t = step.tables();
  TrainedCalls trained{.is_trained = std::vector<std::uint8_t>(t.calls.size(), 0),
                       .number = std::vector<std::uint32_t>(t.calls.size(), 0)};
  std::vector<CallId> open;
  for (const Event& event : t.events) {
    if (event.kind == EventKind::kEnter) open.emplace_back(event.id);
    if (event.kind == EventKind::kExit) open.pop_back();
    const bool is_node = event.kind == EventKind::kBegin && t.ops[event.id].node.has_value();
    if (!is_node && event.kind != EventKind::kPack) continue;
    for (auto call = open.rbegin(); call != open.rend() && trained.is_trained[call->index()] == 0; ++call)
      trained.is_trained[call->index()] = 1;
  }
  std::vector<std::pair<std::uint32_t, CallId>> order;
  for (std::uint32_t i = 0; i < t.calls.size(); ++i) order.emplace_back(index.regions[i].begin, CallId(i));
  std::sort(order.begin(), order.end());
  std::map<std::pair<ModuleId, std::uint32_t>, std::uint32_t> counts;
  for (const bool is_trained : {true, false})  // the others come after, so that every call has a number of its own
    for (const auto& [begin, id] : order) {
      const Call& call = step[id];
      const Pass& pass = step[call.pass];
      const bool is_forward = pass.kind == PassKind::kForward || pass.kind == PassKind::kLoss;
      if (!is_forward) trained.is_trained[id.index()] = 0;
      if (!is_forward || (trained.is_trained[id.index()] != 0) != is_trained) continue;
      trained.number[id.index()] = counts[{call.module, pass.micro_batch}]++;
      if (is_trained) trained.micro_batches = std::max(trained.micro_batches, pass.micro_batch + 1);
    }
  for (const Pass& pass : t.passes)
    if (pass.kind == PassKind::kBackward) trained.micro_batches = std::max(trained.micro_batches, pass.micro_batch + 1);
  return trained;
}

}  // namespace tidemark::plan
