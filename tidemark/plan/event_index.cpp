#include "tidemark/plan/event_index.h"

#include <algorithm>

namespace tidemark::plan {

using step::EventKind;

namespace {

std::uint32_t joined(std::uint32_t task, std::uint32_t other) {
  if (task == EventIndex::kNever || task == other) return other;
  return other == EventIndex::kNever ? task : EventIndex::kSeveral;
}

}  // namespace

EventIndex index_events(const step::Step& step) {
  const step::StepTables& t = step.tables();
  EventIndex index;
  index.regions.resize(t.calls.size());
  index.begins.assign(t.ops.size(), EventIndex::kNever);
  index.allocs.assign(t.storages.size(), EventIndex::kNever);
  index.allocators.resize(t.storages.size());
  index.unpacks.assign(t.saves.size(), EventIndex::kNever);
  index.tasks.assign(t.saves.size(), EventIndex::kNever);
  step::OpId running;
  std::uint32_t task = 0;
  for (std::uint32_t at = 0; at < t.events.size(); ++at) {
    const step::Event& event = t.events[at];
    switch (event.kind) {
      case EventKind::kPhase:
        task = t.passes[event.id].graph_task;
        break;
      case EventKind::kEnter:
        index.regions[event.id].begin = at + 1;
        break;
      case EventKind::kExit:
        index.regions[event.id].end = at;
        break;
      case EventKind::kBegin:
        index.begins[event.id] = at;
        running = step::OpId(event.id);
        for (const step::Output& out : step.outputs(step[running]))
          if (out.alias == step::AliasKind::kMutates) index.writes.push_back({step[out.tensor].storage, at, running});
        break;
      case EventKind::kEnd:
        running = {};
        break;
      case EventKind::kAlloc:
        index.allocs[event.id] = at;
        index.allocators[event.id] = running;
        break;
      case EventKind::kUnpack:
        index.unpacks[event.id] = std::min(index.unpacks[event.id], at);
        index.tasks[event.id] = joined(index.tasks[event.id], task);
        break;
      default:
        break;
    }
  }
  std::sort(index.writes.begin(), index.writes.end());
  return index;
}

bool has_several_backwards(const step::Step& step, const EventIndex& index, step::CallId call) {
  const EventRange region = index.regions[call.index()];
  std::uint32_t task = EventIndex::kNever;
  for (std::uint32_t at = region.begin; at < region.end; ++at) {
    const step::Event& event = step.tables().events[at];
    if (event.kind == EventKind::kPack && step[step::SaveId(event.id)].hooked)
      task = joined(task, index.tasks[event.id]);
  }
  return task == EventIndex::kSeveral;
}

const Write* first_write(const EventIndex& index, step::StorageId storage, EventRange range) {
  const auto found =
      std::lower_bound(index.writes.begin(), index.writes.end(), Write{storage, range.begin, step::OpId(0)});
  if (found == index.writes.end() || found->storage != storage || found->at >= range.end) return nullptr;
  return &*found;
}

}  // namespace tidemark::plan
