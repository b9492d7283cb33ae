#include "tidemark/plan/event_index.h"

#include <algorithm>

namespace tidemark::plan {

using step::EventKind;

EventIndex index_events(const step::Step& step) {
  const step::StepTables& t = step.tables();
  EventIndex index;
  index.regions.resize(t.calls.size());
  index.begins.assign(t.ops.size(), EventIndex::kNever);
  index.allocs.assign(t.storages.size(), EventIndex::kNever);
  index.allocators.resize(t.storages.size());
  index.unpacks.assign(t.saves.size(), EventIndex::kNever);
  step::OpId running;
  for (std::uint32_t at = 0; at < t.events.size(); ++at) {
    const step::Event& event = t.events[at];
    switch (event.kind) {
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
        break;
      default:
        break;
    }
  }
  std::sort(index.writes.begin(), index.writes.end());
  return index;
}

const Write* first_write(const EventIndex& index, step::StorageId storage, EventRange range) {
  const auto found =
      std::lower_bound(index.writes.begin(), index.writes.end(), Write{storage, range.begin, step::OpId(0)});
  if (found == index.writes.end() || found->storage != storage || found->at >= range.end) return nullptr;
  return &*found;
}

}  // namespace tidemark::plan
