#include "tidemark/planner/step_view.h"

#include <algorithm>
#include <iterator>

namespace tidemark::planner {

using namespace step;

bool has(const Storages& storages, std::uint32_t storage) {
  return std::binary_search(storages.begin(), storages.end(), storage);
}

Storages union_of(const Storages& a, const Storages& b) {
  Storages both;
  both.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

StepView::StepView(const Step& step, const Space& space, const Moments& moments)
    : step_(&step), space_(&space), moments_(&moments), op_ends_(step.tables().ops.size(), plan::EventIndex::kNever) {
  const std::vector<Event>& events = tables().events;
  for (std::uint32_t at = 0; at < events.size(); ++at)
    if (events[at].kind == EventKind::kEnd) op_ends_[events[at].id] = at;
}

bool StepView::is_inside(const Candidate& c, std::uint32_t storage) const {
  const std::uint32_t made = space_->index.allocs[storage];
  return made != plan::EventIndex::kNever && made >= c.region.begin && made < c.region.end;
}

Storages StepView::cache_of(const Candidate& c, OpId op) const {
  Storages storages;
  for (const Output& output : step_->outputs((*step_)[op]))
    if (const std::uint32_t storage = (*step_)[output.tensor].storage.value(); is_inside(c, storage))
      storages.push_back(storage);
  std::sort(storages.begin(), storages.end());
  storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
  return storages;
}

}  // namespace tidemark::planner
