#include "tidemark/planner/moments.h"

#include <algorithm>

#include "tidemark/base/rounding.h"

namespace tidemark::planner {

namespace {

using namespace step;

constexpr std::uint32_t kNever = plan::EventIndex::kNever;

class Finder {
 public:
  Finder(const Step& step, const Space& space, std::span<const std::uint8_t> is_used, const MomentsOptions& options)
      : step_(step),
        t_(step.tables()),
        space_(space),
        is_used_(is_used),
        workspace_(options.workspace),
        round_to_(options.round_to_bytes),
        cuts_parked_(options.cut_parked),
        least_parked_(options.least_parked) {}

  Moments run() {
    m_.event_count = static_cast<std::uint32_t>(t_.events.size());
    find_sizes();
    find_lifetimes();
    cut_parked();
    find_levels();
    if (workspace_ != nullptr) find_extras();
    find_regular();
    find_elements();
    find_homes();
    return std::move(m_);
  }

 private:
  bool is_backward(PassId pass) const {
    return pass.has_value() && (step_[pass].kind == PassKind::kBackward || step_[pass].kind == PassKind::kRecompute);
  }

  void find_sizes() {
    m_.bytes.reserve(t_.storages.size());
    for (const Storage& storage : t_.storages) m_.bytes.push_back(round_up(storage.bytes, round_to_));
    m_.is_resized.assign(t_.storages.size(), 0);
    for (const Resize& resize : t_.resizes) m_.is_resized[resize.storage.index()] = 1;
  }

  void find_lifetimes() {
    m_.program.resize(t_.storages.size());
    for (std::size_t i = 0; i < m_.program.size(); ++i) {
      const std::uint32_t made = space_.index.allocs[i];
      m_.program[i] = {made == kNever ? 0 : made, m_.event_count};
    }
    m_.packed.assign(t_.saves.size(), kNever);
    m_.released.assign(t_.saves.size(), kNever);
    m_.unpacked.resize(t_.saves.size());
    ran_.assign(t_.nodes.size(), kNever);
    std::vector<std::vector<std::uint32_t>> open(t_.saves.size());  // unpacks without a drop
    for (std::uint32_t at = 0; at < m_.event_count; ++at) {
      const Event& event = t_.events[at];
      if (event.kind == EventKind::kFree) m_.program[event.id].end = at;
      if (event.kind == EventKind::kPack) m_.packed[event.id] = at;
      if (event.kind == EventKind::kRelease) m_.released[event.id] = at;
      if (event.kind == EventKind::kNode && ran_[event.id] == kNever) ran_[event.id] = at;
      if (event.kind == EventKind::kUnpack) open[event.id].push_back(at);
      if (event.kind == EventKind::kDrop && !open[event.id].empty()) {
        m_.unpacked[event.id].push_back({open[event.id].back(), at});
        open[event.id].pop_back();
      }
    }
    for (std::uint32_t i = 0; i < t_.saves.size(); ++i) {
      for (const std::uint32_t at : open[i]) m_.unpacked[i].push_back({at, m_.event_count});
      if (t_.saves[i].hooked || m_.packed[i] == kNever) continue;
      const std::uint32_t storage = step_[t_.saves[i].tensor].storage.value();
      std::vector<Interval>& list = m_.more_fixed[storage];
      list.push_back({m_.packed[i], std::min(m_.released[i], m_.event_count)});
      list.insert(list.end(), m_.unpacked[i].begin(), m_.unpacked[i].end());
    }
    for (auto& [storage, list] : m_.more_fixed) {
      list.push_back(m_.program[storage]);
      list = union_of(std::move(list));
    }
  }

  // By event: where the innermost candidate around it ends; the event itself where there is none.
  std::vector<std::uint32_t> find_innermost_ends() const {
    std::vector<std::uint32_t> end(m_.event_count);
    for (std::uint32_t at = 0; at < m_.event_count; ++at) end[at] = at;
    for (std::size_t i = 0; i < space_.candidates.size(); ++i) {  // outer ones first
      if (is_used_[i] == 0) continue;
      const plan::EventRange& region = space_.candidates[i].region;
      for (std::uint32_t at = region.begin; at < region.end; ++at) end[at] = region.end;
    }
    return end;
  }

  bool is_made_of_parameters(std::uint32_t storage) const {
    const auto inputs = step_.inputs(step_[space_.index.allocators[storage]]);
    return !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), [&](TensorId input) {
      return step_[step_[input].storage].role == Role::kParameter;
    });
  }

  // By event: how many events of backward passes come before it. The same number means the same forward.
  std::vector<std::uint32_t> count_backward() const {
    std::vector<std::uint32_t> before(std::size_t{m_.event_count} + 1, 0);
    PassId pass;
    for (std::uint32_t at = 0; at < m_.event_count; ++at) {
      if (t_.events[at].kind == EventKind::kPhase) pass = PassId(t_.events[at].id);
      before[at + 1] = before[at] + (is_backward(pass) ? 1 : 0);
    }
    return before;
  }

  // By storage that nobody uses outside of the candidate it is made in, and that the program holds all the same: where
  // that ends; 0 for others. Either it is made of parameters, or it outlasts all candidates of the forward. What
  // autograd hands out after the program's own hold is no use.
  std::vector<std::uint32_t> find_cuts(const std::vector<std::uint32_t>& backward_before) const {
    const std::vector<std::uint32_t> innermost = find_innermost_ends();
    std::map<std::uint32_t, std::uint32_t> last_end;  // of candidates, by forward
    for (std::size_t i = 0; i < space_.candidates.size(); ++i) {
      if (is_used_[i] == 0) continue;
      const plan::EventRange& region = space_.candidates[i].region;
      std::uint32_t& end = last_end[backward_before[region.begin]];
      end = std::max(end, region.end);
    }
    std::vector<std::uint32_t> cut(t_.storages.size(), 0);
    for (std::uint32_t i = 0; i < cut.size(); ++i) {
      const Interval& life = m_.program[i];
      if (!space_.index.allocators[i].has_value() || life.end == m_.event_count) continue;
      if (backward_before[life.end] != backward_before[life.begin]) continue;
      const auto last = last_end.find(backward_before[life.begin]);
      if (last == last_end.end()) continue;
      if (life.end > last->second || is_made_of_parameters(i)) cut[i] = innermost[end_of(space_.index.allocators[i])];
    }
    const auto use = [&](TensorId tensor, std::uint32_t at) {
      const std::uint32_t storage = step_[tensor].storage.value();
      if (at < m_.program[storage].end && innermost[at] > cut[storage]) cut[storage] = 0;
    };
    for (std::uint32_t at = 0; at < m_.event_count; ++at) {
      const Event& event = t_.events[at];
      if (event.kind == EventKind::kPack) use(t_.saves[event.id].tensor, at);
      if (event.kind == EventKind::kEnter)
        for (const TensorId input : step_.inputs(t_.calls[event.id])) use(input, at);
      if (event.kind != EventKind::kEnd) continue;
      for (const TensorId input : step_.inputs(t_.ops[event.id])) use(input, at);
      for (const Output& output : step_.outputs(t_.ops[event.id])) use(output.tensor, at);
    }
    return cut;
  }

  std::uint32_t end_of(OpId op) const {
    std::uint32_t at = space_.index.begins[op.index()] + 1;
    while (t_.events[at].kind != EventKind::kEnd) ++at;
    return at;
  }

  void cut_parked() {
    m_.is_parked.assign(t_.storages.size(), 0);
    m_.parked_before.assign(m_.event_count, 0);
    m_.left_before.assign(m_.event_count, 0);
    if (!cuts_parked_) return;
    const std::vector<std::uint32_t> cut = find_cuts(count_backward());
    std::vector<std::uint32_t> parked;
    for (std::uint32_t i = 0; i < t_.storages.size(); ++i)
      if (cut[i] != 0 && cut[i] < m_.program[i].end && m_.is_resized[i] == 0 && !m_.more_fixed.contains(i))
        parked.push_back(i);
    if (parked.size() < least_parked_) return;
    for (const std::uint32_t i : parked) {
      Interval& life = m_.program[i];
      m_.is_parked[i] = 1;
      m_.parked_before[cut[i]] += m_.bytes[i];
      m_.left_before[life.end] += m_.bytes[i];
      life.end = cut[i];
    }
    for (std::uint32_t at = 1; at < m_.event_count; ++at) {
      m_.parked_before[at] += m_.parked_before[at - 1];
      m_.left_before[at] += m_.left_before[at - 1];
    }
  }

  void find_levels() {
    std::vector<std::int64_t> change(std::size_t{m_.event_count} + 1, 0);
    for (std::uint32_t i = 0; i < t_.storages.size(); ++i) {
      if (m_.is_resized[i] != 0) continue;
      for (const Interval& interval : m_.fixed(i)) {
        if (interval.begin >= interval.end) continue;
        change[interval.begin] += m_.bytes[i];
        change[interval.end] -= m_.bytes[i];
      }
    }
    add_resized(change);
    m_.level.resize(m_.event_count);
    std::int64_t level = 0;
    for (std::uint32_t at = 0; at < m_.event_count; ++at) m_.level[at] = level += change[at];
    m_.extra_peak.assign(m_.event_count, 0);
    m_.extra_after.assign(m_.event_count, 0);
    std::int64_t start = 0;
    for (std::uint32_t i = 0; i < t_.storages.size(); ++i)
      if (space_.index.allocs[i] == kNever) start += m_.bytes[i];
    m_.ground_bytes = start;
  }

  // A storage that changes its size counts with the size it has.
  void add_resized(std::vector<std::int64_t>& change) const {
    if (t_.resizes.empty()) return;
    std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>> sizes(t_.storages.size());  // from when on
    for (std::uint32_t at = 0; at < m_.event_count; ++at)
      if (t_.events[at].kind == EventKind::kResize) {
        const Resize& resize = t_.resizes[t_.events[at].id];
        sizes[resize.storage.index()].emplace_back(at, round_up(resize.bytes, round_to_));
      }
    for (std::uint32_t i = 0; i < sizes.size(); ++i) {
      if (m_.is_resized[i] == 0) continue;
      sizes[i].insert(sizes[i].begin(), {0, m_.bytes[i]});
      for (std::size_t k = 0; k < sizes[i].size(); ++k) {
        const std::uint32_t end = k + 1 < sizes[i].size() ? sizes[i][k + 1].first : m_.event_count;
        for (const Interval& interval : m_.fixed(i)) {
          const std::uint32_t from = std::max(interval.begin, sizes[i][k].first);
          const std::uint32_t to = std::min(interval.end, end);
          if (from >= to) continue;
          change[from] += sizes[i][k].second;
          change[to] -= sizes[i][k].second;
        }
      }
    }
  }

  void find_extras() {
    const std::vector<std::uint32_t> rows = memory::join_workspace(step_, *workspace_);
    for (std::uint32_t op = 0; op < rows.size(); ++op) {
      if (rows[op] == memory::kNoRow || space_.index.begins[op] == kNever) continue;
      const std::uint32_t begin = space_.index.begins[op];
      std::vector<std::uint32_t> allocs;
      std::uint32_t end = begin + 1;
      for (; t_.events[end].kind != EventKind::kEnd; ++end)
        if (t_.events[end].kind == EventKind::kAlloc) allocs.push_back(t_.events[end].id);
      std::vector<std::uint8_t> is_made(allocs.size(), 0);
      std::vector<std::int64_t> hidden;
      std::int64_t extra = 0;
      std::int64_t peak = 0;
      for (const memory::WorkspaceStep& s : workspace_->rows[rows[op]].steps) {
        const auto value = static_cast<std::size_t>(s.value);
        if (s.kind == memory::WorkspaceStepKind::kTake) {
          hidden.push_back(round_up(s.value, round_to_));
          extra += hidden.back();
        } else if (s.kind == memory::WorkspaceStepKind::kGive) {
          extra -= hidden[value];
          hidden[value] = 0;
        } else if (value < allocs.size() && is_made[value] == 0) {
          is_made[value] = 1;
          extra += m_.bytes[allocs[value]];
        }
        peak = std::max(peak, extra);
      }
      m_.extra_peak[begin] = peak;
      m_.extra_after[begin] = extra;
      std::size_t next = 0;
      for (std::uint32_t at = begin + 1; at < end; ++at) {
        if (t_.events[at].kind == EventKind::kAlloc && is_made[next++] != 0) extra -= m_.bytes[t_.events[at].id];
        m_.extra_peak[at] = m_.extra_after[at] = extra;
      }
    }
  }

  // Saves that are there from their pack to the backward of their node: those whose order tells how far backward is.
  void find_regular() {
    is_regular_.assign(t_.saves.size(), 0);
    for (std::uint32_t i = 0; i < t_.saves.size(); ++i) {
      if (!t_.saves[i].hooked || m_.packed[i] == kNever || m_.released[i] == kNever) continue;
      const std::uint32_t ran = ran_[t_.saves[i].node.index()];
      is_regular_[i] = ran != kNever && m_.packed[i] < ran && ran < m_.released[i] ? 1 : 0;
    }
  }

  void find_elements() {
    std::vector<std::uint32_t> cuts = {0, m_.event_count};
    for (std::size_t i = 0; i < space_.candidates.size(); ++i) {
      if (is_used_[i] == 0) continue;
      cuts.push_back(space_.candidates[i].region.begin - 1);
      cuts.push_back(space_.candidates[i].region.end + 1);
    }
    std::vector<std::uint32_t> splits;
    std::int64_t alive = 0;
    PassId pass;
    for (std::uint32_t at = 0; at < m_.event_count; ++at) {
      const Event& event = t_.events[at];
      if (event.kind == EventKind::kPack && is_regular_[event.id] != 0) ++alive;
      if (event.kind == EventKind::kRelease && is_regular_[event.id] != 0) --alive;
      if (event.kind != EventKind::kPhase) continue;
      if (is_backward(pass) && !is_backward(PassId(event.id)) && alive == 0) splits.push_back(at);
      pass = PassId(event.id);
    }
    cuts.insert(cuts.end(), splits.begin(), splits.end());
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    m_.element_begin = std::move(cuts);
    if (m_.element_begin.size() == 1) m_.element_begin.push_back(m_.event_count);  // a step without events
    m_.episode_begin.push_back(0);
    m_.episode_of.assign(m_.element_count(), 0);
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < m_.element_count(); ++i) {
      if (next < splits.size() && m_.element_begin[i] == splits[next]) {
        ++next;
        if (i > 0) m_.episode_begin.push_back(i);
      }
      m_.episode_of[i] = static_cast<std::uint32_t>(m_.episode_begin.size()) - 1;
    }
    m_.episode_begin.push_back(m_.element_count());
  }

  void find_homes() {
    const std::uint32_t count = m_.element_count();
    m_.owned.resize(count);
    std::vector<std::uint32_t> kept(count, 0);  // regular saves alive, by element
    std::uint32_t top = 0;                      // no element above it keeps any
    std::uint32_t element = 0;
    std::vector<std::uint32_t> last(count, 0);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> backward;  // moments of backward passes, with their homes
    PassId pass;
    for (std::uint32_t at = 0; at < m_.event_count; ++at) {
      while (element + 1 < count && m_.element_begin[element + 1] <= at) ++element;
      const Event& event = t_.events[at];
      if (event.kind == EventKind::kPhase) pass = PassId(event.id);
      if (event.kind == EventKind::kPack && is_regular_[event.id] != 0) {
        ++kept[element];
        top = std::max(top, element);
      }
      if (event.kind == EventKind::kRelease && is_regular_[event.id] != 0) --kept[m_.element_at(m_.packed[event.id])];
      while (top > 0 && kept[top] == 0) --top;
      std::uint32_t home = element;
      if (is_backward(pass)) home = count > 0 && kept[top] > 0 ? top : Moments::kGround;
      if (is_backward(pass)) backward.emplace_back(at, home);
      if (home == Moments::kGround) {
        m_.ground_bytes = std::max(m_.ground_bytes, m_.level[at] + m_.extra_peak[at]);
        continue;
      }
      m_.owned[home].push_back(at);
      last[home] = std::max(last[home], at);
    }
    // What a recompute does happens at its trigger and belongs to the unit.
    for (std::size_t i = 0; i < space_.candidates.size(); ++i) {
      const Candidate& c = space_.candidates[i];
      if (is_used_[i] == 0 || c.trigger == kNever) continue;
      std::uint32_t& of_first = last[m_.element_at(c.region.begin - 1)];
      of_first = std::max(of_first, c.trigger);
    }
    m_.last_later.assign(count, 0);
    for (std::uint32_t i = count; i-- > 1;)
      if (m_.episode_of[i] == m_.episode_of[i - 1]) m_.last_later[i - 1] = std::max(m_.last_later[i], last[i]);
    find_first_below(backward);
  }

  void find_first_below(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& backward) {
    // By episode, backwards in time: the earliest moment whose home is below an element is a running minimum.
    m_.first_below.assign(m_.element_count(), m_.event_count);
    for (std::size_t e = 0; e + 1 < m_.episode_begin.size(); ++e) {
      const std::uint32_t begin = m_.episode_begin[e];
      const std::uint32_t end = m_.episode_begin[e + 1];
      const std::uint32_t over = m_.element_begin[end];         // where the next episode begins
      std::vector<std::uint32_t> first(end - begin + 1, over);  // first[h]: of home begin + h - 1; 0: the ground
      for (const auto& [at, home] : backward) {
        if (at < m_.element_begin[begin] || at >= over) continue;
        const std::uint32_t h = home == Moments::kGround || home < begin ? 0 : home - begin + 1;
        if (h < first.size()) first[h] = std::min(first[h], at);
      }
      std::uint32_t lowest = over;
      for (std::uint32_t i = begin; i < end; ++i) {
        lowest = std::min(lowest, first[i - begin]);
        m_.first_below[i] = lowest;
      }
    }
  }

  const Step& step_;
  const StepTables& t_;
  const Space& space_;
  std::span<const std::uint8_t> is_used_;
  const memory::WorkspaceTable* workspace_;
  std::int64_t round_to_;
  bool cuts_parked_;
  std::size_t least_parked_;
  Moments m_;
  std::vector<std::uint32_t> ran_;  // by node
  std::vector<std::uint8_t> is_regular_;
};

}  // namespace

std::vector<Interval> union_of(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> result;
  for (const Interval& interval : intervals) {
    if (interval.begin >= interval.end) continue;
    if (!result.empty() && interval.begin <= result.back().end)
      result.back().end = std::max(result.back().end, interval.end);
    else
      result.push_back(interval);
  }
  return result;
}

std::vector<Interval> without(std::span<const Interval> intervals, std::span<const Interval> taken) {
  std::vector<Interval> result;
  for (const Interval& interval : intervals) {
    std::uint32_t from = interval.begin;
    for (const Interval& hole : taken) {
      if (hole.end <= from || hole.begin >= interval.end) continue;
      if (hole.begin > from) result.push_back({from, hole.begin});
      from = std::max(from, hole.end);
    }
    if (from < interval.end) result.push_back({from, interval.end});
  }
  return result;
}

std::uint32_t Moments::element_at(std::uint32_t event) const {
  const auto after = std::upper_bound(element_begin.begin(), element_begin.end() - 1, event);
  return static_cast<std::uint32_t>(after - element_begin.begin()) - 1;
}

std::span<const Interval> Moments::fixed(std::uint32_t storage) const {
  if (!more_fixed.empty())
    if (const auto found = more_fixed.find(storage); found != more_fixed.end()) return found->second;
  return {&program[storage], 1};
}

bool Moments::is_fixed_at(std::uint32_t storage, std::uint32_t event) const {
  for (const Interval& interval : fixed(storage))
    if (interval.contains(event)) return true;
  return false;
}

bool Moments::is_always_fixed(std::uint32_t storage) const {
  const std::span<const Interval> intervals = fixed(storage);
  return intervals.size() == 1 && intervals[0].begin == 0 && intervals[0].end == event_count;
}

Moments find_moments(const Step& step, const Space& space, std::span<const std::uint8_t> is_used,
                     const MomentsOptions& options) {
  return Finder(step, space, is_used, options).run();
}

}  // namespace tidemark::planner
