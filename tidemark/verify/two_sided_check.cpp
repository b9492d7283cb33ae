#include "tidemark/verify/two_sided_check.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "tidemark/verify/arc_peaks.h"
#include "tidemark/verify/priced_side.h"

namespace tidemark::verify {

namespace {

using planner::Arc;
using planner::ArcGap;
using planner::kNoPeak;

// What takes so much less time than making a part: comparing two, and moving one in a list.
constexpr std::int64_t kComparedPerEntry = 32;
constexpr std::int64_t kMovedPerEntry = 512;

// A way from a state to the end, or, in the middle of an arc, from one of its groups: then `peak` and `forward` are
// relative to what is kept before, groups of the arc that are to come included, and `inner` is what the arc's own
// recompute has come to, relative to what is kept before the arc.
struct Part {
  std::int64_t peak = kNoPeak;
  std::int64_t forward = kNoPeak;
  std::int64_t ps = 0;
  std::int64_t inner = kNoPeak;
  std::int64_t kept = 0;  // by the arc's groups from here on
  bool any_saved = false;
};

// A mixture, or a side with prices on the other one, with its bounds.
struct View {
  View(const Sides& sides, const SideHints& hints, const PathQuestion& question)
      : forward_share(hints.forward_share),
        has_groups(hints.unit_bytes > 0 || hints.ring.unit_bytes > 0),
        priced(priced_of(sides, hints, question.room_bytes)),
        episode(priced ? priced->episode() : mixed(sides, hints.forward_share)),
        peaks(find_least_peaks(episode)),
        lines(episode, peaks, question.room_bytes, from_zero(hints.prices)),
        bounds(episode, peaks, lines, question) {}
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  static std::optional<PricedSide> priced_of(const Sides& sides, const SideHints& hints, std::int64_t room_bytes) {
    if (hints.other_prices.empty()) return std::nullopt;
    return PricedSide(sides, hints.forward_share == kShares, hints.other_prices, room_bytes);
  }

  // The time of a way as the end of a path in this view.
  std::int64_t ps_from(std::uint32_t state, const Part& way) const {
    return priced ? priced->ps_from(state, way.ps, priced->is_forward() ? way.peak : way.forward) : way.ps;
  }

  std::int64_t forward_share;
  bool has_groups;  // has bounds by units or residues
  std::optional<PricedSide> priced;
  planner::Episode episode;
  LeastPeaks peaks;
  TimeLines lines;
  WayBounds bounds;
  std::vector<std::vector<Way>> corners;  // by state: of the ways from there, those that some price makes the best
};

// Of ways, those on the lower hull: with any price on the peak, one of them is the best.
std::vector<Way> corners_of(std::vector<Way> ways) {
  const auto is_before = [](const Way& a, const Way& b) { return a.peak != b.peak ? a.peak < b.peak : a.ps < b.ps; };
  if (!std::is_sorted(ways.begin(), ways.end(), is_before)) std::sort(ways.begin(), ways.end(), is_before);
  std::vector<Way> hull;
  for (const Way& way : ways) {
    if (!hull.empty() && way.ps >= hull.back().ps) continue;
    // The last corner is above the line from the one before it to this one.
    const auto is_above = [&] {
      const Way& a = hull[hull.size() - 2];
      const Way& b = hull.back();
      return static_cast<Int128>(b.ps - a.ps) * (way.peak - a.peak) >=
             static_cast<Int128>(way.ps - a.ps) * (b.peak - a.peak);
    };
    while (hull.size() > 1 && is_above()) hull.pop_back();
    hull.push_back(way);
  }
  return hull;
}

class Pass {
 public:
  Pass(const Sides& sides, const std::vector<SideHints>& hints, const TwoSidedQuestion& question)
      : s_(sides),
        q_(question),
        difference_(find_difference(sides)),
        here_peaks_(find_least_peaks(sides.here)),
        forward_peaks_(find_least_peaks(sides.forward)) {
    for (const SideHints& one : hints) {
      views_.emplace_back(sides, one,
                          PathQuestion{.room_bytes = q_.room_bytes,
                                       .target_ps = q_.target_ps,
                                       .max_entries = std::max<std::int64_t>(q_.max_entries - entries(), 0),
                                       .unit_bytes = one.unit_bytes,
                                       .ring = one.ring});
      views_.back().corners.resize(sides.here.state_count);
    }
  }

  PathCheck run() {
    const planner::Episode& e = s_.here;
    if (is_too_long()) return {PathAnswer::kTooManyEntries, entries(), 0};
    std::vector<std::uint32_t> first_user(e.state_count, 0);  // after which a state's ways are not needed
    for (std::size_t a = e.arcs.size(); a-- > 0;) first_user[e.arcs[a].to] = e.arcs[a].from;
    ways_.assign(e.state_count, {});
    keep(e.state_count - 1, {Part()});
    for (std::uint32_t state = e.state_count - 1; state-- > 0;) {
      std::vector<Part> all;
      for (std::uint32_t a = e.first_arc[state]; a < e.first_arc[state + 1]; ++a) add_arc(a, all);
      for (Part& way : all) level(way, state);
      keep(state, best_of(std::move(all)));
      if (is_too_long()) return {PathAnswer::kTooManyEntries, entries(), 0};
      for (std::uint32_t a = e.first_arc[state]; a < e.first_arc[state + 1]; ++a)
        if (first_user[e.arcs[a].to] == state) ways_[e.arcs[a].to] = {};
    }
    PathCheck check{.answer = PathAnswer::kNone, .entries = entries(), .found_ps = 0};
    for (const Part& way : ways_[0]) {
      if (std::max(way.peak, way.forward) > q_.room_bytes || way.ps > q_.target_ps) continue;
      if (check.answer == PathAnswer::kNone || way.ps < check.found_ps) check.found_ps = way.ps;
      check.answer = PathAnswer::kFound;
    }
    return check;
  }

 private:
  std::int64_t entries() const {
    std::int64_t sum = entries_;
    for (const View& view : views_) sum += view.bounds.entries();
    return sum;
  }

  bool is_too_long() const {
    return entries() > q_.max_entries ||
           std::any_of(views_.begin(), views_.end(), [](const View& view) { return !view.bounds.is_complete(); });
  }

  void keep(std::uint32_t state, std::vector<Part> ways) {
    for (View& view : views_) {
      std::vector<Way> seen;
      seen.reserve(ways.size());
      for (const Part& way : ways)
        seen.push_back({mixed(way.peak, way.forward, view.forward_share), view.ps_from(state, way)});
      view.corners[state] = corners_of(std::move(seen));
    }
    ways_[state] = std::move(ways);
  }

  // What is kept before a state on the two sides differs by something that is known to lie between two numbers: a peak
  // that the other side's hides is as good as the highest one that it would hide.
  void level(Part& way, std::uint32_t state) const {
    if (way.forward != kNoPeak) way.peak = std::max(way.peak, way.forward + difference_.least[state]);
    if (way.peak != kNoPeak) way.forward = std::max(way.forward, way.peak - difference_.most[state]);
  }

  // Turns all bounds to an arc and decides its groups. False: no path that takes it is within room and target.
  bool turn_to(std::uint32_t a) {
    const std::uint32_t to = s_.here.arcs[a].to;
    fates_.assign(s_.here.arcs[a].groups.size(), Fate::kOpen);
    for (View& view : views_)
      if (!view.bounds.turn_to(a) || !view.bounds.decide(view.corners[to], fates_)) return false;
    for (View& view : views_) {
      if (!view.bounds.add_up(fates_)) return false;
      view.bounds.begin_list();
    }
    own_forward_ = own_peak(forward_);
    arc_ = a;
    return true;
  }

  void add_arc(std::uint32_t a, std::vector<Part>& all) {
    const std::uint32_t to = s_.here.arcs[a].to;
    if (ways_[to].empty()) return;
    entries_ += static_cast<std::int64_t>(ways_[to].size());
    here_ = without_low_peaks(s_.here.arcs[a], here_peaks_.from_state[to]);
    forward_ = without_low_peaks(s_.forward.arcs[a], forward_peaks_.from_state[to]);
    if (!turn_to(a)) return;
    const bool is_plain_arc = is_plain(here_);
    const ArcGap last = here_.before.empty() ? ArcGap{} : here_.before.back();
    const ArcGap last_forward = forward_.before.empty() ? ArcGap{} : forward_.before.back();
    const std::int64_t end = std::max(here_.tail_bytes, last.recompute_bytes);
    std::vector<Part> parts;
    for (const Part& way : ways_[to]) {
      const Part part{.peak = std::max(raised(way.peak, here_.keep_bytes), last.forward_bytes),
                      .forward = std::max(raised(way.forward, forward_.keep_bytes), last_forward.forward_bytes),
                      .ps = way.ps + here_.base_ps,
                      .inner = is_plain_arc ? kNoPeak : end};
      if (may_stay(part, here_.groups.size())) parts.push_back(part);
    }
    for (std::size_t j = here_.groups.size(); j-- > 0 && !parts.empty() && !is_too_long();)
      pass_group(j, parts, is_plain_arc);
    for (const Part& part : parts) {
      if (here_.needs_saved && !part.any_saved) continue;
      const Part way{.peak = std::max({part.peak, part.inner, end}),
                     .forward = std::max(part.forward, forward_.tail_bytes),
                     .ps = part.ps};
      if (may_stay(way, 0)) all.push_back(way);
    }
  }

  bool may_stay(const Part& part, std::size_t j) {
    const auto known = [&](const View& view) {
      const std::int64_t share = view.forward_share;
      return Known{.ps = ps_within(view, part, j),
                   .peak = mixed(part.peak, part.forward, share),
                   .inner = part.inner == kNoPeak ? kNoPeak : mixed(part.inner, own_forward_, share),
                   .group = j};
    };
    return std::all_of(views_.begin(), views_.end(),
                       [&](View& view) { return view.bounds.may_be_in_parts(known(view)); }) &&
           std::all_of(views_.begin(), views_.end(),
                       [&](View& view) { return !view.has_groups || view.bounds.may_be_in_groups(known(view)); });
  }

  std::int64_t ps_within(const View& view, const Part& part, std::size_t j) const {
    if (!view.priced) return part.ps;
    const bool is_forward = view.priced->is_forward();
    return view.priced->ps_within({.arc = arc_,
                                   .group = j,
                                   .ps = part.ps,
                                   .other_peak = is_forward ? part.peak : part.forward,
                                   .own_peak = is_forward ? part.inner : own_forward_});
  }

  void pass_group(std::size_t j, std::vector<Part>& parts, bool is_plain_arc) {
    const planner::ArcGroup& group = here_.groups[j];
    std::vector<Part> made;
    made.reserve(2 * parts.size());
    const auto add = [&](Part part) {
      ++entries_;
      part.inner = std::max(part.inner, raised(here_.before[j].recompute_bytes, part.kept));
      part.peak = std::max(part.peak, here_.before[j].forward_bytes);
      part.forward = std::max(part.forward, forward_.before[j].forward_bytes);
      if (may_stay(part, j)) made.push_back(part);
    };
    for (const Part& part : parts) {
      if (fates_[j] != Fate::kSaved) {
        Part again = part;
        again.ps += group.time_ps;
        again.inner = std::max(again.inner, raised(group.inside_bytes, again.kept));
        add(again);
      }
      if (fates_[j] != Fate::kAgain) {
        Part saved = part;
        saved.peak = raised(saved.peak, group.bytes);
        saved.forward = raised(saved.forward, forward_.groups[j].bytes);
        saved.kept += group.bytes;
        saved.any_saved = true;
        add(saved);
      }
    }
    parts = is_plain_arc ? best_of(std::move(made)) : best_inside(j, std::move(made));
  }

  // Of two, one that is no better in its peaks and its time is left out.
  std::vector<Part> best_of(std::vector<Part> parts) {
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      if (a.peak != b.peak) return a.peak < b.peak;
      return a.forward != b.forward ? a.forward < b.forward : a.ps < b.ps;
    });
    stairs_.clear();
    std::int64_t moved = 0;
    std::vector<Part> result;
    result.reserve(parts.size());
    for (const Part& part : parts) {
      const Stair stair{part.forward, part.ps};
      const auto after = std::upper_bound(stairs_.begin(), stairs_.end(), stair,
                                          [](const Stair& a, const Stair& b) { return a.forward < b.forward; });
      if (after != stairs_.begin() && std::prev(after)->ps <= part.ps) continue;
      result.push_back(part);
      // It takes the place of those that are no better than it now.
      auto first = after != stairs_.begin() && std::prev(after)->forward == part.forward ? std::prev(after) : after;
      auto last = after;
      while (last != stairs_.end() && last->ps >= part.ps) ++last;
      moved += stairs_.end() - first;
      if (first == last) {
        stairs_.insert(first, stair);
      } else {
        *first = stair;
        stairs_.erase(first + 1, last);
      }
    }
    entries_ += moved / kMovedPerEntry;
    return result;
  }

  // The same before group `j`, where what the recompute comes to counts, too.
  std::vector<Part> best_inside(std::size_t j, std::vector<Part> parts) {
    // The highest that the recompute may still come to, without what is saved.
    std::int64_t highest = kNoPeak;
    for (std::size_t i = 0; i < j; ++i)
      highest = std::max({highest, here_.before[i].recompute_bytes, here_.groups[i].inside_bytes});
    for (Part& part : parts) {
      // The peak is certain; what is below it, and stays there, makes no difference.
      part.inner = std::max(part.inner, part.peak);
      if (part.peak != kNoPeak) part.kept = std::max(part.kept, part.peak - highest);
      if (!here_.needs_saved) part.any_saved = true;
    }
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      if (a.peak != b.peak) return a.peak < b.peak;
      if (a.forward != b.forward) return a.forward < b.forward;
      if (a.ps != b.ps) return a.ps < b.ps;
      if (a.inner != b.inner) return a.inner < b.inner;
      if (a.kept != b.kept) return a.kept < b.kept;
      return a.any_saved && !b.any_saved;
    });
    std::vector<Part> result;
    std::int64_t compared = 0;
    for (const Part& part : parts) {
      bool is_worse = false;
      for (std::size_t i = result.size(); i-- > 0 && !is_worse; ++compared)
        is_worse = result[i].forward <= part.forward && result[i].ps <= part.ps && result[i].inner <= part.inner &&
                   result[i].kept <= part.kept && (result[i].any_saved || !part.any_saved);
      if (!is_worse) result.push_back(part);
    }
    entries_ += compared / kComparedPerEntry;
    return result;
  }

  const Sides& s_;
  TwoSidedQuestion q_;
  Difference difference_;
  LeastPeaks here_peaks_;
  LeastPeaks forward_peaks_;
  std::deque<View> views_;
  std::vector<std::vector<Part>> ways_;  // by state
  std::int64_t entries_ = 0;             // without those of bounds

  // By the forward's peak, ascending, the least time of the parts up to it, ever less: while parts are compared.
  struct Stair {
    std::int64_t forward = 0;
    std::int64_t ps = 0;
  };
  std::vector<Stair> stairs_;

  // Of the arc at hand.
  std::uint32_t arc_ = 0;
  Arc here_;
  Arc forward_;
  std::int64_t own_forward_ = kNoPeak;  // what the forward's peak is at least
  std::vector<Fate> fates_;             // by group
};

}  // namespace

PathCheck look_for_path(const Sides& sides, const std::vector<SideHints>& hints, const TwoSidedQuestion& question) {
  return Pass(sides, hints, question).run();
}

}  // namespace tidemark::verify
