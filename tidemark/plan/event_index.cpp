#include "tidemark/plan/event_index.h"

namespace tidemark::plan {

using step::EventKind;

EventIndex index_events(const step::Step& step) {
  const step::StepTables& t = step.tables();
  EventIndex index;
  index.regions.resize(t.calls.size());
  index.begins.assign(t.ops.size(), EventIndex::kNever);
  index.allocs.assign(t.storages.size(), EventIndex::kNever);
  index.allocators.resize(t.storages.size());
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
        break;
      case EventKind::kEnd:
        running = {};
        break;
      case EventKind::kAlloc:
        index.allocs[event.id] = at;
        index.allocators[event.id] = running;
        break;
      default:
        break;
    }
  }
  return index;
}

}  // namespace tidemark::plan
