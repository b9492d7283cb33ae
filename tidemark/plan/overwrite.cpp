#include "tidemark/plan/overwrite.h"

#include <algorithm>
#include <set>

namespace tidemark::plan {

namespace {

using namespace step;

class Search {
 public:
  Search(const Step& step, const EventIndex& index, CallId call)
      : step_(step),
        index_(index),
        call_(step[call]),
        region_(index.regions[call.index()]),
        after_{region_.end, recompute_at(step, index, call)} {}

  std::optional<Overwrite> run() {
    if (after_.end == EventIndex::kNever) return std::nullopt;
    for (const TensorId input : step_.inputs(call_))
      if (auto found = look_at(step_[input].storage)) return found;
    for (std::uint32_t at = region_.begin; at < region_.end; ++at) {
      const Event& event = step_.tables().events[at];
      if (event.kind != EventKind::kBegin) continue;
      const Op& op = step_[OpId(event.id)];
      for (const TensorId input : step_.inputs(op))
        if (auto found = look_at(step_[input].storage)) return found;
      for (const Output& out : step_.outputs(op))
        if (auto found = look_at(step_[out.tensor].storage)) return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<Overwrite> look_at(StorageId storage) {
    if (region_.contains(index_.allocs[storage.index()]) || !seen_.insert(storage).second) return std::nullopt;
    const Write* inside = first_write(index_, storage, region_);
    if (inside != nullptr && step_[storage].role == Role::kBuffer) return std::nullopt;
    if (inside != nullptr) return Overwrite{storage, inside->op, true};
    if (const Write* later = first_write(index_, storage, after_)) return Overwrite{storage, later->op, false};
    return std::nullopt;
  }

  const Step& step_;
  const EventIndex& index_;
  const Call& call_;
  EventRange region_;
  EventRange after_;
  std::set<StorageId> seen_;
};

}  // namespace

std::uint32_t recompute_at(const Step& step, const EventIndex& index, CallId call) {
  const EventRange region = index.regions[call.index()];
  std::uint32_t first = EventIndex::kNever;
  for (std::uint32_t at = region.begin; at < region.end; ++at) {
    const Event& event = step.tables().events[at];
    if (event.kind == EventKind::kPack && step[SaveId(event.id)].hooked)
      first = std::min(first, index.unpacks[event.id]);
  }
  return first;
}

std::optional<Overwrite> find_overwrite(const Step& step, const EventIndex& index, CallId call) {
  return Search(step, index, call).run();
}

}  // namespace tidemark::plan
