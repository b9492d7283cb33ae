#include "tidemark/verify/path_check.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "tidemark/verify/arc_peaks.h"

namespace tidemark::verify {

namespace {

using planner::Arc;
using planner::ArcGap;
using planner::ArcGroup;
using planner::kNoPeak;

// A way in the middle of an arc. `peak` is relative to what is kept before, groups of the arc included; `inner` is what
// the arc's own recompute has come to, relative to what is kept before the arc.
struct Part {
  std::int64_t peak = kNoPeak;
  std::int64_t ps = 0;
  std::int64_t inner = kNoPeak;
  std::int64_t kept = 0;  // by the arc's groups from here on
  bool any_saved = false;
};

class Pass {
 public:
  Pass(const planner::Episode& episode, const LeastPeaks& peaks, const TimeLines& lines, const PathQuestion& question)
      : e_(episode), peaks_(peaks), q_(question), bounds_(episode, peaks, lines, question) {}

  PathCheck run() {
    if (is_too_long()) return {PathAnswer::kTooManyEntries, entries(), 0};
    std::vector<std::uint32_t> first_user(e_.state_count, 0);  // after which a state's ways are not needed
    for (std::size_t a = e_.arcs.size(); a-- > 0;) first_user[e_.arcs[a].to] = e_.arcs[a].from;
    ways_.assign(e_.state_count, {});
    ways_.back().push_back({kNoPeak, 0});
    for (std::uint32_t state = e_.state_count - 1; state-- > 0;) {
      std::vector<Way> all;
      for (std::uint32_t a = e_.first_arc[state]; a < e_.first_arc[state + 1]; ++a) add_arc(a, all);
      ways_[state] = best_of(std::move(all));
      if (is_too_long()) return {PathAnswer::kTooManyEntries, entries(), 0};
      for (std::uint32_t a = e_.first_arc[state]; a < e_.first_arc[state + 1]; ++a)
        if (first_user[e_.arcs[a].to] == state) ways_[e_.arcs[a].to] = {};
    }
    PathCheck check{.answer = PathAnswer::kNone, .entries = entries(), .found_ps = 0};
    for (const Way& way : ways_[0]) {
      if (way.peak > q_.room_bytes || way.ps > q_.target_ps) continue;
      if (check.answer == PathAnswer::kNone || way.ps < check.found_ps) check.found_ps = way.ps;
      check.answer = PathAnswer::kFound;
    }
    return check;
  }

 private:
  std::int64_t entries() const { return entries_ + bounds_.entries(); }
  bool is_too_long() const { return !bounds_.is_complete() || entries() > q_.max_entries; }

  void add_arc(std::uint32_t a, std::vector<Way>& all) {
    const std::vector<Way>& after = ways_[e_.arcs[a].to];
    if (after.empty() || !bounds_.turn_to(a)) return;
    arc_ = without_low_peaks(e_.arcs[a], peaks_.from_state[e_.arcs[a].to]);
    entries_ += static_cast<std::int64_t>(after.size());
    fates_.assign(arc_.groups.size(), Fate::kOpen);
    if (!bounds_.decide(after, fates_) || !bounds_.add_up(fates_)) return;
    const bool is_plain_arc = is_plain(arc_);
    const ArcGap last = arc_.before.empty() ? ArcGap{} : arc_.before.back();
    std::vector<Part> parts;
    bounds_.begin_list();
    for (const Way& way : after) {
      const Part part{.peak = std::max(raised(way.peak, arc_.keep_bytes), last.forward_bytes),
                      .ps = way.ps + arc_.base_ps,
                      .inner = is_plain_arc ? kNoPeak : std::max(arc_.tail_bytes, last.recompute_bytes)};
      if (may_stay(part, arc_.groups.size())) parts.push_back(part);
    }
    for (std::size_t j = arc_.groups.size(); j-- > 0 && !parts.empty() && !is_too_long();) {
      bounds_.begin_list();
      if (is_plain_arc)
        pass_plain_group(j, parts);
      else
        pass_group(j, parts);
    }
    bounds_.begin_list();
    for (Part& part : parts) {
      if (arc_.needs_saved && !part.any_saved) continue;
      part.peak = std::max({part.peak, part.inner, arc_.tail_bytes});
      part.inner = kNoPeak;
      if (may_stay(part, 0)) all.push_back({part.peak, part.ps});
    }
  }

  bool may_stay(const Part& part, std::size_t j) {
    return bounds_.may_be({.ps = part.ps, .peak = part.peak, .inner = part.inner, .group = j});
  }

  // Parts ascend in their peaks and descend in their times, before and after.
  void pass_plain_group(std::size_t j, std::vector<Part>& parts) {
    const ArcGroup& group = arc_.groups[j];
    if (fates_[j] != Fate::kOpen) {
      for (Part& part : parts) {
        if (fates_[j] == Fate::kSaved)
          part.peak = raised(part.peak, group.bytes);
        else
          part.ps += group.time_ps;
      }
      return;
    }
    std::vector<Part> result;
    std::size_t again = 0;
    std::size_t saved = 0;
    while (again < parts.size() || saved < parts.size()) {
      Part if_again;
      Part if_saved;
      if (again < parts.size()) {
        if_again = parts[again];
        if_again.ps += group.time_ps;
      }
      if (saved < parts.size()) {
        if_saved = parts[saved];
        if_saved.peak = raised(if_saved.peak, group.bytes);
      }
      const bool takes_again = saved == parts.size() ||
                               (again < parts.size() && (if_again.peak != if_saved.peak ? if_again.peak < if_saved.peak
                                                                                        : if_again.ps <= if_saved.ps));
      const Part& part = takes_again ? if_again : if_saved;
      ++(takes_again ? again : saved);
      ++entries_;
      if (!result.empty() && part.ps >= result.back().ps) continue;
      if (may_stay(part, j)) result.push_back(part);
    }
    parts = std::move(result);
  }

  void pass_group(std::size_t j, std::vector<Part>& parts) {
    const ArcGroup& group = arc_.groups[j];
    const ArcGap& gap = arc_.before[j];
    std::vector<Part> made;
    const auto add = [&](Part part) {
      ++entries_;
      part.inner = std::max(part.inner, raised(gap.recompute_bytes, part.kept));
      part.peak = std::max(part.peak, gap.forward_bytes);
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
        saved.kept += group.bytes;
        saved.any_saved = true;
        add(saved);
      }
    }
    parts = best_of(j, std::move(made));
  }

  // Of two parts, one that is no better in anything is left out.
  std::vector<Part> best_of(std::size_t j, std::vector<Part> parts) const {
    // The highest that the recompute may still come to, without what is saved.
    std::int64_t highest = kNoPeak;
    for (std::size_t i = 0; i < j; ++i)
      highest = std::max({highest, arc_.before[i].recompute_bytes, arc_.groups[i].inside_bytes});
    for (Part& part : parts) {
      // The peak is certain; what is below it, and stays there, makes no difference.
      part.inner = std::max(part.inner, part.peak);
      part.kept = std::max(part.kept, part.peak - highest);
      if (!arc_.needs_saved) part.any_saved = true;
    }
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      if (a.peak != b.peak) return a.peak < b.peak;
      if (a.ps != b.ps) return a.ps < b.ps;
      if (a.inner != b.inner) return a.inner < b.inner;
      if (a.kept != b.kept) return a.kept < b.kept;
      return a.any_saved && !b.any_saved;
    });
    std::vector<Part> result;
    for (const Part& part : parts) {
      bool is_worse = false;
      for (std::size_t i = result.size(); i-- > 0 && !is_worse;)
        is_worse = result[i].ps <= part.ps && result[i].inner <= part.inner && result[i].kept <= part.kept &&
                   (result[i].any_saved || !part.any_saved);
      if (!is_worse) result.push_back(part);
    }
    return result;
  }

  static std::vector<Way> best_of(std::vector<Way> ways) {
    std::sort(ways.begin(), ways.end(),
              [](const Way& a, const Way& b) { return a.peak != b.peak ? a.peak < b.peak : a.ps < b.ps; });
    std::vector<Way> result;
    for (const Way& way : ways)
      if (result.empty() || way.ps < result.back().ps) result.push_back(way);
    return result;
  }

  const planner::Episode& e_;
  const LeastPeaks& peaks_;
  PathQuestion q_;
  WayBounds bounds_;
  std::vector<std::vector<Way>> ways_;  // by state
  std::int64_t entries_ = 0;            // without those of bounds

  // Of the arc at hand.
  Arc arc_;
  std::vector<Fate> fates_;  // by group
};

}  // namespace

PathCheck look_for_path(const planner::Episode& episode, const LeastPeaks& peaks, const TimeLines& lines,
                        const PathQuestion& question) {
  return Pass(episode, peaks, lines, question).run();
}

}  // namespace tidemark::verify
