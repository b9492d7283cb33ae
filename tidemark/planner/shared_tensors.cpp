#include "tidemark/planner/shared_tensors.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tidemark::planner {

using namespace step;

namespace {

constexpr std::uint32_t kNever = plan::EventIndex::kNever;

}  // namespace

SharedTensors::SharedTensors(const StepView& view, const std::vector<std::vector<Hold>>& plain,
                             const std::vector<UnitFacts>& facts, const std::vector<std::uint8_t>& is_used)
    : view_(view), space_(view.space()), m_(view.moments()), plain_(plain), facts_(facts), is_used_(is_used) {
  set_relevant(std::vector<std::uint8_t>(m_.event_count, 1));
}

void SharedTensors::set_relevant(const std::vector<std::uint8_t>& is_relevant) {
  relevant_before_.assign(1, 0);
  for (const std::uint8_t one : is_relevant) relevant_before_.push_back(relevant_before_.back() + one);
}

Later SharedTensors::later(std::uint32_t storage, std::uint32_t element) const {
  const Interval range = {m_.element_begin[element + 1],
                          std::max(m_.last_later[element] + 1, m_.element_begin[element + 1])};
  const auto relevant = [&](std::uint32_t begin, std::uint32_t end) {
    return begin < end ? relevant_before_[end] - relevant_before_[begin] : 0;
  };
  std::uint32_t count = 0;
  for (const Interval& interval : m_.fixed(storage))
    count += relevant(std::max(interval.begin, range.begin), std::min(interval.end, range.end));
  if (count == 0) return Later::kNotAtAll;
  return count == relevant(range.begin, range.end) ? Later::kAlways : Later::kSometimes;
}

void SharedTensors::find_open() {
  open_.assign(m_.element_count() + 1, {});  // by place: before this element
  anchored_.assign(m_.element_count() + 1, {});
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> range;  // by storage: first and last holder
  const auto note = [&](std::uint32_t storage, std::uint32_t element) {
    const auto [found, is_new] = range.emplace(storage, std::pair(element, element));
    if (is_new) return;
    found->second.first = std::min(found->second.first, element);
    found->second.second = std::max(found->second.second, element);
  };
  for (std::uint32_t i = 0; i < plain_.size(); ++i)
    for (const Hold& hold : plain_[i]) note(hold.storage, i);
  for (std::uint32_t i = 0; i < facts_.size(); ++i) {
    for (const std::uint32_t storage : facts_[i].inputs) note(storage, facts_[i].first_element);
    for (const Choice& choice : space_.candidates[i].choices) {
      if (choice.freedom == Freedom::kNeverSave) continue;
      for (const OpId op : choice.savers)
        for (const std::uint32_t storage : view_.cache_of(space_.candidates[i], op))
          note(storage, m_.element_at(space_.index.begins[op.index()]));
    }
  }
  for (const auto& [storage, holders] : range) {
    bool may_be_kept = false;  // by an arc that has counted it
    for (std::uint32_t e = holders.first; e + 1 < m_.element_count(); ++e) {
      if (m_.episode_of[e] != m_.episode_of[e + 1]) break;
      const Later when = later(storage, e);
      may_be_kept = may_be_kept || when != Later::kAlways;
      if (!may_be_kept) continue;
      if (e >= holders.second && when == Later::kNotAtAll) break;
      const auto anchor = anchors_.find(storage);
      if (anchor == anchors_.end())
        open_[e + 1].push_back(storage);
      else if (e >= anchor->second)
        anchored_[e + 1].push_back(storage);
    }
  }
}

bool SharedTensors::find_anchors(std::size_t max_shared) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> places;  // by storage: where it is open
  for (std::uint32_t i = 0; i < open_.size(); ++i)
    for (const std::uint32_t storage : open_[i]) places[storage].push_back(i);
  Storages by_size;
  for (const auto& [storage, where] : places) by_size.push_back(storage);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return m_.bytes[a] > m_.bytes[b]; });
  std::vector<std::size_t> kept(open_.size(), 0);
  for (const std::uint32_t storage : by_size) {
    const std::vector<std::uint32_t>& where = places[storage];
    const bool has_room =
        std::all_of(where.begin(), where.end(), [&](std::uint32_t i) { return kept[i] < max_shared; });
    if (!has_room) {
      anchors_.emplace(storage, anchor_of(storage));
      continue;
    }
    for (const std::uint32_t i : where) ++kept[i];
  }
  return !anchors_.empty();
}

// The first element that holds it as plain ops, of those that share the fewest candidates with where it was made: a
// unit that begins later has it as an input.
std::uint32_t SharedTensors::anchor_of(std::uint32_t storage) const {
  const std::uint32_t made = space_.index.allocs[storage];
  std::uint32_t anchor = Moments::kGround;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (std::uint32_t e = 0; e < plain_.size(); ++e) {
    const bool holds =
        std::any_of(plain_[e].begin(), plain_[e].end(), [&](const Hold& hold) { return hold.storage == storage; });
    if (!holds || later(storage, e) == Later::kAlways) continue;
    std::size_t shared = 0;
    for (std::uint32_t u = 0; u < facts_.size(); ++u)
      if (is_used_[u] != 0 && made != kNever && space_.candidates[u].region.contains(made) &&
          facts_[u].last_element >= e)
        ++shared;
    if (shared >= fewest) continue;
    fewest = shared;
    anchor = e;
  }
  return anchor;
}

bool SharedTensors::is_counted(std::uint32_t storage, std::uint32_t first_element, std::uint32_t last_element) const {
  const auto anchor = anchors_.find(storage);
  return anchor == anchors_.end() || (first_element <= anchor->second && anchor->second <= last_element);
}

}  // namespace tidemark::planner
