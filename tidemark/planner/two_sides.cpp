#include "tidemark/planner/two_sides.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "tidemark/planner/arc_ways.h"
#include "tidemark/planner/floors.h"
#include "tidemark/planner/lattice.h"
#include "tidemark/planner/narrow.h"
#include "tidemark/planner/residues.h"
#include "tidemark/planner/ways.h"

namespace tidemark::planner {

namespace {

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kBeam = 256;
constexpr std::size_t kNarrowBeam = 64;
constexpr std::int64_t kBeamWork = 5'000'000;
constexpr std::int64_t kFinestStep = 1 << 20;  // targets are above the bound by at least one part in so many
constexpr std::int64_t kBackStep = 8;
constexpr std::size_t kPricedForward = 0;  // of the views; the one that whole groups are bounded in
constexpr std::int64_t kMaxCells = 20'000'000;
constexpr std::int64_t kMaxLatticeWork = 200'000'000;
constexpr std::int64_t kCellsPerEntry = 64;
constexpr std::int64_t kComparedPerEntry = 32;  // comparisons of two entries take so much less time

// By state: how much more the forward's S is than the other one, at least and at most, on all ways there.
struct Parked {
  std::vector<std::int64_t> least;
  std::vector<std::int64_t> most;
};

Parked find_parked(const Sides& sides) {
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  Parked parked{std::vector<std::int64_t>(sides.here.state_count, kFar),
                std::vector<std::int64_t>(sides.here.state_count, -kFar)};
  parked.least[0] = parked.most[0] = 0;
  for (std::size_t a = 0; a < sides.here.arcs.size(); ++a) {  // by the state they come from
    const Arc& arc = sides.here.arcs[a];
    if (parked.least[arc.from] == kFar) continue;
    std::int64_t least = sides.forward.arcs[a].keep_bytes - arc.keep_bytes;
    std::int64_t most = least;
    for (std::size_t j = 0; j < arc.groups.size(); ++j) {
      const std::int64_t more = sides.forward.arcs[a].groups[j].bytes - arc.groups[j].bytes;
      least += std::min<std::int64_t>(more, 0);
      most += std::max<std::int64_t>(more, 0);
    }
    parked.least[arc.to] = std::min(parked.least[arc.to], parked.least[arc.from] + least);
    parked.most[arc.to] = std::max(parked.most[arc.to], parked.most[arc.from] + most);
  }
  return parked;
}

struct PassResult {
  std::optional<Path> path;
  bool is_whole = true;  // false: stopped at the work limit, or lists were cut
  std::int64_t ps = 0;
  std::int64_t next_ps = Convex::kNotEnough;  // the smallest time that was turned away
};

// One pass from the last state to the first; see Sweep.
class Pass {
 public:
  // `groups` bounds ways in the view kPricedForward; perhaps none.
  Pass(const Sides& sides, const std::vector<View>& views, std::int64_t budget_bytes, GroupBound* groups)
      : s_(sides),
        views_(views),
        parked_(find_parked(sides)),
        budget_(budget_bytes),
        groups_(groups),
        ways_to_arc_(views.size()),
        other_price_(views.size()),
        other_fall_(views.size()),
        saved_before_(views.size()) {}

  PassResult run(std::int64_t target_ps, std::size_t width, std::int64_t max_work) {
    target_ = target_ps;
    width_ = width;
    stop_ = max_work;
    lists_.assign(s_.here.state_count, {});
    lists_.back().push_back({});
    for (std::uint32_t state = s_.here.state_count - 1; state-- > 0;) {
      std::vector<Entry> all;
      for (std::uint32_t a = s_.here.first_arc[state]; a < s_.here.first_arc[state + 1]; ++a) add_arc(a, all);
      for (Entry& entry : all) level(entry, state);
      lists_[state] = undominated(std::move(all));
      if (lists_[state].size() > width_) shorten(lists_[state]);
      longest_ = std::max(longest_, lists_[state].size());
      if (work_ > stop_) return {std::nullopt, false, 0, next_};
    }
    PassResult result{std::nullopt, !was_cut_, 0, next_};
    const Entry* best = nullptr;
    for (const Entry& entry : lists_[0])
      if (std::max(entry.peak, entry.forward) <= budget_ && (best == nullptr || is_cheaper(entry, *best)))
        best = &entry;
    if (best == nullptr) return result;
    result.ps = best->ps;
    result.path = path_from(*best);
    return result;
  }

  std::int64_t work() const { return work_; }
  std::size_t longest() const { return longest_; }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  // A path from somewhere to the end; see Sweep::Entry. `least_ps` bounds the whole path.
  struct Entry {
    std::int64_t peak = kNoPeak;
    std::int64_t forward = kNoPeak;
    std::int64_t ps = 0;
    std::int64_t inner = kNoPeak;
    std::int64_t kept = 0;
    std::int64_t least_ps = 0;
    std::int32_t units = 0;
    std::uint32_t next = kNone;
    std::uint32_t saved = kNone;
    std::uint32_t arc = kNone;
  };

  struct SavedLink {
    std::uint32_t group = 0;
    std::uint32_t before = kNone;
  };

  static bool is_cheaper(const Entry& a, const Entry& b) { return a.ps != b.ps ? a.ps < b.ps : a.units < b.units; }

  // What is kept before is at most what either side leaves, and the sides differ by what may be parked at most: a peak
  // that the other side hides is as good as the highest one that it would hide.
  void level(Entry& entry, std::uint32_t state) const {
    if (entry.forward != kNoPeak) entry.peak = std::max(entry.peak, entry.forward + parked_.least[state]);
    if (entry.peak != kNoPeak) entry.forward = std::max(entry.forward, entry.peak - parked_.most[state]);
  }

  // Nothing in it is as good as another in every respect: both peaks, time and, within an arc, the recompute.
  std::vector<Entry> undominated(std::vector<Entry> list) const {
    std::sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) {
      if (a.peak != b.peak) return a.peak < b.peak;
      if (a.forward != b.forward) return a.forward < b.forward;
      if (a.ps != b.ps) return a.ps < b.ps;
      if (a.units != b.units) return a.units < b.units;
      return std::pair(a.arc, a.next) < std::pair(b.arc, b.next);
    });
    std::map<std::int64_t, const Entry*> stairs;  // by the forward's peak, ever cheaper
    std::vector<Entry> result;
    result.reserve(list.size());
    for (const Entry& entry : list) {
      const auto after = stairs.upper_bound(entry.forward);
      if (after != stairs.begin() && !is_cheaper(entry, *std::prev(after)->second)) continue;
      result.push_back(entry);
      auto at = stairs.insert_or_assign(entry.forward, &result.back()).first;
      for (++at; at != stairs.end() && !is_cheaper(*at->second, entry);) at = stairs.erase(at);
    }
    return result;
  }

  // The same before group `j` of an arc whose recompute matters.
  std::vector<Entry> undominated_inside(const Arc& arc, std::size_t j, std::vector<Entry> list) {
    // The highest that the recompute may still come to, without what is saved. The peak is certain: what is below it,
    // and stays there, makes no difference.
    std::int64_t highest = kNoPeak;
    for (std::size_t i = 0; i < j; ++i)
      highest = std::max({highest, arc.before[i].recompute_bytes, arc.groups[i].inside_bytes});
    for (Entry& entry : list) {
      entry.inner = std::max(entry.inner, entry.peak);
      if (entry.peak != kNoPeak) entry.kept = std::max(entry.kept, entry.peak - highest);
    }
    std::sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) {
      if (a.peak != b.peak) return a.peak < b.peak;
      if (a.forward != b.forward) return a.forward < b.forward;
      if (a.inner != b.inner) return a.inner < b.inner;
      if (a.ps != b.ps) return a.ps < b.ps;
      if (a.units != b.units) return a.units < b.units;
      if (a.kept != b.kept) return a.kept < b.kept;
      return std::pair(a.next, a.saved) < std::pair(b.next, b.saved);
    });
    std::vector<Entry> result;
    std::int64_t compared = 0;
    for (const Entry& entry : list) {
      bool is_worse = false;
      for (std::size_t i = result.size(); i-- > 0 && !is_worse; ++compared) {
        const Entry& other = result[i];
        is_worse = other.forward <= entry.forward && other.inner <= entry.inner && other.kept <= entry.kept &&
                   !is_cheaper(entry, other) && (!arc.needs_saved || other.saved != kNone || entry.saved == kNone);
      }
      if (!is_worse) result.push_back(entry);
    }
    work_ += compared / kComparedPerEntry;
    return result;
  }

  void shorten(std::vector<Entry>& list) {
    was_cut_ = true;
    std::vector<std::pair<std::int64_t, std::uint32_t>> order;
    for (std::uint32_t i = 0; i < list.size(); ++i) order.emplace_back(list[i].least_ps, i);
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(width_), order.end());
    order.resize(width_);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<Entry> kept;
    for (const auto& [ps, i] : order) kept.push_back(list[i]);
    list = std::move(kept);
  }

  Path path_from(const Entry& first) const {
    Path path;
    const Entry* entry = &first;
    while (entry->arc != kNone) {
      ArcUse use{entry->arc, {}};
      for (std::uint32_t link = entry->saved; link != kNone; link = links_[link].before)
        use.saved.push_back(links_[link].group);  // the first group was added last
      path.push_back(std::move(use));
      entry = &lists_[s_.here.arcs[entry->arc].to][entry->next];
    }
    return path;
  }

  // Whether a path with this entry, and the groups before `j` still open, may fit and take at most the target.
  bool may_do(Entry& entry, std::size_t j) {
    std::int64_t ps = entry.ps;
    for (std::size_t v = 0; v < views_.size(); ++v) {
      const View& view = views_[v];
      const std::int64_t peak = mixed(entry.peak, entry.forward, view.share);
      const std::int64_t own = mixed(std::max(entry.inner, own_), own_forward_, view.share);
      // A mixture is rounded down, so that there may be a byte less room than this.
      const std::int64_t room = budget_ - peak;
      const std::int64_t own_room = budget_ - own;
      const std::int64_t before_ps = ways_to_arc_[v].least_ps(j, room, own_room);
      if (before_ps == Convex::kNotEnough) return false;
      const std::optional<std::int64_t> more_ps = price_of_other(v, entry, j);
      if (!more_ps) continue;
      ps = std::max(ps, entry.ps + before_ps + *more_ps);
      if (v != kPricedForward || groups_ == nullptr || ps > target_) continue;
      enter();
      const std::int64_t all = groups_->to_group(j, room);
      if (all == Convex::kNotEnough || entry.ps + all + *more_ps > target_) {  // by how much is not known
        next_ = std::min(next_, target_ + 1);
        return false;
      }
      ps = std::max(ps, entry.ps + all + *more_ps);
    }
    entry.least_ps = ps;
    if (ps <= target_) return true;
    next_ = std::min(next_, ps);
    return false;
  }

  // By how much a priced view's bound is above the time of the way and the groups before `j`: with the price of what
  // those may keep on the other side. None: any amount.
  std::optional<std::int64_t> price_of_other(std::size_t v, const Entry& entry, std::size_t j) const {
    const View& view = views_[v];
    if (view.other == nullptr) return 0;
    const std::int64_t peak = view.share == 0 ? entry.forward : entry.peak;
    if (peak == kNoPeak) return std::nullopt;
    const Int128 price = static_cast<Int128>(other_price_[v]) * (budget_ - peak);
    const Int128 unit = static_cast<Int128>(1) << kPriceBits;
    return saved_before_[v][j] - static_cast<std::int64_t>((price + other_fall_[v] + unit - 1) / unit);
  }

  void turn_to_other(std::size_t v, std::uint32_t a) {
    const View& view = views_[v];
    if (view.other == nullptr) return;
    const Arc& other = view.other->arcs[a];
    other_price_[v] = (*view.prices)[other.to];
    other_fall_[v] = static_cast<Int128>((*view.prices)[other.from] - other_price_[v]) * view.other_caps[a];
    saved_before_[v].assign(1, 0);
    for (std::size_t g = 0; g < other.groups.size(); ++g)
      saved_before_[v].push_back(saved_before_[v].back() +
                                 price_of_group(other.groups[g], other_price_[v], s_.here.arcs[a].groups[g].time_ps));
  }

  // The bound of whole groups takes long to prepare for an arc, and many arcs are out without it.
  void enter() {
    if (!to_enter_) return;
    groups_->enter(*to_enter_);
    to_enter_.reset();
  }

  static bool has_recompute(const Arc& arc) {
    if (arc.needs_saved) return true;
    for (const ArcGap& gap : arc.before)
      if (gap.recompute_bytes != kNoPeak) return true;
    return std::any_of(arc.groups.begin(), arc.groups.end(),
                       [](const ArcGroup& group) { return group.inside_bytes != kNoPeak; });
  }

  // What the peak of all that follows the arc is at least in a mixture.
  std::int64_t least_after(const Arc& arc, const View& view) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const Entry& after : lists_[arc.to]) least = std::min(least, mixed(after.peak, after.forward, view.share));
    return least;
  }

  void add_arc(std::uint32_t a, std::vector<Entry>& all) {
    const Arc& arc = s_.here.arcs[a];
    const Arc& forward = s_.forward.arcs[a];
    if (lists_[arc.to].empty()) return;
    own_ = least_peak(arc);
    own_forward_ = least_peak(forward);
    for (std::size_t v = 0; v < views_.size(); ++v) {
      const View& view = views_[v];
      ways_to_arc_[v].turn_to(view.episode.arcs[a], view.ways[arc.from],
                              budget_ - mixed(own_, own_forward_, view.share), budget_ - least_after(arc, view));
      turn_to_other(v, a);
    }
    if (groups_ != nullptr) {
      to_enter_ = {a, std::numeric_limits<std::int64_t>::max(), 0, lists_[arc.to].size()};
      for (const Entry& after : lists_[arc.to]) {
        const std::int64_t peak = mixed(after.peak, after.forward, views_[kPricedForward].share);
        const std::int64_t room =
            budget_ - (peak == kNoPeak ? kNoPeak : peak + views_[kPricedForward].episode.arcs[a].keep_bytes);
        to_enter_->least_bytes = std::min(to_enter_->least_bytes, room);
        to_enter_->most_bytes = std::max(to_enter_->most_bytes, room);
      }
    }
    const bool is_inner = has_recompute(arc);
    std::int64_t own = arc.tail_bytes;
    if (!arc.before.empty()) own = std::max(own, arc.before.back().recompute_bytes);
    std::vector<Entry> list;
    for (std::uint32_t i = 0; i < lists_[arc.to].size(); ++i) {
      const Entry& after = lists_[arc.to][i];
      Entry entry;
      entry.peak = after.peak == kNoPeak ? kNoPeak : after.peak + arc.keep_bytes;
      entry.forward = after.forward == kNoPeak ? kNoPeak : after.forward + forward.keep_bytes;
      if (!arc.before.empty()) entry.peak = std::max(entry.peak, arc.before.back().forward_bytes);
      if (!forward.before.empty()) entry.forward = std::max(entry.forward, forward.before.back().forward_bytes);
      entry.ps = after.ps + arc.base_ps;
      entry.inner = is_inner ? own : kNoPeak;
      entry.units = after.units + (arc.is_unit() ? 1 : 0);
      entry.next = i;
      entry.arc = a;
      if (may_do(entry, arc.groups.size())) list.push_back(entry);
    }
    for (std::size_t j = arc.groups.size(); j-- > 0 && !list.empty() && work_ <= stop_;) {
      list = add_group(arc, forward, j, list, is_inner);
      if (list.size() > width_) shorten(list);
    }
    work_ += static_cast<std::int64_t>(list.size());
    for (Entry& entry : list) {
      if (arc.needs_saved && entry.saved == kNone) continue;
      entry.peak = std::max({entry.peak, entry.inner, own});
      entry.forward = std::max(entry.forward, forward.tail_bytes);
      entry.inner = kNoPeak;
      entry.kept = 0;
      if (may_do(entry, 0)) all.push_back(entry);
    }
  }

  std::vector<Entry> add_group(const Arc& arc, const Arc& forward, std::size_t j, const std::vector<Entry>& list,
                               bool is_inner) {
    const ArcGroup& group = arc.groups[j];
    std::vector<Entry> made;
    made.reserve(2 * list.size());
    const auto add = [&](Entry& entry) {
      ++work_;
      if (arc.before[j].recompute_bytes != kNoPeak)
        entry.inner = std::max(entry.inner, arc.before[j].recompute_bytes + entry.kept);
      entry.peak = std::max(entry.peak, arc.before[j].forward_bytes);
      entry.forward = std::max(entry.forward, forward.before[j].forward_bytes);
      if (!may_do(entry, j)) return false;
      made.push_back(entry);
      return true;
    };
    for (const Entry& entry : list) {
      Entry again = entry;
      again.ps += group.time_ps;
      if (group.inside_bytes != kNoPeak) again.inner = std::max(again.inner, group.inside_bytes + again.kept);
      add(again);
      Entry saved = entry;
      if (saved.peak != kNoPeak) saved.peak += group.bytes;
      if (saved.forward != kNoPeak) saved.forward += forward.groups[j].bytes;
      saved.kept += group.bytes;
      if (!add(saved)) continue;
      links_.push_back({static_cast<std::uint32_t>(j), entry.saved});
      made.back().saved = static_cast<std::uint32_t>(links_.size()) - 1;
    }
    return is_inner ? undominated_inside(arc, j, std::move(made)) : undominated(std::move(made));
  }

  const Sides& s_;
  const std::vector<View>& views_;
  Parked parked_;
  std::int64_t budget_;
  GroupBound* groups_;
  std::int64_t target_ = 0;
  std::int64_t next_ = Convex::kNotEnough;
  std::size_t width_ = 0;
  std::int64_t stop_ = 0;
  bool was_cut_ = false;
  std::int64_t work_ = 0;
  std::size_t longest_ = 0;
  std::vector<std::vector<Entry>> lists_;  // by state
  std::vector<SavedLink> links_;
  // Of the arc in hand.
  std::int64_t own_ = kNoPeak;  // what its peak is at least
  std::int64_t own_forward_ = kNoPeak;
  std::optional<GroupBound::Entered> to_enter_;  // as long as its bound was not asked for
  std::vector<ArcWays> ways_to_arc_;             // by view
  // By view with a price on the other side: what it is after the arc, what its fall there takes off at most, and what
  // saved groups before each cost.
  std::vector<std::int64_t> other_price_;
  std::vector<Int128> other_fall_;
  std::vector<std::vector<std::int64_t>> saved_before_;
};

class Search {
 public:
  Search(const Sides& sides, const TwoSidesOptions& options)
      : sides_(sides),
        budget_(options.budget_bytes),
        max_work_(options.max_work),
        pass_work_(options.pass_work),
        prices_(options.prices) {
    result_.bound_ps = options.bound_ps;
    views_ = views_of(sides_);
    if (!is_possible(views_)) return;
    for (const View& view : views_) {
      bounds_.emplace_back(view.episode, view.floors, budget_,
                           find_prices(view.episode, view.floors, budget_, view.ways));
      raise_bound(bounds_.back().bound_ps());
    }
  }

  TwoSidesResult run() {
    if (bounds_.empty()) {
      result_.bound_ps = Convex::kNotEnough;
      return result_;
    }
    if (!find_any()) return result_;
    // All that is cheaper than the path in hand, if that is not too much; else closer to the bound, where there is less
    // to look at.
    std::int64_t step = Convex::kNotEnough;
    std::int64_t pass_work = pass_work_;
    while (result_.bound_ps < result_.ps && left() > 0) {
      const std::int64_t gap = result_.ps - 1 - result_.bound_ps;
      const std::int64_t target = result_.bound_ps + std::min(step, gap);
      const std::int64_t best_ps = result_.ps;
      const Narrow narrowed = narrow(target);
      if (pass(narrowed, target, kBeam, left())) continue;
      if (result_.ps < best_ps) continue;
      has_groups_ = true;
      if (pass(narrowed, target, kAny, std::min(left(), pass_work))) continue;
      if (result_.ps < best_ps) continue;
      step = std::min(step, gap) / kBackStep;
      if (step > result_.bound_ps / kFinestStep) continue;
      step = result_.bound_ps / kFinestStep + 1;
      pass_work *= kBackStep;
    }
    result_.is_limit = result_.bound_ps < result_.ps;
    return result_;
  }

 private:
  struct Narrow {
    Sides sides;
    std::int64_t next_ps = Convex::kNotEnough;
  };

  void raise_bound(std::int64_t ps) { result_.bound_ps = std::clamp(ps, result_.bound_ps, result_.ps); }

  // What some mixture says goes above the target is decided the other way.
  Narrow narrow(std::int64_t target_ps) const {
    Narrow result;
    std::vector<Narrowed> narrowed;
    for (const Bounds& bounds : bounds_) {
      narrowed.push_back(bounds.narrow(target_ps));
      result.next_ps = std::min(result.next_ps, narrowed.back().next_ps);
    }
    const Episode& whole = sides_.here;
    // By arc: in how many mixtures it is left, and by group in how many it is open or saved.
    std::vector<std::uint8_t> left(whole.arcs.size(), 0);
    std::vector<std::vector<std::pair<std::uint8_t, std::uint8_t>>> says(whole.arcs.size());
    for (std::size_t a = 0; a < whole.arcs.size(); ++a) says[a].resize(whole.arcs[a].groups.size());
    for (const Narrowed& one : narrowed)
      for (const NarrowedArc& origin : one.origin) {
        ++left[origin.arc];
        for (const std::uint32_t group : origin.open) ++says[origin.arc][group].first;
        for (const std::uint32_t group : origin.saved) ++says[origin.arc][group].second;
      }
    const auto all = static_cast<std::uint8_t>(bounds_.size());
    for (Episode* side : {&result.sides.here, &result.sides.forward}) {
      side->state_count = whole.state_count;
      side->first_arc.assign(whole.state_count + 1, 0);
    }
    for (std::uint32_t a = 0; a < whole.arcs.size(); ++a) {
      if (left[a] != all) continue;
      NarrowedArc origin{a, {}, {}};
      std::vector<std::int8_t> decided;
      bool is_possible = true;
      for (std::uint32_t g = 0; g < says[a].size(); ++g) {
        const auto [open, saved] = says[a][g];
        const int again = all - open - saved;
        if (again > 0 && saved > 0) is_possible = false;
        decided.push_back(open == all ? std::int8_t{-1} : saved > 0 ? std::int8_t{1} : std::int8_t{0});
        if (open == all) origin.open.push_back(g);
        if (open != all && saved > 0) origin.saved.push_back(g);
      }
      if (!is_possible) continue;
      Arc here = decide_groups(whole.arcs[a], decided);
      if (here.needs_saved && here.groups.empty()) continue;
      ++result.sides.here.first_arc[here.from + 1];
      result.sides.here.arcs.push_back(std::move(here));
      result.sides.forward.arcs.push_back(decide_groups(sides_.forward.arcs[a], decided));
      result.sides.origin.push_back(std::move(origin));
    }
    for (std::uint32_t i = 0; i < whole.state_count; ++i)
      result.sides.here.first_arc[i + 1] += result.sides.here.first_arc[i];
    result.sides.forward.first_arc = result.sides.here.first_arc;
    return result;
  }

  std::vector<View> views_of(const Sides& sides) const {
    std::vector<View> views;
    views.push_back(priced_view(sides, kShares, prices_.here, budget_));
    views.push_back(priced_view(sides, 0, prices_.forward, budget_));
    views.push_back(view_of(sides, 0, budget_));
    views.push_back(view_of(sides, kShares, budget_));
    return views;
  }

  static bool is_possible(const std::vector<View>& views) {
    return std::none_of(views.begin(), views.end(), [](const View& view) { return view.ways.empty(); });
  }

  // `path` is one through `sides`, all of which are whole.
  void take(const Path& path, const Sides& sides) {
    const std::int64_t ps = measure(sides.here, path).time_ps;
    if (ps >= result_.ps) return;
    result_.ps = ps;
    result_.path = sides.widened(path);
  }

  // Residues, or where there are none all sums of sizes.
  std::unique_ptr<GroupBound> groups_for(const View& view, std::int64_t target) const {
    const Bounds& bounds = bounds_[kPricedForward];
    if (std::optional<Residues> residues =
            Residues::make(view.episode, view.floors, budget_, bounds, {.max_cells = kMaxCells}))
      return std::make_unique<Residues>(std::move(*residues));
    if (std::optional<Lattice> lattice =
            Lattice::make(view.episode, view.floors, budget_, bounds,
                          {.target_ps = target, .max_cells = kMaxCells, .max_work = kMaxLatticeWork}))
      return std::make_unique<Lattice>(std::move(*lattice));
    return nullptr;
  }

  // Whether everything up to the target was looked at.
  bool pass(const Narrow& narrowed, std::int64_t target, std::size_t width, std::int64_t max_work) {
    const std::vector<View> views = views_of(narrowed.sides);
    if (!is_possible(views)) {
      raise_bound(std::max(target + 1, narrowed.next_ps));
      return true;
    }
    const std::unique_ptr<GroupBound> groups = has_groups_ ? groups_for(views[kPricedForward], target) : nullptr;
    Pass pass(narrowed.sides, views, budget_, groups.get());
    const PassResult found = pass.run(target, width, max_work);
    result_.work += pass.work();
    if (groups) result_.work += groups->take_work() / kCellsPerEntry;
    ++result_.passes;
    result_.longest_list = std::max(result_.longest_list, static_cast<std::int64_t>(pass.longest()));
    if (found.path) take(narrowed.sides.widened(*found.path), sides_);
    if (!found.is_whole) return false;
    raise_bound(found.path ? result_.ps : std::max(target + 1, std::min(found.next_ps, narrowed.next_ps)));
    return true;
  }

  std::int64_t left() const { return max_work_ - result_.work; }

  // A path that fits, or that there is none: peaks alone decide that, and leave far fewer paths to tell apart. Then one
  // that is near the bound. They get their work in any case. False: there is none, or it takes too long to find out.
  bool find_any() {
    Narrow untimed{sides_, Convex::kNotEnough};
    for (Episode* side : {&untimed.sides.here, &untimed.sides.forward})
      for (Arc& arc : side->arcs) {
        arc.base_ps = 0;
        for (ArcGroup& group : arc.groups) group.time_ps = 0;
      }
    const std::vector<View> views = views_of(untimed.sides);
    Pass peaks(untimed.sides, views, budget_, nullptr);
    const PassResult found = peaks.run(0, kAny, std::max(left(), kBeamWork));
    result_.work += peaks.work();
    ++result_.passes;
    if (!found.path) {
      if (found.is_whole) result_.bound_ps = Convex::kNotEnough;
      result_.is_limit = !found.is_whole;
      return false;
    }
    take(*found.path, sides_);
    for (const std::int64_t part : {256, 16, 1}) {
      const std::int64_t target = std::min(result_.bound_ps + result_.bound_ps / part, result_.ps - 1);
      if (target > result_.bound_ps && pass(narrow(target), target, kNarrowBeam, kBeamWork)) return true;
      if (result_.ps <= target) return true;
    }
    return true;
  }

  const Sides& sides_;
  std::int64_t budget_;
  std::int64_t max_work_;
  std::int64_t pass_work_;
  const SidePrices& prices_;
  std::vector<View> views_;
  std::vector<Bounds> bounds_;
  bool has_groups_ = false;  // bounds of whole groups are worth their work
  TwoSidesResult result_;
};

}  // namespace

TwoSidesResult find_cheapest(const Sides& sides, const TwoSidesOptions& options) {
  return Search(sides, options).run();
}

}  // namespace tidemark::planner
