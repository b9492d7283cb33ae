#include "tidemark/planner/build_problem.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "tidemark/base/rounding.h"
#include "tidemark/memory/replay.h"
#include "tidemark/planner/floors.h"
#include "tidemark/planner/moments.h"
#include "tidemark/planner/op_workspace.h"
#include "tidemark/planner/profile.h"
#include "tidemark/planner/recompute_run.h"
#include "tidemark/planner/shared_tensors.h"
#include "tidemark/planner/step_view.h"
#include "tidemark/planner/unit_facts.h"

namespace tidemark::planner {

namespace {

using namespace step;

constexpr std::uint32_t kNever = plan::EventIndex::kNever;

// Whether autograd keeps anything for the call that was made in it. If not, the unit would hold all that plain ops
// hold, and run again on top.
bool can_spare_bytes(const Step& step, const Space& space, const Candidate& c) {
  const StepTables& t = step.tables();
  for (std::uint32_t at = c.region.begin; at < c.region.end; ++at) {
    if (t.events[at].kind != EventKind::kPack || !t.saves[t.events[at].id].hooked) continue;
    const std::uint32_t made = space.index.allocs[step[t.saves[t.events[at].id].tensor].storage.index()];
    if (made != kNever && made >= c.region.begin) return true;
  }
  return false;
}

// By candidate.
std::vector<std::uint8_t> find_used(const Step& step, const Space& space) {
  std::vector<std::uint8_t> is_used;
  for (const Candidate& c : space.candidates) is_used.push_back(can_spare_bytes(step, space, c) ? 1 : 0);
  return is_used;
}

class Builder {
 public:
  Builder(const Step& step, const Space& space, const ProblemOptions& options)
      : step_(step),
        t_(step.tables()),
        space_(space),
        options_(options),
        is_used_(find_used(step, space)),
        m_(find_moments(step, space, is_used_,
                        {.workspace = options.workspace,
                         .round_to_bytes = options.round_to_bytes,
                         .cut_parked = options.cut_parked,
                         .least_parked = options.least_parked})),
        view_(step, space, m_),
        workspace_(view_, options.workspace, options.round_to_bytes),
        facts_(space.candidates.size()),
        shared_(view_, plain_, facts_, is_used_),
        saved_(view_),
        recompute_(view_, workspace_) {}

  Problem run() {
    problem_.ground_bytes = m_.ground_bytes;
    find_plain_holds();
    read_units();
    find_relevant();
    shared_.find_open();
    mode_ = Mode::kReal;
    has_forward_ = may_parked_matter_;
    make_episodes();
    if (has_too_many_patterns_ && shared_.find_anchors(options_.max_shared)) {
      shared_.find_open();
      make_episodes();
    }
    return std::move(problem_);
  }

 private:
  void read_units() {
    UnitReader reader(view_, workspace_, {.max_conditions = options_.max_conditions});
    starting_.resize(m_.element_count());
    for (std::uint32_t i = 0; i < facts_.size(); ++i) {
      if (is_used_[i] == 0) continue;
      facts_[i] = reader.read(space_.candidates[i]);
      starting_[facts_[i].first_element].push_back(i);
    }
    problem_.is_exact = problem_.is_exact && reader.is_exact();
    problem_.given_count = reader.given_count();
  }

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

  std::int64_t rng_bytes() const { return round_up(memory::kRngStateBytes, options_.round_to_bytes); }

  // --- what plain elements hold

  void find_plain_holds() {
    plain_.resize(m_.element_count());
    std::vector<std::map<std::uint32_t, std::vector<Interval>>> found(m_.element_count());
    for (std::uint32_t i = 0; i < t_.saves.size(); ++i) {
      if (!t_.saves[i].hooked || m_.packed[i] == kNever) continue;
      const std::uint32_t storage = view_.storage_of(i);
      if (m_.is_always_fixed(storage)) continue;
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

  // --- which moments matter

  // A moment of the forward does not matter when it lies below what certainly comes later, even if something was
  // counted twice there. That spares a state for every tensor that the program holds for a while longer than it must:
  // nearly all moments of the forward are such. The bound on what comes later is that of a problem in which every
  // shared tensor is held by someone else.
  void find_relevant() {
    shared_.find_open();
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
    shared_.set_relevant(is_relevant);
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

  // --- episodes

  struct Place {
    std::vector<Storages> patterns;  // what of the open storages is held, one per state
    std::map<Storages, std::uint32_t> number;
  };

  std::uint32_t pattern_at(std::vector<Place>& places, std::uint32_t place, std::uint32_t element, Storages held) {
    Place& p = places[place];
    if (mode_ == Mode::kAllHeld) held = place == 0 || place + 1 == places.size() ? Storages() : shared_.open(element);
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
    const auto [all, is_first] = p.number.emplace(shared_.open(element), static_cast<std::uint32_t>(p.patterns.size()));
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
        const Storages held = union_of(places[i].patterns[p], shared_.anchored(first + i));
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
    for (const std::uint32_t storage : shared_.open(last_element + 1))
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
    if (shared_.later(storage, last_element) == Later::kAlways) return;
    if (!shared_.is_counted(storage, first_element, last_element)) return;
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
    if (is_watched) give(c, f);
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
    saved_.clear();
    std::map<std::uint32_t, std::vector<Interval>> when;
    for (const std::uint32_t choice : saved)
      for (const OpId op : c.choices[choice].savers) {
        saved_.save_op(op);
        const std::uint32_t end = view_.end_of(op);
        const bool is_reached = c.trigger != kNever && end < c.stop;
        for (const std::uint32_t storage : view_.cache_of(c, op)) {
          if (m_.is_resized[storage] != 0) {
            problem_.is_exact = false;
            continue;
          }
          when[storage].push_back({end, is_reached ? std::min(c.trigger, frame_.end) : frame_.end});
          if (space_.index.allocators[storage] == op) saved_.save_storage(storage);
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
  void give(const Candidate& c, const UnitFacts& f) {
    for (const UnitGroup& group : f.groups) {
      if (group.kind != GroupKind::kGiven) continue;
      for (const OpId op : c.choices[group.choice].savers) {
        saved_.give_op(op);
        for (const std::uint32_t storage : view_.cache_of(c, op))
          if (space_.index.allocators[storage] == op) saved_.give_storage(storage);
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
      if (!workspace_.is_changed_by_watch(op)) continue;
      OpScratch scratch = workspace_.at_begin(op, is_watched_);
      const std::uint32_t end = view_.end_of(op);
      std::size_t next = 0;
      for (std::uint32_t i = at; i < end; ++i) {
        if (i > at && t_.events[i].kind == EventKind::kAlloc && next < scratch.is_made.size() &&
            scratch.is_made[next++] != 0)
          scratch.extra -= m_.bytes[t_.events[i].id];
        profile_.replace(i - (c.region.begin - 1), m_.level[i] + (i == at ? scratch.peak : scratch.extra));
      }
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
    if (is_recomputed)
      recompute_.run(c, at_trigger + (c.preserve_rng ? rng_bytes() : 0), sums_, saved_, is_watched_, arc);
  }

  // After the recompute: what it made for the unit's saves, until each is handed over and dropped.
  void add_recomputed(const Candidate& c, const UnitFacts& f) {
    std::map<std::uint32_t, std::vector<Interval>> when;
    for (const std::uint32_t save : f.saves) {
      const std::uint32_t storage = view_.storage_of(save);
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
      if (saved_.is_there(storage)) alive = without(alive, m_.fixed(storage));
      profile_.add(alive, m_.bytes[storage]);
    }
  }

  enum class Mode : std::uint8_t { kAllHeld, kReal };

  const Step& step_;
  const StepTables& t_;
  const Space& space_;
  const ProblemOptions& options_;
  std::vector<std::uint8_t> is_used_;  // by candidate
  Moments m_;
  StepView view_;
  OpWorkspace workspace_;
  std::vector<std::vector<Hold>> plain_;              // by element
  std::vector<UnitFacts> facts_;                      // by candidate
  std::vector<std::vector<std::uint32_t>> starting_;  // by element: candidates
  SharedTensors shared_;
  Problem problem_;
  Mode mode_ = Mode::kReal;
  bool may_parked_matter_ = false;
  bool has_forward_ = false;  // arcs of the forward are made, too
  bool has_too_many_patterns_ = false;
  std::vector<std::uint8_t> is_forward_;    // by event
  std::vector<std::int64_t> plain_keep_;    // by element: with everything shared held by others
  std::vector<std::int64_t> unit_keep_;     // by candidate
  std::vector<std::int64_t> floor_before_;  // by element: a bound on the peak from there on

  // Of the arc that is being made.
  Profile profile_;
  std::vector<std::uint32_t> moments_;
  std::vector<Hold> holds_;
  Interval frame_;
  std::vector<UnitGroup> sums_;  // the arc's groups
  SavedOnArc saved_;
  RecomputeRun recompute_;
  bool is_watched_ = false;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> targets_;  // by arc: place and pattern
  std::int64_t unparked_keep_ = 0;                                // the arc keeps, besides what is parked
  Arc forward_arc_;
  std::vector<Arc> forward_arcs_;  // of the episode
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
  const Problem cut = build(true, 1, is_small ? kManyConditions : options.max_conditions);
  return cut.given_count < problem.given_count ? cut : problem;
}

}  // namespace tidemark::planner
