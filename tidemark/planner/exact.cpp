#include "tidemark/planner/exact.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "tidemark/planner/convex.h"

namespace tidemark::planner {

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

// A path from somewhere to the end. In the middle of an arc, `peak` is relative to what the groups before keep, and
// `inner` and `kept` say what the arc's own recompute has come to; at states they are not used.
struct Entry {
  std::int64_t peak = 0;
  std::int64_t ps = 0;
  std::int64_t inner = kNoPeak;
  std::int64_t kept = 0;
  std::int32_t units = 0;
  std::uint32_t next = kNone;   // entry of the arc's last state
  std::uint32_t saved = kNone;  // newest link of the groups saved on the arc
  std::uint32_t arc = kNone;
};

// Time, then fewer units.
bool is_cheaper(const Entry& a, const Entry& b) { return a.ps != b.ps ? a.ps < b.ps : a.units < b.units; }

struct SavedLink {
  std::uint32_t group = 0;
  std::uint32_t before = kNone;
};

// Groups that are worth their bytes first.
std::vector<Convex::Corner> steps_of(const Arc& arc) {
  std::vector<Convex::Corner> steps;
  for (const ArcGroup& group : arc.groups)
    if (group.bytes > 0 && group.time_ps > 0) steps.push_back({group.bytes, group.time_ps});
  std::sort(steps.begin(), steps.end(), [](const Convex::Corner& a, const Convex::Corner& b) {
    const Int128 left = static_cast<Int128>(a.ps) * b.bytes;
    const Int128 right = static_cast<Int128>(b.ps) * a.bytes;
    return left != right ? left > right : a.bytes < b.bytes;
  });
  return steps;
}

std::int64_t time_of_worth(const Arc& arc) {  // of the groups that cost bytes to save
  std::int64_t ps = arc.base_ps;
  for (const ArcGroup& group : arc.groups)
    if (group.bytes > 0) ps += group.time_ps;
  return ps;
}

// What the arc's peak is at least.
std::int64_t least_peak(const Arc& arc) {
  std::int64_t peak = arc.tail_bytes;
  for (const ArcGap& gap : arc.before) peak = std::max({peak, gap.recompute_bytes, gap.forward_bytes});
  return peak;
}

// Whether nothing but the kept bytes and `tail_bytes` matters.
bool is_flat(const Arc& arc) {
  for (const ArcGap& gap : arc.before)
    if (gap.recompute_bytes != kNoPeak || gap.forward_bytes != kNoPeak) return false;
  for (const ArcGroup& group : arc.groups)
    if (group.inside_bytes != kNoPeak) return false;
  return !arc.needs_saved;
}

class Sweep {
 public:
  Sweep(const Episode& episode, const std::vector<std::int64_t>& floors, std::int64_t budget)
      : e_(episode), floors_(floors), budget_(budget) {
    for (const Arc& arc : e_.arcs) is_flat_.push_back(is_flat(arc) ? 1 : 0);
    find_ways();
  }

  std::int64_t bound_ps() const { return way_.back().least_ps(); }

  struct Result {
    bool found = false;
    bool is_whole = true;  // false: stopped at the work limit, or lists were cut
    std::int64_t ps = 0;
    std::int64_t next_ps = Convex::kNotEnough;  // the smallest time that was turned away
  };

  // Everything that takes at most `target_ps`; lists have at most `width` entries.
  Result run(std::int64_t target_ps, std::size_t width, std::int64_t max_work) {
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
      narrow(lists_[state], way_[state]);
      longest_ = std::max(longest_, lists_[state].size());
      if (work_ > stop_) return {false, false, 0, next_};
    }
    Result result;
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

  // The path that run() found.
  Path path() const {
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

  std::int64_t work() const { return work_; }
  std::size_t longest() const { return longest_; }

 private:
  // The least time of the way to each state, by what it keeps.
  void find_ways() {
    way_.resize(e_.state_count);
    std::vector<std::vector<Convex::Corner>> points(e_.state_count);
    for (std::uint32_t state = 0; state < e_.state_count; ++state) {
      way_[state] = state == 0 ? Convex({0, 0}) : Convex::below(std::move(points[state]));
      if (state + 1 == e_.state_count) break;
      way_[state].cut(budget_ - floors_[state]);
      points[state] = {};
      if (way_[state].is_empty()) continue;
      for (std::uint32_t a = e_.first_arc[state]; a < e_.first_arc[state + 1]; ++a) {
        const Arc& arc = e_.arcs[a];
        Convex f = way_[state];
        f.cut(budget_ - least_peak(arc));
        add_steps(f, {arc.keep_bytes, time_of_worth(arc)}, steps_of(arc), budget_ - floors_[arc.to], points[arc.to]);
      }
    }
  }

  // What the groups before `j` cost at least when a byte costs what it does in this piece of the way's function.
  std::int64_t rest_ps(const Arc& arc, const Convex& way, std::size_t piece, std::size_t j) {
    if (piece >= rest_.size()) rest_.resize(piece + 1);
    std::vector<std::int64_t>& sums = rest_[piece];
    if (sums.empty()) {
      const std::vector<Convex::Corner>& corners = way.corners();
      const bool is_last = piece + 1 == corners.size();
      const std::int64_t ps = is_last ? 0 : corners[piece].ps - corners[piece + 1].ps;
      const std::int64_t bytes = is_last ? 1 : corners[piece + 1].bytes - corners[piece].bytes;
      sums.push_back(0);
      for (const ArcGroup& group : arc.groups) {
        const Int128 saved = static_cast<Int128>(ps) * group.bytes / bytes;
        sums.push_back(sums.back() + (saved < group.time_ps ? static_cast<std::int64_t>(saved) : group.time_ps));
      }
    }
    return sums[j];
  }

  // Whether a path with this entry, and the groups before `j` still open, may fit and take at most the target. Two
  // things bound what may be kept before: the peak, which grows with every group that is saved, and what the arc itself
  // comes to, which does not. A price on the bytes of the first gives a bound with the groups in it.
  bool may_do(const Arc& arc, const Convex& way, const Entry& entry, std::size_t j) {
    const std::int64_t room = budget_ - entry.peak;
    const std::int64_t own_room = budget_ - std::max(entry.inner, own_);
    const std::int64_t least_room = std::min(room, own_room);
    if (least_room < way.least_bytes()) return false;
    const std::size_t piece = way.piece_at(room);
    std::int64_t ps = entry.ps + rest_ps(arc, way, piece, j);
    if (own_room >= room) {
      ps += way.at(piece, room);
    } else {
      const std::int64_t own_ps = way.at(own_room);
      ps = entry.ps + std::max(own_ps, own_ps - price(way, piece, room - own_room) + ps - entry.ps);
    }
    if (ps <= target_) return true;
    next_ = std::min(next_, ps);
    return false;
  }

  // What so many bytes cost in a piece of the way's function, rounded up.
  static std::int64_t price(const Convex& way, std::size_t piece, std::int64_t bytes) {
    const std::vector<Convex::Corner>& corners = way.corners();
    if (piece + 1 == corners.size()) return 0;
    const std::int64_t width = corners[piece + 1].bytes - corners[piece].bytes;
    const Int128 ps = static_cast<Int128>(corners[piece].ps - corners[piece + 1].ps) * bytes;
    return static_cast<std::int64_t>((ps + width - 1) / width);
  }

  void add_arc(std::uint32_t a, std::uint32_t state, std::vector<Entry>& all) {
    const Arc& arc = e_.arcs[a];
    const Convex& way = way_[state];
    if (way.is_empty() || lists_[arc.to].empty()) return;
    rest_.clear();
    const std::size_t count = arc.groups.size();
    std::vector<Entry> list;
    own_ = least_peak(arc);
    std::int64_t own = arc.tail_bytes;
    std::int64_t forward = kNoPeak;
    if (!arc.before.empty()) {
      own = std::max(own, arc.before.back().recompute_bytes);
      forward = arc.before.back().forward_bytes;
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
      if (may_do(arc, way, entry, count)) list.push_back(entry);
    }
    for (std::size_t j = count; j-- > 0 && !list.empty() && work_ <= stop_;) {
      list = is_flat_[a] != 0 ? flat_group(arc, way, j, list) : any_group(arc, way, j, list);
      narrow(list, way);
    }
    work_ += static_cast<std::int64_t>(list.size());
    for (Entry& entry : list) {
      if (arc.needs_saved && entry.saved == kNone) continue;
      entry.peak = std::max({entry.peak, entry.inner, own});
      entry.inner = kNoPeak;
      entry.kept = 0;
      if (may_do(arc, way, entry, 0)) all.push_back(entry);
    }
  }

  Entry saved(const Entry& entry, std::size_t j, std::int64_t bytes) {
    Entry e = entry;
    e.peak = e.peak == kNoPeak ? kNoPeak : e.peak + bytes;
    e.kept += bytes;
    links_.push_back({static_cast<std::uint32_t>(j), entry.saved});
    e.saved = static_cast<std::uint32_t>(links_.size()) - 1;
    return e;
  }

  // Both lists ascend in their peaks and descend in their times, so that one walk merges them.
  std::vector<Entry> flat_group(const Arc& arc, const Convex& way, std::size_t j, const std::vector<Entry>& list) {
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
      if (!may_do(arc, way, probe, j)) continue;
      result.push_back(is_recomputed ? probe : saved(list[source], j, group.bytes));
    }
    return result;
  }

  std::vector<Entry> any_group(const Arc& arc, const Convex& way, std::size_t j, const std::vector<Entry>& list) {
    const ArcGroup& group = arc.groups[j];
    const ArcGap& gap = arc.before[j];
    std::vector<Entry> made;
    const auto add = [&](Entry entry) {
      ++work_;
      if (gap.recompute_bytes != kNoPeak) entry.inner = std::max(entry.inner, gap.recompute_bytes + entry.kept);
      entry.peak = std::max(entry.peak, gap.forward_bytes);
      if (may_do(arc, way, entry, j)) made.push_back(entry);
    };
    for (const Entry& entry : list) {
      Entry again = entry;
      again.ps += group.time_ps;
      if (group.inside_bytes != kNoPeak) again.inner = std::max(again.inner, group.inside_bytes + again.kept);
      add(again);
      add(saved(entry, j, group.bytes));
    }
    return undominated(arc, std::move(made));
  }

  // Drops what is no better in any respect than another: peak, time, and what the recompute may still come to.
  std::vector<Entry> undominated(const Arc& arc, std::vector<Entry> list) {
    // Below the peak that is certain, how the recompute got on does not matter.
    for (Entry& entry : list) entry.inner = std::max(entry.inner, entry.peak);
    std::stable_sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) {
      if (a.peak != b.peak) return a.peak < b.peak;
      if (a.inner != b.inner) return a.inner < b.inner;
      if (a.ps != b.ps) return a.ps < b.ps;
      if (a.units != b.units) return a.units < b.units;
      return a.kept < b.kept;
    });
    std::vector<Entry> result;
    for (const Entry& entry : list) {
      bool is_worse = false;
      for (std::size_t i = result.size(); i-- > 0 && !is_worse;) {
        const Entry& other = result[i];
        is_worse = other.inner <= entry.inner && other.kept <= entry.kept && !is_cheaper(entry, other) &&
                   (!arc.needs_saved || other.saved != kNone || entry.saved == kNone);
      }
      if (!is_worse) result.push_back(entry);
    }
    return result;
  }

  // Ascending peaks, falling times.
  static std::vector<Entry> pareto(std::vector<Entry> list) {
    std::stable_sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) {
      return a.peak != b.peak ? a.peak < b.peak : is_cheaper(a, b);
    });
    std::vector<Entry> result;
    for (const Entry& entry : list)
      if (result.empty() || is_cheaper(entry, result.back())) result.push_back(entry);
    return result;
  }

  // Keeps the most promising entries.
  void narrow(std::vector<Entry>& list, const Convex& way) {
    if (list.size() <= width_) return;
    was_cut_ = true;
    std::vector<std::pair<std::int64_t, std::uint32_t>> order;
    for (std::uint32_t i = 0; i < list.size(); ++i)
      order.emplace_back(list[i].ps + way.at(budget_ - std::max(list[i].peak, list[i].inner)), i);
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(width_), order.end());
    order.resize(width_);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<Entry> kept;
    for (const auto& [ps, i] : order) kept.push_back(list[i]);
    list = std::move(kept);
  }

  const Episode& e_;
  const std::vector<std::int64_t>& floors_;
  std::int64_t budget_;
  std::vector<std::uint8_t> is_flat_;  // by arc
  std::vector<Convex> way_;            // by state
  std::int64_t target_ = 0;
  std::int64_t own_ = kNoPeak;  // what the peak of the arc in hand is at least
  std::int64_t next_ = 0;
  std::size_t width_ = 0;
  std::int64_t stop_ = 0;
  bool was_cut_ = false;
  std::int64_t work_ = 0;
  std::size_t longest_ = 0;
  std::vector<std::vector<Entry>> lists_;  // by state
  std::vector<SavedLink> links_;
  std::vector<std::vector<std::int64_t>> rest_;  // of the arc, by piece
  std::uint32_t best_ = 0;
};

// Leaves out moments of arcs that lie below what follows, whatever is saved.
void forget_what_cannot_matter(Arc& arc, std::int64_t after) {
  const std::int64_t least = after == kNoPeak ? kNoPeak : after + arc.keep_bytes;
  for (ArcGap& gap : arc.before) {
    if (gap.recompute_bytes <= least) gap.recompute_bytes = kNoPeak;
    if (gap.forward_bytes <= least) gap.forward_bytes = kNoPeak;
  }
  for (ArcGroup& group : arc.groups)
    if (group.inside_bytes <= least) group.inside_bytes = kNoPeak;
}

}  // namespace

ExactSolver::ExactSolver(Problem problem) : problem_(std::move(problem)) {
  smallest_peak_bytes_ = problem_.ground_bytes;
  for (Episode& episode : problem_.episodes) {
    const std::vector<std::int64_t>& floor = floors_.emplace_back(find_floors(episode));
    for (Arc& arc : episode.arcs)
      if (floor[arc.to] != kNoPath) forget_what_cannot_matter(arc, floor[arc.to]);
    smallest_peak_bytes_ = std::max(smallest_peak_bytes_, floor[0]);
  }
}

Solution ExactSolver::solve(const ExactOptions& options) const {
  Solution solution;
  solution.smallest_peak_bytes = smallest_peak_bytes_;
  if (options.budget_bytes < smallest_peak_bytes_) return solution;

  constexpr std::size_t kBeam = 64;
  constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;
  constexpr std::int64_t kFirstStep = 4096;  // the first target is above the bound by one part in so many
  struct Part {
    Sweep sweep;
    std::int64_t bound_ps;
    std::optional<Path> path;
    std::int64_t ps = Convex::kNotEnough;
    bool is_done = false;
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i < problem_.episodes.size(); ++i) {
    Sweep sweep(problem_.episodes[i], floors_[i], options.budget_bytes);
    const std::int64_t bound = sweep.bound_ps();
    parts.push_back({std::move(sweep), bound, {}, Convex::kNotEnough, false});
  }
  bool is_limit = false;
  const auto left = [&] {
    std::int64_t used = 0;
    for (const Part& part : parts) used += part.sweep.work();
    return options.max_work - used;
  };
  const auto run = [&](Part& part, std::int64_t target, std::size_t width, std::int64_t max_work) {
    ++solution.statistics.passes;
    const Sweep::Result result = part.sweep.run(target, width, max_work);
    if (result.found && result.ps < part.ps) {
      part.ps = result.ps;
      part.path = part.sweep.path();
    }
    return result;
  };
  for (Part& part : parts) {
    std::int64_t step = std::max<std::int64_t>(1, part.bound_ps / kFirstStep);
    while (part.bound_ps < part.ps) {
      const std::int64_t target = std::min(part.bound_ps + step, part.ps - 1);
      const Sweep::Result result = run(part, target, kAny, left());
      if (result.found) {
        part.bound_ps = part.ps;
      } else if (!result.is_whole) {
        // Something that fits, by a pass with short lists.
        is_limit = true;
        run(part, Convex::kNotEnough - 1, kBeam, kNoLimit);
        break;
      } else {
        part.bound_ps = std::min(std::max(target + 1, result.next_ps), part.ps);
      }
      step *= 2;
    }
    solution.statistics.longest_list =
        std::max(solution.statistics.longest_list, static_cast<std::int64_t>(part.sweep.longest()));
  }
  solution.end = is_limit ? SolveEnd::kLimit : SolveEnd::kOptimal;
  solution.peak_bytes = problem_.ground_bytes;
  bool has_all = true;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    solution.bound_ps += parts[i].bound_ps;
    solution.statistics.work += parts[i].sweep.work();
    if (!parts[i].path) {
      has_all = false;
      continue;
    }
    solution.time_ps += parts[i].ps;
    solution.paths.push_back(*parts[i].path);
    solution.peak_bytes = std::max(solution.peak_bytes, measure(problem_.episodes[i], *parts[i].path).peak_bytes);
  }
  if (!has_all) solution.paths.clear();
  return solution;
}

Solution ExactSolver::solve_smallest(std::int64_t max_work) const {
  return solve({.budget_bytes = smallest_peak_bytes_, .max_work = max_work});
}

PathFigures measure(const Episode& episode, const Path& path) {
  PathFigures figures{kNoPeak, 0, 0};
  for (const ArcUse& use : path) {
    const Arc& arc = episode.arcs[use.arc];
    std::vector<std::uint8_t> is_saved(arc.groups.size(), 0);
    for (const std::uint32_t group : use.saved) is_saved[group] = 1;
    std::int64_t peak = arc.tail_bytes;
    std::int64_t after = 0;
    for (std::size_t j = arc.groups.size() + 1; j-- > 0;) {
      if (j < arc.groups.size()) {
        if (is_saved[j] != 0)
          after += arc.groups[j].bytes;
        else if (arc.groups[j].inside_bytes != kNoPeak)
          peak = std::max(peak, arc.groups[j].inside_bytes + after);
      }
      if (j < arc.before.size() && arc.before[j].recompute_bytes != kNoPeak)
        peak = std::max(peak, arc.before[j].recompute_bytes + after);
    }
    std::int64_t before = 0;
    std::int64_t ps = arc.base_ps;
    for (std::size_t j = 0; j < arc.before.size(); ++j) {
      if (arc.before[j].forward_bytes != kNoPeak) peak = std::max(peak, arc.before[j].forward_bytes + before);
      if (j == arc.groups.size()) break;
      if (is_saved[j] != 0)
        before += arc.groups[j].bytes;
      else
        ps += arc.groups[j].time_ps;
    }
    if (peak != kNoPeak) figures.peak_bytes = std::max(figures.peak_bytes, figures.kept_bytes + peak);
    figures.kept_bytes += arc.keep_bytes + before;
    figures.time_ps += ps;
  }
  return figures;
}

plan::Plan plan_of(const Space& space, const Problem& problem, const std::vector<Path>& paths) {
  plan::Plan plan;
  for (std::size_t e = 0; e < paths.size(); ++e)
    for (const ArcUse& use : paths[e]) {
      const Arc& arc = problem.episodes[e].arcs[use.arc];
      if (!arc.is_unit()) continue;
      const Candidate& c = space.candidates[arc.candidate];
      std::vector<std::uint8_t> saved(c.choices.size(), 0);
      for (const std::uint32_t choice : arc.always_saved) saved[choice] = 1;
      for (const std::uint32_t group : use.saved) saved[arc.groups[group].choice] = 1;
      plan.units.push_back(make_unit(c, saved));
    }
  return plan;
}

}  // namespace tidemark::planner
