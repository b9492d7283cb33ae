#include "tidemark/planner/build_problem.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "tidemark/base/rounding.h"
#include "tidemark/memory/replay.h"
#include "tidemark/planner/floors.h"
#include "tidemark/planner/moments.h"

namespace tidemark::planner {

namespace {

using namespace step;

constexpr std::uint32_t kNever = plan::EventIndex::kNever;

using Storages = std::vector<std::uint32_t>;  // ascending

bool has(const Storages& storages, std::uint32_t storage) {
  return std::binary_search(storages.begin(), storages.end(), storage);
}

Storages union_of(const Storages& a, const Storages& b) {
  Storages both;
  both.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

// Totals at some moments, built up from intervals.
class Profile {
 public:
  void start(const std::vector<std::uint32_t>& moments, const Moments& m) {
    moments_ = &moments;
    values_.resize(moments.size());
    for (std::size_t i = 0; i < moments.size(); ++i) values_[i] = m.level[moments[i]] + m.extra_peak[moments[i]];
    changes_.assign(moments.size() + 1, 0);
  }

  void add(std::span<const Interval> intervals, std::int64_t bytes) {
    for (const Interval& interval : intervals) {
      changes_[place(interval.begin)] += bytes;
      changes_[place(interval.end)] -= bytes;
    }
  }

  void replace(std::size_t i, std::int64_t value) { values_[i] = value; }

  const std::vector<std::int64_t>& finish() {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += sum += changes_[i];
    return values_;
  }

 private:
  std::size_t place(std::uint32_t event) const {
    return static_cast<std::size_t>(std::lower_bound(moments_->begin(), moments_->end(), event) - moments_->begin());
  }

  const std::vector<std::uint32_t>* moments_ = nullptr;
  std::vector<std::int64_t> values_;
  std::vector<std::int64_t> changes_;
};

// A storage that something holds from outside a recompute, and when.
struct Hold {
  std::uint32_t storage = 0;
  std::vector<Interval> when;
};

// How a group of a unit goes into the sums.
enum class GroupKind : std::uint8_t {
  kSum,        // its bytes are added where it is held, and that is all
  kCondition,  // tried both ways: several ops, or held by others too
  kFree,       // its tensors are there anyway: always worth saving
  kGiven,      // one condition too many: as if it were saved and took no memory, which is less than either way
};

struct UnitGroup {
  std::uint32_t choice = 0;
  GroupKind kind = GroupKind::kSum;
  std::uint32_t begin = 0;  // events of its op, if kSum
  std::uint32_t end = 0;
  std::uint32_t forward_start = 0;  // from when on its tensors are there only because it is saved
  std::int64_t bytes = 0;
  std::int64_t unparked_bytes = 0;                             // of those that the program does not hold anyway
  std::vector<std::pair<std::uint32_t, std::int64_t>> starts;  // the same, tensor by tensor
};

// What is the same for all arcs of a candidate.
struct UnitFacts {
  std::uint32_t first_element = 0;
  std::uint32_t last_element = 0;
  Storages inputs;  // what the frame holds, without what is always there
  std::vector<std::uint32_t> saves;
  std::vector<UnitGroup> groups;  // free ones, in the order of their ops
  std::vector<std::uint32_t> always;
  bool has_watch = false;  // whether it matters that a dispatch mode watches
  bool keeps = true;       // the frame is there at all later moments
  bool keeps_cache = true;
  std::vector<std::uint32_t> backward;  // its moments after the forward, ascending
};

class Builder {
 public:
  Builder(const Step& step, const Space& space, const ProblemOptions& options)
      : step_(step), t_(step.tables()), space_(space), options_(options) {}

  Problem run() {
    for (const Candidate& c : space_.candidates) is_used_.push_back(can_spare_bytes(c) ? 1 : 0);
    m_ = find_moments(step_, space_, is_used_,
                      {.workspace = options_.workspace,
                       .round_to_bytes = options_.round_to_bytes,
                       .cut_parked = options_.cut_parked,
                       .least_parked = options_.least_parked});
    problem_.ground_bytes = m_.ground_bytes;
    if (options_.workspace != nullptr) {
      rows_ = memory::join_workspace(step_, *options_.workspace);
      watched_rows_ = memory::join_workspace(step_, *options_.workspace, true);
    }
    copy_holders_.assign(t_.storages.size(), 0);
    find_plain_holds();
    facts_.resize(space_.candidates.size());
    starting_.resize(m_.element_count());
    for (std::uint32_t i = 0; i < facts_.size(); ++i) {
      if (is_used_[i] == 0) continue;
      facts_[i] = look_at(space_.candidates[i]);
      starting_[facts_[i].first_element].push_back(i);
    }
    find_relevant();
    find_open();
    mode_ = Mode::kReal;
    has_forward_ = may_parked_matter_;
    make_episodes();
    if (has_too_many_patterns_ && find_anchors()) {
      find_open();
      make_episodes();
    }
    return std::move(problem_);
  }

 private:
  void make_episodes() {
    problem_.episodes.clear();
    problem_.forward_episodes.clear();
    problem_.pattern_count = 0;
    for (std::size_t e = 0; e + 1 < m_.episode_begin.size(); ++e) {
      problem_.episodes.push_back(make_episode(m_.episode_begin[e], m_.episode_begin[e + 1]));
      if (!has_forward_) continue;
      Episode& forward = problem_.forward_episodes.emplace_back(problem_.episodes.back());
      forward.arcs = std::move(forward_arcs_);
      forward_arcs_.clear();
      for (std::size_t a = 0; a < forward.arcs.size(); ++a) {
        forward.arcs[a].from = problem_.episodes.back().arcs[a].from;
        forward.arcs[a].to = problem_.episodes.back().arcs[a].to;
      }
    }
  }

  std::uint32_t storage_of(std::uint32_t save) const { return step_[t_.saves[save].tensor].storage.value(); }
  std::int64_t rng_bytes() const { return round_up(memory::kRngStateBytes, options_.round_to_bytes); }

  // Whether autograd keeps anything for the call that was made in it. If not, the unit would hold all that plain ops
  // hold, and run again on top.
  bool can_spare_bytes(const Candidate& c) const {
    for (std::uint32_t at = c.region.begin; at < c.region.end; ++at) {
      if (t_.events[at].kind != EventKind::kPack || !t_.saves[t_.events[at].id].hooked) continue;
      const std::uint32_t made = space_.index.allocs[storage_of(t_.events[at].id)];
      if (made != kNever && made >= c.region.begin) return true;
    }
    return false;
  }

  // --- what plain elements hold

  void find_plain_holds() {
    plain_.resize(m_.element_count());
    std::vector<std::map<std::uint32_t, std::vector<Interval>>> found(m_.element_count());
    for (std::uint32_t i = 0; i < t_.saves.size(); ++i) {
      if (!t_.saves[i].hooked || m_.packed[i] == kNever) continue;
      const std::uint32_t storage = storage_of(i);
      if (m_.is_always_fixed(storage)) continue;
      packs_of_[storage].push_back(m_.packed[i]);
      if (m_.is_resized[storage] != 0) {
        problem_.is_exact = false;
        continue;
      }
      std::vector<Interval>& when = found[m_.element_at(m_.packed[i])][storage];
      when.push_back({m_.packed[i], std::min(m_.released[i], m_.event_count)});
      when.insert(when.end(), m_.unpacked[i].begin(), m_.unpacked[i].end());
    }
    for (std::uint32_t i = 0; i < found.size(); ++i)
      for (auto& [storage, when] : found[i]) plain_[i].push_back({storage, union_of(std::move(when))});
  }

  // --- candidates

  UnitFacts look_at(const Candidate& c) {
    UnitFacts f;
    f.first_element = m_.element_at(c.region.begin - 1);
    f.last_element = m_.element_at(c.region.end);
    f.keeps = c.frame_end > m_.last_later[f.last_element];
    f.keeps_cache = f.keeps && (c.trigger == kNever || c.trigger > m_.last_later[f.last_element]);
    if (!f.keeps || !f.keeps_cache) problem_.is_exact = false;
    if (std::min(c.frame_end, m_.event_count) > m_.first_below[f.first_element]) problem_.is_exact = false;
    if (c.trigger != kNever && c.trigger > c.frame_end) problem_.is_exact = false;
    for (std::uint32_t e = f.first_element; e <= f.last_element; ++e)
      for (const std::uint32_t at : m_.owned[e])
        if (at > c.region.end) f.backward.push_back(at);
    std::sort(f.backward.begin(), f.backward.end());
    look_at_region(c, f);
    add_groups(c, f);
    return f;
  }

  void look_at_region(const Candidate& c, UnitFacts& f) {
    for (const TensorId input : step_.inputs(step_[c.call])) add_input(c, f, input);
    for (std::uint32_t at = c.region.begin; at < c.region.end; ++at) {
      const Event& event = t_.events[at];
      if (event.kind == EventKind::kBegin) {
        for (const TensorId input : step_.inputs(t_.ops[event.id])) add_input(c, f, input);
        if (t_.ops[event.id].flags.has(OpFlag::kUnwatched)) f.has_watch = true;
        if (!rows_.empty() && rows_[event.id] != watched_rows_[event.id]) f.has_watch = true;
      } else if (event.kind == EventKind::kPack && t_.saves[event.id].hooked) {
        add_input(c, f, t_.saves[event.id].tensor);
        f.saves.push_back(event.id);
        if (m_.is_resized[storage_of(event.id)] != 0) problem_.is_exact = false;
        std::uint32_t end = std::min(m_.released[event.id], m_.event_count);
        for (const Interval& interval : m_.unpacked[event.id]) end = std::max(end, interval.end);
        if (end > m_.first_below[f.first_element]) problem_.is_exact = false;
      } else if (event.kind == EventKind::kResize) {
        problem_.is_exact = false;
      }
    }
    std::sort(f.inputs.begin(), f.inputs.end());
    f.inputs.erase(std::unique(f.inputs.begin(), f.inputs.end()), f.inputs.end());
  }

  void add_input(const Candidate& c, UnitFacts& f, TensorId tensor) {
    const std::uint32_t storage = step_[tensor].storage.value();
    const std::uint32_t made = space_.index.allocs[storage];
    if (made != kNever && made >= c.region.begin) return;
    if (m_.is_always_fixed(storage)) return;
    if (m_.is_resized[storage] != 0) {
      problem_.is_exact = false;
      return;
    }
    f.inputs.push_back(storage);
  }

  // The storages that a checkpoint holds for a saved op, without those it holds as inputs anyway.
  Storages cache_of(const Candidate& c, OpId op) const {
    Storages storages;
    for (const Output& output : step_.outputs(step_[op]))
      if (const std::uint32_t storage = step_[output.tensor].storage.value(); is_inside(c, storage))
        storages.push_back(storage);
    std::sort(storages.begin(), storages.end());
    storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
    return storages;
  }

  std::uint32_t end_of(OpId op) const {
    std::uint32_t at = space_.index.begins[op.index()] + 1;
    while (t_.events[at].kind != EventKind::kEnd) ++at;
    return at;
  }

  void add_groups(const Candidate& c, UnitFacts& f) {
    for (std::uint32_t i = 0; i < c.choices.size(); ++i) {
      const Choice& choice = c.choices[i];
      if (choice.freedom == Freedom::kNeverSave) continue;
      if (choice.freedom == Freedom::kAlwaysSave) {
        f.always.push_back(i);
        continue;
      }
      UnitGroup group = look_at(c, f, choice);
      group.choice = i;
      f.groups.push_back(group);
    }
    const auto position = [&](const UnitGroup& g) {
      return space_.index.begins[c.choices[g.choice].savers[0].index()];
    };
    std::sort(f.groups.begin(), f.groups.end(),
              [&](const UnitGroup& a, const UnitGroup& b) { return position(a) < position(b); });
    // In the forward, a group's bytes count from when those of all groups before it do: later than in truth at most.
    std::uint32_t start = 0;
    for (UnitGroup& group : f.groups)
      if (group.kind == GroupKind::kSum) start = group.forward_start = std::max(start, group.forward_start);
    give_small_conditions(f);
  }

  // The largest ones stay conditions.
  void give_small_conditions(UnitFacts& f) {
    std::vector<UnitGroup*> conditions;
    for (UnitGroup& group : f.groups)
      if (group.kind == GroupKind::kCondition) conditions.push_back(&group);
    if (conditions.size() <= options_.max_conditions) return;
    std::stable_sort(conditions.begin(), conditions.end(),
                     [](const UnitGroup* a, const UnitGroup* b) { return a->bytes > b->bytes; });
    for (std::size_t i = options_.max_conditions; i < conditions.size(); ++i) {
      conditions[i]->kind = GroupKind::kGiven;
      ++problem_.given_count;
    }
    problem_.is_exact = false;
  }

  UnitGroup look_at(const Candidate& c, const UnitFacts& f, const Choice& choice) const {
    UnitGroup group;
    const OpId op = choice.savers.front();
    group.begin = space_.index.begins[op.index()];
    group.end = end_of(op);
    bool is_plain = choice.savers.size() == 1 && group.end < c.stop && c.trigger < c.frame_end && f.keeps_cache;
    bool is_there_anyway = true;
    for (const OpId saver : choice.savers) {
      const std::uint32_t end = end_of(saver);
      for (const std::uint32_t storage : cache_of(c, saver)) {
        if (space_.index.allocators[storage] != saver || m_.is_resized[storage] != 0) return condition(group);
        const Interval life = m_.fixed(storage).back();
        is_there_anyway =
            is_there_anyway && m_.fixed(storage).size() == 1 && life.end >= std::min(c.frame_end, m_.event_count);
        is_plain =
            is_plain && m_.fixed(storage).size() == 1 && life.end <= c.region.end && !is_held_outside(c, storage);
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

  static UnitGroup condition(UnitGroup group) {
    group.kind = GroupKind::kCondition;
    return group;
  }

  // Whether nothing that is allocated in the op, and is not in its cache, depends after the op on whether it runs
  // again: it is gone by then, or is packed right away, which makes it in a recompute too. (PyTorch keeps wrapped
  // numbers so.)
  bool leaves_nothing_else(const Candidate& c, OpId op, std::uint32_t end) const {
    const Storages cache = cache_of(c, op);
    for (std::uint32_t at = space_.index.begins[op.index()]; at < end; ++at) {
      if (t_.events[at].kind == EventKind::kPack) return false;
      if (t_.events[at].kind != EventKind::kAlloc || has(cache, t_.events[at].id)) continue;
      if (m_.fixed(t_.events[at].id).back().end <= end) continue;
      std::uint32_t pack = end + 1;
      while (pack < c.stop && t_.events[pack].kind == EventKind::kPack &&
             storage_of(t_.events[pack].id) != t_.events[at].id)
        ++pack;
      if (pack >= c.stop || t_.events[pack].kind != EventKind::kPack) return false;
    }
    return true;
  }

  // Whether a save packed outside the region keeps the storage.
  bool is_held_outside(const Candidate& c, std::uint32_t storage) const {
    const auto found = packs_of_.find(storage);
    if (found == packs_of_.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(),
                       [&](std::uint32_t at) { return !c.region.contains(at); });
  }

  // --- which storages several arcs may hold

  // How a storage is there by itself at the moments of later elements.
  enum class Later : std::uint8_t { kNotAtAll, kSometimes, kAlways };
  Later later(std::uint32_t storage, std::uint32_t element) const {
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

  // A moment of the forward does not matter when it lies below what certainly comes later, even if something was
  // counted twice there. That spares a state for every tensor that the program holds for a while longer than it must:
  // nearly all moments of the forward are such. The bound on what comes later is that of a problem in which every
  // shared tensor is held by someone else.
  void find_relevant() {
    relevant_before_.resize(std::size_t{m_.event_count} + 1);
    for (std::uint32_t at = 0; at <= m_.event_count; ++at) relevant_before_[at] = at;
    find_open();
    const bool was_exact = problem_.is_exact;
    mode_ = Mode::kAllHeld;
    plain_keep_.assign(m_.element_count(), 0);
    unit_keep_.assign(facts_.size(), std::numeric_limits<std::int64_t>::max());
    floor_before_.assign(m_.element_count() + 1, kNoPeak);
    for (std::size_t e = 0; e + 1 < m_.episode_begin.size(); ++e) {
      const std::uint32_t first = m_.episode_begin[e];
      const std::uint32_t end = m_.episode_begin[e + 1];
      const std::vector<std::int64_t> floors = find_floors(make_episode(first, end));
      for (std::uint32_t i = first + 1; i < end; ++i) floor_before_[i] = floors[i - first];
    }
    std::vector<std::uint8_t> is_relevant(m_.event_count, 0);
    for (const std::vector<std::uint32_t>& owned : m_.owned)
      for (const std::uint32_t at : owned) is_relevant[at] = 1;
    for (const Candidate& c : space_.candidates)
      if (c.trigger != kNever) is_relevant[c.trigger] = 1;
    mark_forward(is_relevant);
    problem_.is_exact = was_exact && !may_parked_matter_;
    for (std::uint32_t at = 0; at < m_.event_count; ++at)
      relevant_before_[at + 1] = relevant_before_[at] + is_relevant[at];
    for (Storages& open : open_) open.clear();
  }

  void mark_forward(std::vector<std::uint8_t>& is_relevant) {
    const auto floor_at = [&](std::uint32_t last_element) {
      const bool is_last =
          last_element + 1 == m_.element_count() || m_.episode_of[last_element] != m_.episode_of[last_element + 1];
      return is_last ? kNoPeak : floor_before_[last_element + 1];
    };
    const auto matters = [&](std::uint32_t at, std::int64_t value, std::int64_t later) {
      const bool may = value + m_.parked_at(at) > later;
      may_parked_matter_ = may_parked_matter_ || (may && m_.parked_at(at) > 0);
      return may;
    };
    std::vector<std::uint8_t> may_not_matter(m_.event_count, 1);
    for (std::uint32_t i = 0; i < m_.element_count(); ++i) {
      profile_.start(m_.owned[i], m_);
      for (const Hold& hold : plain_[i])
        profile_.add(without(hold.when, m_.fixed(hold.storage)), m_.bytes[hold.storage]);
      const std::vector<std::int64_t>& values = profile_.finish();
      for (std::size_t k = 0; k < values.size(); ++k)
        if (matters(m_.owned[i][k], values[k], plain_keep_[i] + floor_at(i))) may_not_matter[m_.owned[i][k]] = 0;
    }
    for (std::uint32_t u = 0; u < facts_.size(); ++u) {
      if (is_used_[u] == 0) continue;
      const Candidate& c = space_.candidates[u];
      moments_.clear();
      for (std::uint32_t at = c.region.begin - 1; at <= c.region.end; ++at) moments_.push_back(at);
      profile_.start(moments_, m_);
      Arc arc;
      Storages own;
      hold_inputs(c, facts_[u], {}, arc, own);
      add_holds(c);
      is_watched_ = facts_[u].has_watch;
      if (is_watched_) watch_forward(c);
      const std::vector<std::int64_t>& values = profile_.finish();
      for (std::size_t k = 0; k < values.size(); ++k)
        if (matters(moments_[k], values[k], unit_keep_[u] + floor_at(facts_[u].last_element)))
          may_not_matter[moments_[k]] = 0;
    }
    find_forward();
    for (std::uint32_t at = 0; at < m_.event_count; ++at)
      if (is_forward_[at] != 0 && may_not_matter[at] != 0) is_relevant[at] = 0;
  }

  void find_forward() {
    is_forward_.assign(m_.event_count, 0);
    PassId pass;
    for (std::uint32_t at = 0; at < m_.event_count; ++at) {
      if (t_.events[at].kind == EventKind::kPhase) pass = PassId(t_.events[at].id);
      if (!pass.has_value()) continue;
      is_forward_[at] = step_[pass].kind == PassKind::kForward || step_[pass].kind == PassKind::kLoss ? 1 : 0;
    }
  }

  void find_open() {
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
          for (const std::uint32_t storage : cache_of(space_.candidates[i], op))
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

  // Where there would be too many patterns, only the largest tensors keep a place in them. Each other one is counted
  // from its anchor on, an element that mostly holds it: by the arc over that element, as if all later arcs found it
  // held and earlier ones let go of it at their end. That is at most what is there on any path. False: all have theirs.
  bool find_anchors() {
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
          std::all_of(where.begin(), where.end(), [&](std::uint32_t i) { return kept[i] < options_.max_shared; });
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
  std::uint32_t anchor_of(std::uint32_t storage) const {
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

  // --- episodes

  struct Place {
    std::vector<Storages> patterns;  // what of the open storages is held, one per state
    std::map<Storages, std::uint32_t> number;
  };

  std::uint32_t pattern_at(std::vector<Place>& places, std::uint32_t place, std::uint32_t element, Storages held) {
    Place& p = places[place];
    if (mode_ == Mode::kAllHeld) held = place == 0 || place + 1 == places.size() ? Storages() : open_[element];
    const auto [found, is_new] = p.number.emplace(std::move(held), static_cast<std::uint32_t>(p.patterns.size()));
    if (!is_new) return found->second;
    if (p.patterns.size() + 1 < options_.max_patterns) {
      p.patterns.push_back(found->first);
      problem_.pattern_count = std::max(problem_.pattern_count, static_cast<std::int64_t>(p.patterns.size()));
      return found->second;
    }
    // Too many: as if everything were held, which later arcs then need not hold again.
    has_too_many_patterns_ = true;
    problem_.is_exact = false;
    p.number.erase(found);
    const auto [all, is_first] = p.number.emplace(open_[element], static_cast<std::uint32_t>(p.patterns.size()));
    if (is_first) p.patterns.push_back(all->first);
    return all->second;
  }

  Episode make_episode(std::uint32_t first, std::uint32_t end) {
    Episode episode;
    std::vector<Place> places(end - first + 1);
    if (mode_ == Mode::kAllHeld)  // one state per place, also where no path comes by
      for (std::uint32_t i = 0; i < places.size(); ++i) pattern_at(places, i, first + i, {});
    else
      pattern_at(places, 0, first, {});
    std::vector<std::uint32_t> offset(places.size() + 1, 0);
    for (std::uint32_t i = 0; i < places.size(); ++i) {
      offset[i + 1] = offset[i] + static_cast<std::uint32_t>(places[i].patterns.size());
      if (first + i == end) break;
      for (std::uint32_t p = 0; p < places[i].patterns.size(); ++p) {
        const Storages held = union_of(places[i].patterns[p], anchored_[first + i]);
        const std::uint32_t from = offset[i] + p;
        const auto add = [&](Arc arc, std::uint32_t last_element, Storages after) {
          arc.from = from;
          const std::uint32_t place = last_element + 1 - first;
          targets_.emplace_back(place, pattern_at(places, place, last_element + 1, std::move(after)));
          episode.arcs.push_back(std::move(arc));
          if (has_forward_) forward_arcs_.push_back(std::move(forward_arc_));
        };
        add_plain(first + i, held, add);
        for (const std::uint32_t u : starting_[first + i])
          if (facts_[u].last_element < end) add_unit(u, held, add);
      }
    }
    for (std::size_t i = 0; i < episode.arcs.size(); ++i)
      episode.arcs[i].to = offset[targets_[i].first] + targets_[i].second;
    targets_.clear();
    episode.state_count = offset[places.size() - 1] + 1;
    episode.first_arc.assign(episode.state_count + 1, 0);
    for (const Arc& arc : episode.arcs) ++episode.first_arc[arc.from + 1];
    for (std::uint32_t i = 0; i < episode.state_count; ++i) episode.first_arc[i + 1] += episode.first_arc[i];
    return episode;
  }

  // What is held after an arc that holds `own` besides `held`, of what is open there.
  Storages held_after(const Storages& held, const Storages& own, std::uint32_t last_element) const {
    Storages after;
    for (const std::uint32_t storage : open_[last_element + 1])
      if (has(held, storage) || has(own, storage)) after.push_back(storage);
    return after;
  }

  // Takes out what is counted twice: held by earlier arcs, and there anyway.
  void subtract_held(Profile& profile, const Storages& held) const {
    for (const std::uint32_t storage : held) profile.add(m_.fixed(storage), -m_.bytes[storage]);
  }

  template <class Add>
  void add_plain(std::uint32_t element, const Storages& held, const Add& add) {
    Arc arc;
    Storages own;
    unparked_keep_ = 0;
    profile_.start(m_.owned[element], m_);
    subtract_held(profile_, held);
    for (const Hold& hold : plain_[element]) {
      // Also where an earlier arc holds it: that one may let go first.
      if (hold.when.back().end > m_.first_below[element]) problem_.is_exact = false;
      if (has(held, hold.storage)) continue;
      profile_.add(without(hold.when, m_.fixed(hold.storage)), m_.bytes[hold.storage]);
      keep(arc, own, hold.storage, hold.when.back().end, element, element);
    }
    for (const std::int64_t value : profile_.finish()) arc.tail_bytes = std::max(arc.tail_bytes, value);
    if (has_forward_) find_forward_of_plain(element, held);
    std::sort(own.begin(), own.end());
    if (mode_ == Mode::kAllHeld) plain_keep_[element] = arc.keep_bytes;
    add(std::move(arc), element, held_after(held, own, element));
  }

  // --- arcs of the forward, with everything that is parked

  // Whether all that was parked in the episode is still there.
  bool is_parking_time(std::uint32_t at, std::uint32_t element) const {
    const std::uint32_t begin = m_.element_begin[m_.episode_begin[m_.episode_of[element]]];
    return is_forward_[at] != 0 && m_.left_before[at] == (begin == 0 ? 0 : m_.left_before[begin - 1]);
  }

  // What was parked from the beginning of an element up to a moment.
  std::int64_t parked_since(std::uint32_t element, std::uint32_t at) const {
    const std::uint32_t begin = m_.element_begin[element];
    return m_.parked_before[at] - (begin == 0 ? 0 : m_.parked_before[begin - 1]);
  }

  std::int64_t parked_in(std::uint32_t first_element, std::uint32_t last_element) const {
    return parked_since(first_element, m_.element_begin[last_element + 1] - 1);
  }

  void add_unparked(std::span<const Hold> holds, const Storages& held) {
    for (const Hold& hold : holds)
      if (m_.is_parked[hold.storage] == 0 && !has(held, hold.storage))
        profile_.add(without(hold.when, m_.fixed(hold.storage)), m_.bytes[hold.storage]);
    for (const std::uint32_t storage : held)
      if (m_.is_parked[storage] == 0) profile_.add(m_.fixed(storage), -m_.bytes[storage]);
  }

  void find_forward_of_plain(std::uint32_t element, const Storages& held) {
    forward_arc_ = {};
    forward_arc_.keep_bytes = unparked_keep_ + parked_in(element, element);
    moments_.clear();
    for (const std::uint32_t at : m_.owned[element])
      if (is_parking_time(at, element)) moments_.push_back(at);
    profile_.start(moments_, m_);
    add_unparked(plain_[element], held);
    const std::vector<std::int64_t>& values = profile_.finish();
    for (std::size_t i = 0; i < values.size(); ++i)
      forward_arc_.tail_bytes = std::max(forward_arc_.tail_bytes, values[i] + parked_since(element, moments_[i]));
  }

  void find_forward_of_unit(const Candidate& c, const UnitFacts& f, const Storages& held, const Arc& arc) {
    forward_arc_ = arc;
    forward_arc_.tail_bytes = kNoPeak;
    forward_arc_.before.assign(arc.before.size(), {});
    forward_arc_.keep_bytes = unparked_keep_ + parked_in(f.first_element, f.last_element);
    for (std::size_t j = 0; j < arc.groups.size(); ++j) {
      forward_arc_.groups[j].inside_bytes = kNoPeak;
      forward_arc_.groups[j].bytes = sums_[j].unparked_bytes;
    }
    moments_.clear();
    for (std::uint32_t at = c.region.begin - 1; at <= c.region.end; ++at) moments_.push_back(at);
    profile_.start(moments_, m_);
    add_unparked(holds_, {});
    add_unparked({}, held);
    if (c.preserve_rng) profile_.add({{frame_}}, rng_bytes());
    if (is_watched_) watch_forward(c);
    const std::vector<std::int64_t>& values = profile_.finish();
    for (std::size_t i = 0, group = 0; i < values.size(); ++i) {
      while (group < sums_.size() && sums_[group].forward_start <= moments_[i]) ++group;
      if (!is_parking_time(moments_[i], f.first_element)) continue;
      std::int64_t& most = forward_arc_.before[group].forward_bytes;
      most = std::max(most, values[i] + parked_since(f.first_element, moments_[i]));
    }
  }

  // The arc holds a storage until `end`: what that means for later arcs.
  void keep(Arc& arc, Storages& own, std::uint32_t storage, std::uint32_t end, std::uint32_t first_element,
            std::uint32_t last_element) {
    if (end > m_.first_below[first_element]) problem_.is_exact = false;
    if (end <= m_.last_later[last_element]) {
      if (end > m_.element_begin[last_element + 1]) problem_.is_exact = false;
      return;
    }
    if (later(storage, last_element) == Later::kAlways) return;
    if (const auto anchor = anchors_.find(storage);
        anchor != anchors_.end() && (anchor->second < first_element || anchor->second > last_element))
      return;
    arc.keep_bytes += m_.bytes[storage];
    if (m_.is_parked[storage] == 0) unparked_keep_ += m_.bytes[storage];
    own.push_back(storage);
  }

  // --- units

  template <class Add>
  void add_unit(std::uint32_t u, const Storages& held, const Add& add) {
    const UnitFacts& f = facts_[u];
    std::vector<std::uint32_t> conditions;
    std::vector<std::uint32_t> certain = f.always;
    for (const UnitGroup& group : f.groups) {
      if (group.kind == GroupKind::kCondition) conditions.push_back(group.choice);
      if (group.kind == GroupKind::kFree) certain.push_back(group.choice);
    }
    if (f.has_watch && f.always.empty()) add_unit_arc(u, held, {}, false, add);
    for (std::uint32_t bits = 0; bits < (std::uint32_t{1} << conditions.size()); ++bits) {
      std::vector<std::uint32_t> saved = certain;
      for (std::size_t i = 0; i < conditions.size(); ++i)
        if ((bits >> i & 1) != 0) saved.push_back(conditions[i]);
      std::sort(saved.begin(), saved.end());
      add_unit_arc(u, held, saved, true, add);
    }
  }

  // `is_watched`: some group is saved, or it makes no difference.
  template <class Add>
  void add_unit_arc(std::uint32_t u, const Storages& held, const std::vector<std::uint32_t>& saved, bool is_watched,
                    const Add& add) {
    const Candidate& c = space_.candidates[u];
    const UnitFacts& f = facts_[u];
    Arc arc;
    arc.candidate = u;
    arc.always_saved = saved;
    arc.base_ps = c.base_ps;
    is_watched_ = is_watched && f.has_watch;
    std::vector<std::uint8_t> is_saved(c.choices.size(), 0);
    for (const std::uint32_t choice : saved) is_saved[choice] = 1;
    for (const UnitGroup& group : f.groups) {
      if (is_saved[group.choice] != 0) continue;
      if (group.kind == GroupKind::kGiven && is_watched) {
        arc.always_saved.push_back(group.choice);
        continue;
      }
      const std::int64_t time_ps = c.choices[group.choice].time_ps;
      if (group.kind != GroupKind::kSum || !is_watched)
        arc.base_ps += time_ps;
      else
        arc.groups.push_back({group.bytes, time_ps, kNoPeak, group.choice});
    }
    std::sort(arc.always_saved.begin(), arc.always_saved.end());
    arc.needs_saved = f.has_watch && is_watched && arc.always_saved.empty();
    if (arc.needs_saved && arc.groups.empty()) return;
    sums_.clear();
    if (is_watched)
      for (const UnitGroup& group : f.groups)
        if (group.kind == GroupKind::kSum && is_saved[group.choice] == 0) sums_.push_back(group);
    arc.before.resize(arc.groups.size() + 1);
    Storages own;
    unparked_keep_ = 0;
    hold_inputs(c, f, held, arc, own);
    hold_caches(c, f, saved, arc, own);
    give(c, f, is_watched);
    backward(c, f, held, arc);
    forward(c, held, arc);
    if (has_forward_) find_forward_of_unit(c, f, held, arc);
    forget_what_cannot_matter(arc);
    if (mode_ == Mode::kAllHeld) unit_keep_[u] = std::min(unit_keep_[u], arc.keep_bytes);
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    add(std::move(arc), f.last_element, held_after(held, own, f.last_element));
  }

  // What the frame holds: inputs, the RNG state.
  void hold_inputs(const Candidate& c, const UnitFacts& f, const Storages& held, Arc& arc, Storages& own) {
    holds_.clear();
    frame_ = {c.region.begin - 1, std::min(c.frame_end, m_.event_count)};
    for (const std::uint32_t storage : f.inputs) {
      if (has(held, storage)) continue;
      holds_.push_back({storage, without({{frame_}}, m_.fixed(storage))});
      keep(arc, own, storage, frame_.end, f.first_element, f.last_element);
    }
    if (!c.preserve_rng || !f.keeps) return;
    arc.keep_bytes += rng_bytes();
    unparked_keep_ += rng_bytes();
  }

  // What it holds of the ops that are saved on this arc.
  void hold_caches(const Candidate& c, const UnitFacts& f, const std::vector<std::uint32_t>& saved, Arc& arc,
                   Storages& own) {
    for (const std::uint32_t storage : cached_) is_cached_[storage] = 0;
    cached_.clear();
    is_cached_.resize(t_.storages.size(), 0);
    is_saved_op_.resize(t_.ops.size(), 0);
    for (const OpId op : saved_ops_) is_saved_op_[op.index()] = 0;
    saved_ops_.clear();
    std::map<std::uint32_t, std::vector<Interval>> when;
    for (const std::uint32_t choice : saved)
      for (const OpId op : c.choices[choice].savers) {
        is_saved_op_[op.index()] = 1;
        saved_ops_.push_back(op);
        const std::uint32_t end = end_of(op);
        const bool is_reached = c.trigger != kNever && end < c.stop;
        for (const std::uint32_t storage : cache_of(c, op)) {
          if (m_.is_resized[storage] != 0) {
            problem_.is_exact = false;
            continue;
          }
          when[storage].push_back({end, is_reached ? std::min(c.trigger, frame_.end) : frame_.end});
          if (space_.index.allocators[storage] != op) continue;
          is_cached_[storage] = 1;
          cached_.push_back(storage);
        }
      }
    for (auto& [storage, intervals] : when) {
      const std::vector<Interval> held = union_of(std::move(intervals));
      if (held.empty()) continue;
      holds_.push_back({storage, without(held, m_.fixed(storage))});
      // Its first moment after the region may be long after it was made; what counts is that it is there from then on.
      keep(arc, own, storage, held.back().end, f.first_element, f.last_element);
    }
  }

  // What is saved for nothing on this arc.
  void give(const Candidate& c, const UnitFacts& f, bool is_watched) {
    is_given_.resize(t_.storages.size(), 0);
    is_given_op_.resize(t_.ops.size(), 0);
    for (const std::uint32_t storage : given_) is_given_[storage] = 0;
    for (const OpId op : given_ops_) is_given_op_[op.index()] = 0;
    given_.clear();
    given_ops_.clear();
    if (!is_watched) return;
    for (const UnitGroup& group : f.groups) {
      if (group.kind != GroupKind::kGiven) continue;
      for (const OpId op : c.choices[group.choice].savers) {
        is_given_op_[op.index()] = 1;
        given_ops_.push_back(op);
        for (const std::uint32_t storage : cache_of(c, op)) {
          if (space_.index.allocators[storage] != op) continue;
          is_given_[storage] = 1;
          given_.push_back(storage);
        }
      }
    }
  }

  void add_holds(const Candidate& c) {
    for (const Hold& hold : holds_) profile_.add(hold.when, m_.bytes[hold.storage]);
    if (c.preserve_rng) profile_.add({{frame_}}, rng_bytes());
  }

  // After backward(), which says what the arc's peak is at least.
  void forward(const Candidate& c, const Storages& held, Arc& arc) {
    moments_.clear();
    for (std::uint32_t at = c.region.begin - 1; at <= c.region.end; ++at) moments_.push_back(at);
    profile_.start(moments_, m_);
    subtract_held(profile_, held);
    add_holds(c);
    if (is_watched_) watch_forward(c);
    const std::vector<std::int64_t>& values = profile_.finish();
    std::vector<std::pair<std::uint32_t, std::int64_t>> starts;  // of what may be saved, tensor by tensor
    for (const UnitGroup& group : sums_) starts.insert(starts.end(), group.starts.begin(), group.starts.end());
    std::sort(starts.begin(), starts.end());
    std::vector<std::int64_t> most_saved(values.size());  // what may be held in truth
    std::vector<std::int64_t> counted(values.size());     // and what is counted: a group from when all before it are
    std::vector<std::size_t> gap(values.size());
    for (std::size_t i = 0, next = 0, group = 0; i < values.size(); ++i) {
      if (i > 0) {
        most_saved[i] = most_saved[i - 1];
        counted[i] = counted[i - 1];
      }
      while (next < starts.size() && starts[next].first <= moments_[i]) most_saved[i] += starts[next++].second;
      while (group < sums_.size() && sums_[group].forward_start <= moments_[i]) counted[i] += sums_[group++].bytes;
      gap[i] = group;
    }
    // Where less is counted than may be held, a later moment with everything counted may be as high all the same.
    std::int64_t later_most = kNoPeak;
    for (std::size_t i = values.size(); i-- > 0;) {
      if (counted[i] == most_saved[i]) later_most = std::max(later_most, values[i]);
      if (values[i] + most_saved[i] <= arc.tail_bytes) continue;
      if (values[i] > later_most) problem_.is_exact = false;
      std::int64_t& most = arc.before[gap[i]].forward_bytes;
      most = std::max(most, values[i]);
    }
  }

  // Leaves out what is below the arc's peak whatever is saved.
  static void forget_what_cannot_matter(Arc& arc) {
    std::int64_t after = 0;  // bytes of this group and those after it
    for (std::size_t j = arc.groups.size(); j-- > 0;) {
      std::int64_t& inside = arc.groups[j].inside_bytes;
      if (inside + after <= arc.tail_bytes) inside = kNoPeak;
      after += arc.groups[j].bytes;
      std::int64_t& recompute = arc.before[j].recompute_bytes;
      if (recompute + after <= arc.tail_bytes) recompute = kNoPeak;
    }
    std::int64_t before = 0;
    for (std::size_t j = 0; j < arc.before.size(); ++j) {
      if (arc.before[j].forward_bytes + before <= arc.tail_bytes) arc.before[j].forward_bytes = kNoPeak;
      if (j < arc.groups.size()) before += arc.groups[j].bytes;
    }
    if (arc.before.back().recompute_bytes <= arc.tail_bytes) arc.before.back().recompute_bytes = kNoPeak;
  }

  // Under a dispatch mode some ops have other workspace.
  void watch_forward(const Candidate& c) {
    for (std::uint32_t at = c.region.begin; at < c.region.end; ++at) {
      if (t_.events[at].kind != EventKind::kBegin) continue;
      const OpId op(t_.events[at].id);
      const bool is_unwatched = t_.ops[op.index()].flags.has(OpFlag::kUnwatched);
      if (!is_unwatched && (rows_.empty() || rows_[op.index()] == watched_rows_[op.index()])) continue;
      run_row(op, [](std::uint32_t) {});
      const std::uint32_t end = end_of(op);
      std::size_t next = 0;
      for (std::uint32_t i = at; i < end; ++i) {
        if (i > at && t_.events[i].kind == EventKind::kAlloc && row_.is_made[next++] != 0)
          row_.extra -= m_.bytes[t_.events[i].id];
        profile_.replace(i - (c.region.begin - 1), m_.level[i] + (i == at ? row_.peak : row_.extra));
      }
    }
  }

  struct Row {
    std::int64_t extra = 0;  // hidden bytes, and those of alloc events that have been made to happen
    std::int64_t hidden = 0;
    std::int64_t peak = 0;
    std::vector<std::uint8_t> is_made;
  };

  // The begin of an op in the region of a unit. `make` is told of allocs that happen now.
  template <class Make>
  void run_row(OpId op, const Make& make) {
    row_ = {};
    std::vector<std::uint32_t> allocs;
    for (std::uint32_t at = space_.index.begins[op.index()] + 1; t_.events[at].kind != EventKind::kEnd; ++at)
      if (t_.events[at].kind == EventKind::kAlloc) allocs.push_back(t_.events[at].id);
    row_.is_made.assign(allocs.size(), 0);
    if (is_watched_ && t_.ops[op.index()].flags.has(OpFlag::kUnwatched)) {
      const std::uint32_t written = step_[step_.outputs(step_[op]).front().tensor].storage.value();
      row_.hidden = row_.extra = row_.peak = m_.is_resized[written] != 0 ? 0 : m_.bytes[written];
      return;
    }
    const std::vector<std::uint32_t>& rows = is_watched_ ? watched_rows_ : rows_;
    if (rows.empty() || rows[op.index()] == memory::kNoRow) return;
    std::vector<std::int64_t> hidden;
    for (const memory::WorkspaceStep& s : options_.workspace->rows[rows[op.index()]].steps) {
      const auto value = static_cast<std::size_t>(s.value);
      if (s.kind == memory::WorkspaceStepKind::kTake) {
        hidden.push_back(round_up(s.value, options_.round_to_bytes));
        row_.hidden += hidden.back();
        row_.extra += hidden.back();
      } else if (s.kind == memory::WorkspaceStepKind::kGive) {
        row_.hidden -= hidden[value];
        row_.extra -= hidden[value];
        hidden[value] = 0;
      } else if (value < allocs.size() && row_.is_made[value] == 0) {
        row_.is_made[value] = 1;
        row_.extra += m_.bytes[allocs[value]];
        make(allocs[value]);
      }
      row_.peak = std::max(row_.peak, row_.extra);
    }
  }

  void backward(const Candidate& c, const UnitFacts& f, const Storages& held, Arc& arc) {
    moments_ = f.backward;
    const bool is_recomputed = c.trigger != kNever;
    if (is_recomputed && c.trigger > 0) {  // the recompute starts from what is there before its trigger
      const auto at = std::lower_bound(moments_.begin(), moments_.end(), c.trigger - 1);
      if (at == moments_.end() || *at != c.trigger - 1) moments_.insert(at, c.trigger - 1);
    }
    profile_.start(moments_, m_);
    subtract_held(profile_, held);
    add_holds(c);
    if (is_recomputed) add_recomputed(c, f);
    const std::vector<std::int64_t>& values = profile_.finish();
    std::int64_t at_trigger = kNoPeak;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (is_recomputed && moments_[i] >= c.trigger) {
        arc.tail_bytes = std::max(arc.tail_bytes, values[i]);
      } else {
        // With an op that takes workspace at its begin, what is left of it is there at the trigger.
        if (is_recomputed && moments_[i] == c.trigger - 1)
          at_trigger = values[i] - m_.extra_peak[moments_[i]] + m_.extra_after[moments_[i]];
        arc.before[0].recompute_bytes = std::max(arc.before[0].recompute_bytes, values[i]);
      }
    }
    if (is_recomputed) recompute(c, at_trigger, arc);
  }

  // After the recompute: what it made for the unit's saves, until each is handed over and dropped.
  void add_recomputed(const Candidate& c, const UnitFacts& f) {
    std::map<std::uint32_t, std::vector<Interval>> when;
    for (const std::uint32_t save : f.saves) {
      const std::uint32_t storage = storage_of(save);
      const std::uint32_t made = space_.index.allocs[storage];
      if (made == kNever || made < c.region.begin || m_.is_resized[storage] != 0) continue;
      const std::uint32_t first = m_.unpacked[save].empty() ? m_.event_count : m_.unpacked[save].front().begin;
      std::vector<Interval>& list = when[storage];
      if (m_.released[save] > c.trigger)
        list.push_back({c.trigger, std::min({first, m_.released[save], m_.event_count})});
      list.insert(list.end(), m_.unpacked[save].begin(), m_.unpacked[save].end());
    }
    for (auto& [storage, list] : when) {
      std::vector<Interval> alive = union_of(std::move(list));
      if (is_cached_[storage] != 0 || is_given_[storage] != 0) alive = without(alive, m_.fixed(storage));
      profile_.add(alive, m_.bytes[storage]);
    }
  }

  // Runs the region again on top of `start_bytes`.
  void recompute(const Candidate& c, std::int64_t start_bytes, Arc& arc) {
    total_ = start_bytes + (c.preserve_rng ? rng_bytes() : 0);
    trigger_ = c.trigger;
    for (const std::uint32_t storage : cached_) {
      copy_holders_[storage] = 1;  // the cache
      touched_.push_back(storage);
    }
    std::size_t gap = 0;
    std::int64_t* most = &arc.before[0].recompute_bytes;
    *most = std::max(*most, total_);
    OpId running;
    std::int64_t extra = 0;
    std::size_t next_alloc = 0;
    const auto note = [&](std::int64_t on_top) { *most = std::max(*most, total_ + on_top); };
    for (std::uint32_t at = c.region.begin; at < c.stop; ++at) {
      const std::uint32_t id = t_.events[at].id;
      switch (t_.events[at].kind) {
        case EventKind::kBegin: {
          running = OpId(id);
          next_alloc = 0;
          row_ = {};
          if (gap < sums_.size() && sums_[gap].begin == at) most = &arc.groups[gap].inside_bytes;
          if (is_saved_op_[id] != 0 || is_given_op_[id] != 0) break;
          const std::int64_t before = total_;
          run_row(running, [&](std::uint32_t storage) { take(storage); });
          note(0);  // made early, all of it
          // On the way some workspace may have been larger; what was made early is in both.
          *most = std::max(*most, before + row_.peak);
          extra = row_.hidden;
          note(extra);
          break;
        }
        case EventKind::kEnd:
          extra = 0;
          if (is_saved_op_[id] != 0) drop_cache(c, OpId(id));
          if (gap < sums_.size() && sums_[gap].end == at) most = &arc.before[++gap].recompute_bytes;
          running = {};
          note(0);
          break;
        case EventKind::kAlloc: {
          const bool is_made = running.has_value() && is_saved_op_[running.index()] == 0 &&
                               next_alloc < row_.is_made.size() && row_.is_made[next_alloc] != 0;
          ++next_alloc;
          const bool is_skipped = running.has_value() && ((is_saved_op_[running.index()] != 0 && is_cached_[id] == 0) ||
                                                          (is_given_op_[running.index()] != 0 && is_given_[id] == 0));
          if (!is_made && !is_skipped) take(id);
          note(extra);
          break;
        }
        case EventKind::kFree:
          if (const auto found = taken_.find(id); found != taken_.end()) {
            taken_.erase(found);
            drop(id);
          }
          break;
        case EventKind::kPack:
          if (is_inside(c, storage_of(id))) {
            hold(storage_of(id));
            if (!t_.saves[id].hooked || m_.released[id] < c.trigger) graph_.emplace(id, true);
          }
          note(extra);
          break;
        case EventKind::kRelease:
          if (graph_.erase(id) != 0) drop(storage_of(id));
          break;
        default:
          break;
      }
    }
    for (const std::uint32_t storage : touched_) copy_holders_[storage] = 0;
    touched_.clear();
    taken_.clear();
    graph_.clear();
  }

  bool is_inside(const Candidate& c, std::uint32_t storage) const {
    const std::uint32_t made = space_.index.allocs[storage];
    return made != kNever && made >= c.region.begin && made < c.region.end;
  }

  void take(std::uint32_t storage) {
    taken_.emplace(storage, true);
    hold(storage);
  }

  std::int64_t counted_bytes(std::uint32_t storage) const {
    if (m_.is_resized[storage] != 0) return 0;
    if ((is_cached_[storage] != 0 || is_given_[storage] != 0) && m_.is_fixed_at(storage, trigger_)) return 0;
    return m_.bytes[storage];
  }

  void hold(std::uint32_t storage) {
    touched_.push_back(storage);
    if (copy_holders_[storage]++ == 0) total_ += counted_bytes(storage);
  }

  void drop(std::uint32_t storage) {
    if (copy_holders_[storage] > 0 && --copy_holders_[storage] == 0) total_ -= counted_bytes(storage);
  }

  void drop_cache(const Candidate& c, OpId op) {
    for (const std::uint32_t storage : cache_of(c, op))
      if (space_.index.allocators[storage] == op && is_cached_[storage] != 0) drop(storage);
  }

  enum class Mode : std::uint8_t { kAllHeld, kReal };

  const Step& step_;
  const StepTables& t_;
  const Space& space_;
  Mode mode_ = Mode::kReal;
  bool may_parked_matter_ = false;
  bool has_forward_ = false;                    // arcs of the forward are made, too
  std::vector<std::uint8_t> is_forward_;        // by event
  std::vector<std::uint8_t> is_used_;           // by candidate
  std::vector<std::uint32_t> relevant_before_;  // by event: how many moments before it matter
  std::vector<std::int64_t> plain_keep_;        // by element: with everything shared held by others
  std::vector<std::int64_t> unit_keep_;         // by candidate
  std::vector<std::int64_t> floor_before_;      // by element: a bound on the peak from there on
  const ProblemOptions& options_;
  Moments m_;
  Problem problem_;
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> watched_rows_;
  std::vector<std::vector<Hold>> plain_;                          // by element
  std::map<std::uint32_t, std::vector<std::uint32_t>> packs_of_;  // by storage: events of hooked packs
  std::vector<UnitFacts> facts_;                                  // by candidate
  std::vector<std::vector<std::uint32_t>> starting_;              // by element: candidates
  std::vector<Storages> open_;                                    // by place
  bool has_too_many_patterns_ = false;
  std::map<std::uint32_t, std::uint32_t> anchors_;  // by storage that has no place in patterns
  std::vector<Storages> anchored_;                  // by place: those whose anchors lie before it

  // Of the arc that is being made.
  Profile profile_;
  std::vector<std::uint32_t> moments_;
  std::vector<Hold> holds_;
  Interval frame_;
  std::vector<UnitGroup> sums_;          // the arc's groups
  std::vector<std::uint8_t> is_cached_;  // by storage: saved on this arc
  std::vector<std::uint32_t> cached_;
  std::vector<std::uint8_t> is_saved_op_;  // by op
  std::vector<OpId> saved_ops_;
  std::vector<std::uint8_t> is_given_;  // the same of what is saved for nothing
  std::vector<std::uint32_t> given_;
  std::vector<std::uint8_t> is_given_op_;
  std::vector<OpId> given_ops_;
  bool is_watched_ = false;
  Row row_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> targets_;  // by arc: place and pattern
  std::int64_t unparked_keep_ = 0;                                // the arc keeps, besides what is parked
  Arc forward_arc_;
  std::vector<Arc> forward_arcs_;  // of the episode

  // Of the recompute that is being run.
  std::int64_t total_ = 0;
  std::uint32_t trigger_ = 0;
  std::vector<std::uint32_t> copy_holders_;
  std::vector<std::uint32_t> touched_;
  std::map<std::uint32_t, bool> taken_;
  std::map<std::uint32_t, bool> graph_;
};

}  // namespace

Problem build_problem(const Step& step, const Space& space, const ProblemOptions& options) {
  return Builder(step, space, options).run();
}

bool is_small_step(const Step& step, const Space& space) {
  constexpr std::size_t kFewEvents = 1000;
  constexpr std::size_t kFewCandidates = 12;
  return step.tables().events.size() <= kFewEvents && space.candidates.size() <= kFewCandidates;
}

Problem build_sharpest_problem(const Step& step, const Space& space, const ProblemOptions& options) {
  constexpr std::size_t kManyConditions = 11;
  constexpr std::size_t kManyParked = 25;
  const auto build = [&](bool cut_parked, std::size_t least_parked, std::size_t max_conditions) {
    ProblemOptions changed = options;
    changed.cut_parked = cut_parked;
    changed.least_parked = least_parked;
    changed.max_conditions = max_conditions;
    return build_problem(step, space, changed);
  };
  // Few parked tensors can be tried both ways, which says more of them.
  Problem problem = build(true, kManyParked, options.max_conditions);
  if (problem.given_count == 0) return problem;
  const bool is_small = is_small_step(step, space);
  if (is_small) problem = build(false, 1, kManyConditions);
  if (problem.given_count == 0) return problem;
  Problem cut = build(true, 1, is_small ? kManyConditions : options.max_conditions);
  return cut.given_count < problem.given_count ? cut : problem;
}

}  // namespace tidemark::planner
