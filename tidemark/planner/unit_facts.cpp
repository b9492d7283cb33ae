#include "tidemark/planner/unit_facts.h"

#include <algorithm>

namespace tidemark::planner {

namespace {

using namespace step;

constexpr std::uint32_t kNever = plan::EventIndex::kNever;

UnitGroup condition(UnitGroup group) {
  group.kind = GroupKind::kCondition;
  return group;
}

}  // namespace

UnitReader::UnitReader(const StepView& view, const OpWorkspace& workspace, const Options& options)
    : view_(view),
      step_(view.step()),
      t_(view.tables()),
      space_(view.space()),
      m_(view.moments()),
      workspace_(workspace),
      options_(options) {
  for (std::uint32_t i = 0; i < t_.saves.size(); ++i) {
    if (!t_.saves[i].hooked || m_.packed[i] == kNever) continue;
    const std::uint32_t storage = view.storage_of(i);
    if (!m_.is_always_fixed(storage)) packs_of_[storage].push_back(m_.packed[i]);
  }
}

UnitFacts UnitReader::read(const Candidate& c) {
  UnitFacts f;
  f.first_element = m_.element_at(c.region.begin - 1);
  f.last_element = m_.element_at(c.region.end);
  f.keeps = c.frame_end > m_.last_later[f.last_element];
  f.keeps_cache = f.keeps && (c.trigger == kNever || c.trigger > m_.last_later[f.last_element]);
  if (!f.keeps || !f.keeps_cache) is_exact_ = false;
  if (std::min(c.frame_end, m_.event_count) > m_.first_below[f.first_element]) is_exact_ = false;
  if (c.trigger != kNever && c.trigger > c.frame_end) is_exact_ = false;
  for (std::uint32_t e = f.first_element; e <= f.last_element; ++e)
    for (const std::uint32_t at : m_.owned[e])
      if (at > c.region.end) f.backward.push_back(at);
  std::sort(f.backward.begin(), f.backward.end());
  look_at_region(c, f);
  add_groups(c, f);
  return f;
}

void UnitReader::look_at_region(const Candidate& c, UnitFacts& f) {
  for (const TensorId input : step_.inputs(step_[c.call])) add_input(c, f, input);
  for (std::uint32_t at = c.region.begin; at < c.region.end; ++at) {
    const Event& event = t_.events[at];
    if (event.kind == EventKind::kBegin) {
      for (const TensorId input : step_.inputs(t_.ops[event.id])) add_input(c, f, input);
      if (workspace_.is_changed_by_watch(OpId(event.id))) f.has_watch = true;
    } else if (event.kind == EventKind::kPack && t_.saves[event.id].hooked) {
      add_input(c, f, t_.saves[event.id].tensor);
      f.saves.push_back(event.id);
      if (m_.is_resized[view_.storage_of(event.id)] != 0) is_exact_ = false;
      std::uint32_t end = std::min(m_.released[event.id], m_.event_count);
      for (const Interval& interval : m_.unpacked[event.id]) end = std::max(end, interval.end);
      if (end > m_.first_below[f.first_element]) is_exact_ = false;
    } else if (event.kind == EventKind::kResize) {
      is_exact_ = false;
    }
  }
  std::sort(f.inputs.begin(), f.inputs.end());
  f.inputs.erase(std::unique(f.inputs.begin(), f.inputs.end()), f.inputs.end());
}

void UnitReader::add_input(const Candidate& c, UnitFacts& f, TensorId tensor) {
  const std::uint32_t storage = step_[tensor].storage.value();
  const std::uint32_t made = space_.index.allocs[storage];
  if (made != kNever && made >= c.region.begin) return;
  if (m_.is_always_fixed(storage)) return;
  if (m_.is_resized[storage] != 0) {
    is_exact_ = false;
    return;
  }
  f.inputs.push_back(storage);
}

void UnitReader::add_groups(const Candidate& c, UnitFacts& f) {
  for (std::uint32_t i = 0; i < c.choices.size(); ++i) {
    const Choice& choice = c.choices[i];
    if (choice.freedom == Freedom::kNeverSave) continue;
    if (choice.freedom == Freedom::kAlwaysSave) {
      f.always.push_back(i);
      continue;
    }
    UnitGroup group = group_of(c, f, choice);
    group.choice = i;
    f.groups.push_back(group);
  }
  const auto position = [&](const UnitGroup& g) { return space_.index.begins[c.choices[g.choice].savers[0].index()]; };
  std::sort(f.groups.begin(), f.groups.end(),
            [&](const UnitGroup& a, const UnitGroup& b) { return position(a) < position(b); });
  // In the forward, a group's bytes count from when those of all groups before it do: later than in truth at most.
  std::uint32_t start = 0;
  for (UnitGroup& group : f.groups)
    if (group.kind == GroupKind::kSum) start = group.forward_start = std::max(start, group.forward_start);
  give_small_conditions(f);
}

// The largest ones stay conditions.
void UnitReader::give_small_conditions(UnitFacts& f) {
  std::vector<UnitGroup*> conditions;
  for (UnitGroup& group : f.groups)
    if (group.kind == GroupKind::kCondition) conditions.push_back(&group);
  if (conditions.size() <= options_.max_conditions) return;
  std::stable_sort(conditions.begin(), conditions.end(),
                   [](const UnitGroup* a, const UnitGroup* b) { return a->bytes > b->bytes; });
  for (std::size_t i = options_.max_conditions; i < conditions.size(); ++i) {
    conditions[i]->kind = GroupKind::kGiven;
    ++given_count_;
  }
  is_exact_ = false;
}

UnitGroup UnitReader::group_of(const Candidate& c, const UnitFacts& f, const Choice& choice) const {
  UnitGroup group;
  const OpId op = choice.savers.front();
  group.begin = space_.index.begins[op.index()];
  group.end = view_.end_of(op);
  bool is_plain = choice.savers.size() == 1 && group.end < c.stop && c.trigger < c.frame_end && f.keeps_cache;
  bool is_there_anyway = true;
  for (const OpId saver : choice.savers) {
    const std::uint32_t end = view_.end_of(saver);
    for (const std::uint32_t storage : view_.cache_of(c, saver)) {
      if (space_.index.allocators[storage] != saver || m_.is_resized[storage] != 0) return condition(group);
      const Interval life = m_.fixed(storage).back();
      is_there_anyway =
          is_there_anyway && m_.fixed(storage).size() == 1 && life.end >= std::min(c.frame_end, m_.event_count);
      is_plain = is_plain && m_.fixed(storage).size() == 1 && life.end <= c.region.end && !is_held_outside(c, storage);
      group.bytes += m_.bytes[storage];
      if (m_.is_parked[storage] == 0) group.unparked_bytes += m_.bytes[storage];
      group.starts.emplace_back(std::max(end, life.end), m_.bytes[storage]);
      group.forward_start = std::max(group.forward_start, group.starts.back().first);
    }
    is_plain = is_plain && leaves_nothing_else(c, saver, end);
  }
  group.forward_start = std::max(group.forward_start, group.end);
  if (is_there_anyway && group.end < c.stop) group.kind = GroupKind::kFree;
  if (group.kind == GroupKind::kFree || is_plain) return group;
  return condition(group);
}

// Whether nothing that is allocated in the op, and is not in its cache, depends after the op on whether it runs
// again: it is gone by then, or is packed right away, which makes it in a recompute too. (PyTorch keeps wrapped
// numbers so.)
bool UnitReader::leaves_nothing_else(const Candidate& c, OpId op, std::uint32_t end) const {
  const Storages cache = view_.cache_of(c, op);
  for (std::uint32_t at = space_.index.begins[op.index()]; at < end; ++at) {
    if (t_.events[at].kind == EventKind::kPack) return false;
    if (t_.events[at].kind != EventKind::kAlloc || has(cache, t_.events[at].id)) continue;
    if (m_.fixed(t_.events[at].id).back().end <= end) continue;
    std::uint32_t pack = end + 1;
    while (pack < c.stop && t_.events[pack].kind == EventKind::kPack &&
           view_.storage_of(t_.events[pack].id) != t_.events[at].id)
      ++pack;
    if (pack >= c.stop || t_.events[pack].kind != EventKind::kPack) return false;
  }
  return true;
}

// Whether a save packed outside the region keeps the storage.
bool UnitReader::is_held_outside(const Candidate& c, std::uint32_t storage) const {
  const auto found = packs_of_.find(storage);
  if (found == packs_of_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(),
                     [&](std::uint32_t at) { return !c.region.contains(at); });
}

}  // namespace tidemark::planner
