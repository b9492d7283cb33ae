#include "tidemark/planner/sweep.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "tidemark/planner/ways.h"

namespace tidemark::planner {

namespace {

constexpr std::int64_t kComparedPerEntry = 64;  // comparisons of two entries take so much less time

// Whether nothing but the kept bytes and `tail_bytes` matters.
bool is_flat(const Arc& arc) {
  for (const ArcGap& gap : arc.before)
    if (gap.recompute_bytes != kNoPeak || gap.forward_bytes != kNoPeak) return false;
  for (const ArcGroup& group : arc.groups)
    if (group.inside_bytes != kNoPeak) return false;
  return !arc.needs_saved;
}

}  // namespace

Sweep::Sweep(const Episode& episode, const std::vector<Convex>& ways, std::int64_t budget_bytes, GroupBound* groups)
    : e_(episode), budget_(budget_bytes), way_(ways), groups_(groups) {
  for (const Arc& arc : e_.arcs) is_flat_.push_back(is_flat(arc) ? 1 : 0);
}

// Time, then fewer units.
bool Sweep::is_cheaper(const Entry& a, const Entry& b) { return a.ps != b.ps ? a.ps < b.ps : a.units < b.units; }

// Keeps the most promising entries.
template <typename RestPs>
void Sweep::shorten(std::vector<Entry>& list, const RestPs& rest_ps_of) {
  was_cut_ = true;
  std::vector<std::pair<std::int64_t, std::uint32_t>> order;
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    const std::int64_t rest_ps = rest_ps_of(budget_ - std::max(list[i].peak, list[i].inner));
    order.emplace_back(rest_ps == Convex::kNotEnough ? rest_ps : list[i].ps + rest_ps, i);
  }
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(width_), order.end());
  order.resize(width_);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<Entry> kept;
  for (const auto& [ps, i] : order) kept.push_back(list[i]);
  list = std::move(kept);
}

SweepResult Sweep::run(std::int64_t target_ps, std::size_t width, std::int64_t max_work) {
  target_ = target_ps;
  width_ = width;
  stop_ = work_ + max_work;
  next_ = Convex::kNotEnough;
  was_cut_ = false;
  links_.clear();
  lists_.assign(e_.state_count, {});
  lists_.back().push_back({kNoPeak, 0, kNoPeak, 0, 0, kNone, kNone, kNone});
  for (std::uint32_t state = e_.state_count - 1; state-- > 0;) {
    std::vector<Entry> all;
    for (std::uint32_t a = e_.first_arc[state]; a < e_.first_arc[state + 1]; ++a) add_arc(a, state, all);
    lists_[state] = pareto(std::move(all));
    if (lists_[state].size() > width_)
      shorten(lists_[state], [&](std::int64_t room) {
        const std::int64_t ps = way_[state].at(room);
        return groups_ == nullptr ? ps : std::max(ps, groups_->to_state(state, room));
      });
    longest_ = std::max(longest_, lists_[state].size());
    if (work_ > stop_) return {false, false, 0, next_};
  }
  SweepResult result;
  result.is_whole = !was_cut_;
  result.next_ps = next_;
  const Entry* best = nullptr;
  for (const Entry& entry : lists_[0])
    if (entry.peak <= budget_ && (best == nullptr || is_cheaper(entry, *best))) best = &entry;
  if (best == nullptr) return result;
  result.found = true;
  result.ps = best->ps;
  best_ = static_cast<std::uint32_t>(best - lists_[0].data());
  return result;
}

Path Sweep::path() const {
  Path path;
  std::uint32_t state = 0;
  std::uint32_t at = best_;
  while (state + 1 < e_.state_count) {
    const Entry& entry = lists_[state][at];
    ArcUse use{entry.arc, {}};
    for (std::uint32_t link = entry.saved; link != kNone; link = links_[link].before)
      use.saved.push_back(links_[link].group);  // the first group was added last
    path.push_back(std::move(use));
    state = e_.arcs[entry.arc].to;
    at = entry.next;
  }
  return path;
}

// Whether a path with this entry, and the groups before `j` still open, may fit and take at most the target. Two
// things bound what may be kept before: the peak, which grows with every group that is saved, and what the arc itself
// comes to, which does not. A price on the bytes of the first gives a bound with the groups in it.
bool Sweep::may_do(const Entry& entry, std::size_t j) {
  const std::int64_t room = budget_ - entry.peak;
  const std::int64_t own_room = budget_ - std::max(entry.inner, own_);
  const std::int64_t before_ps = ways_to_arc_.least_ps(j, room, own_room);
  if (before_ps == Convex::kNotEnough) return false;
  std::int64_t ps = entry.ps + before_ps;
  if (ps <= target_ && groups_ != nullptr) {
    enter();
    const std::int64_t all = groups_->to_group(j, room);
    const std::int64_t own = own_room < room ? groups_->to_arc(own_room) : 0;
    if (all == Convex::kNotEnough || own == Convex::kNotEnough) {
      next_ = std::min(next_, target_ + 1);
      return false;
    }
    ps = std::max(ps, entry.ps + std::max(all, own));
    if (ps > target_ && ps > groups_->known_ps()) ps = groups_->known_ps() + 1;
  }
  if (ps <= target_) return true;
  next_ = std::min(next_, ps);
  return false;
}

// The bound of whole groups takes long to prepare for an arc, and many arcs are out without it.
void Sweep::enter() {
  if (!to_enter_) return;
  groups_->enter(*to_enter_);
  to_enter_.reset();
}

void Sweep::add_arc(std::uint32_t a, std::uint32_t state, std::vector<Entry>& all) {
  const Arc& arc = e_.arcs[a];
  const Convex& way = way_[state];
  if (way.is_empty() || lists_[arc.to].empty()) return;
  const std::size_t count = arc.groups.size();
  std::vector<Entry> list;
  own_ = least_peak(arc);
  const std::int64_t first_peak = lists_[arc.to].front().peak;  // they ascend
  ways_to_arc_.turn_to(arc, way, budget_ - own_,
                       budget_ - (first_peak == kNoPeak ? kNoPeak : first_peak + arc.keep_bytes));
  std::int64_t own = arc.tail_bytes;
  std::int64_t forward = kNoPeak;
  if (!arc.before.empty()) {
    own = std::max(own, arc.before.back().recompute_bytes);
    forward = arc.before.back().forward_bytes;
  }
  if (groups_ != nullptr) {  // peaks ascend
    const std::int64_t most_peak = std::max(lists_[arc.to].back().peak + arc.keep_bytes, forward);
    const std::int64_t least_peak = lists_[arc.to].front().peak + arc.keep_bytes;
    to_enter_ = {a, budget_ - most_peak, budget_ - least_peak, lists_[arc.to].size()};
  }
  for (std::uint32_t i = 0; i < lists_[arc.to].size(); ++i) {
    const Entry& after = lists_[arc.to][i];
    Entry entry{std::max(after.peak == kNoPeak ? kNoPeak : after.peak + arc.keep_bytes, forward),
                after.ps + arc.base_ps,
                own,
                0,
                after.units + (arc.is_unit() ? 1 : 0),
                i,
                kNone,
                a};
    if (is_flat_[a] != 0) entry.inner = kNoPeak;
    if (may_do(entry, count)) list.push_back(entry);
  }
  for (std::size_t j = count; j-- > 0 && !list.empty() && work_ <= stop_;) {
    list = is_flat_[a] != 0 ? flat_group(arc, j, list) : any_group(arc, j, list);
    if (list.size() > width_)
      shorten(list, [&](std::int64_t room) {
        const std::int64_t ps = ways_to_arc_.least_ps(j, room, room);
        return groups_ == nullptr ? ps : std::max(ps, groups_->to_group(j, room));
      });
  }
  work_ += static_cast<std::int64_t>(list.size());
  for (Entry& entry : list) {
    if (arc.needs_saved && entry.saved == kNone) continue;
    entry.peak = std::max({entry.peak, entry.inner, own});
    entry.inner = kNoPeak;
    entry.kept = 0;
    if (may_do(entry, 0)) all.push_back(entry);
  }
}

Sweep::Entry Sweep::saved(const Entry& entry, std::size_t j, std::int64_t bytes) {
  Entry e = entry;
  e.peak = e.peak == kNoPeak ? kNoPeak : e.peak + bytes;
  e.kept += bytes;
  links_.push_back({static_cast<std::uint32_t>(j), entry.saved});
  e.saved = static_cast<std::uint32_t>(links_.size()) - 1;
  return e;
}

// Both lists ascend in their peaks and descend in their times, so that one walk merges them.
std::vector<Sweep::Entry> Sweep::flat_group(const Arc& arc, std::size_t j, const std::vector<Entry>& list) {
  const ArcGroup& group = arc.groups[j];
  std::vector<Entry> result;
  std::size_t a = 0;  // next to recompute
  std::size_t b = 0;  // next to save
  const auto peak_saved = [&](const Entry& e) { return e.peak == kNoPeak ? kNoPeak : e.peak + group.bytes; };
  while (a < list.size() || b < list.size()) {
    bool is_recomputed = b == list.size();
    if (!is_recomputed && a < list.size()) {
      const std::int64_t saved_peak = peak_saved(list[b]);
      is_recomputed =
          list[a].peak < saved_peak || (list[a].peak == saved_peak && list[a].ps + group.time_ps < list[b].ps);
    }
    ++work_;
    Entry probe = is_recomputed ? list[a] : list[b];
    if (is_recomputed)
      probe.ps += group.time_ps;
    else
      probe.peak = peak_saved(probe);
    const std::size_t source = is_recomputed ? a++ : b++;
    if (!result.empty() && !is_cheaper(probe, result.back())) continue;
    if (!may_do(probe, j)) continue;
    result.push_back(is_recomputed ? probe : saved(list[source], j, group.bytes));
  }
  return result;
}

std::vector<Sweep::Entry> Sweep::any_group(const Arc& arc, std::size_t j, const std::vector<Entry>& list) {
  const ArcGroup& group = arc.groups[j];
  const ArcGap& gap = arc.before[j];
  std::vector<Entry> made;
  const auto add = [&](Entry entry) {
    ++work_;
    if (gap.recompute_bytes != kNoPeak) entry.inner = std::max(entry.inner, gap.recompute_bytes + entry.kept);
    entry.peak = std::max(entry.peak, gap.forward_bytes);
    if (may_do(entry, j)) made.push_back(entry);
  };
  for (const Entry& entry : list) {
    Entry again = entry;
    again.ps += group.time_ps;
    if (group.inside_bytes != kNoPeak) again.inner = std::max(again.inner, group.inside_bytes + again.kept);
    add(again);
    add(saved(entry, j, group.bytes));
  }
  return undominated(arc, j, std::move(made));
}

// Drops what is no better in any respect than another before group `j`: peak, time, and what the recompute may still
// come to.
std::vector<Sweep::Entry> Sweep::undominated(const Arc& arc, std::size_t j, std::vector<Entry> list) {
  // The highest that the recompute may still come to, without what is saved. The peak is certain: what is below it, and
  // stays there, makes no difference.
  std::int64_t highest = kNoPeak;
  for (std::size_t i = 0; i < j; ++i)
    highest = std::max({highest, arc.before[i].recompute_bytes, arc.groups[i].inside_bytes});
  for (Entry& entry : list) {
    entry.inner = std::max(entry.inner, entry.peak);
    if (entry.peak != kNoPeak) entry.kept = std::max(entry.kept, entry.peak - highest);
  }
  std::stable_sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) {
    if (a.peak != b.peak) return a.peak < b.peak;
    if (a.inner != b.inner) return a.inner < b.inner;
    if (a.ps != b.ps) return a.ps < b.ps;
    if (a.units != b.units) return a.units < b.units;
    return a.kept < b.kept;
  });
  // Peaks ascend. What an entry whose recompute hides below its peak comes to is no more than that of any later one, so
  // that of these only what is kept and the time are left to compare: a staircase. Others are looked at one by one.
  std::vector<Entry> result;
  std::map<std::int64_t, const Entry*> stairs;  // by what is kept: falling times
  std::vector<std::size_t> others;              // in `result`
  result.reserve(list.size());
  for (const Entry& entry : list) {
    const auto above = stairs.upper_bound(entry.kept);
    if (above != stairs.begin() && !is_cheaper(entry, *std::prev(above)->second)) continue;
    bool is_worse = false;
    for (std::size_t i = others.size(); i-- > 0 && !is_worse;) {
      const Entry& other = result[others[i]];
      is_worse = other.inner <= entry.inner && other.kept <= entry.kept && !is_cheaper(entry, other) &&
                 (!arc.needs_saved || other.saved != kNone || entry.saved == kNone);
    }
    compared_ += static_cast<std::int64_t>(others.size());
    if (is_worse) continue;
    result.push_back(entry);
    if (entry.inner > entry.peak || (arc.needs_saved && entry.saved == kNone)) {
      others.push_back(result.size() - 1);
      continue;
    }
    const auto [step, is_new] = stairs.insert_or_assign(entry.kept, &result.back());
    for (auto next = std::next(step); next != stairs.end() && !is_cheaper(*next->second, entry);)
      next = stairs.erase(next);
  }
  work_ += compared_ / kComparedPerEntry;
  compared_ %= kComparedPerEntry;
  return result;
}

// Ascending peaks, falling times.
std::vector<Sweep::Entry> Sweep::pareto(std::vector<Entry> list) {
  std::stable_sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) {
    return a.peak != b.peak ? a.peak < b.peak : is_cheaper(a, b);
  });
  std::vector<Entry> result;
  for (const Entry& entry : list)
    if (result.empty() || is_cheaper(entry, result.back())) result.push_back(entry);
  return result;
}

}  // namespace tidemark::planner
