#include "tidemark/planner/ordered.h"

#include <algorithm>

#include "tidemark/planner/floors.h"
#include "tidemark/planner/ways.h"

namespace tidemark::planner {

namespace {

constexpr std::size_t kLongestFront = 256;
constexpr std::size_t kMostNodes = 500'000;  // some 50 MB

using Front = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Peaks rise and times fall; a front that is too long is made weaker, not wrong.
void tidy(Front& front) {
  std::sort(front.begin(), front.end());
  Front kept;
  for (const auto& [peak, ps] : front)
    if (kept.empty() || ps < kept.back().second) kept.emplace_back(peak, ps);
  while (kept.size() > kLongestFront) {
    Front half;
    for (std::size_t i = 0; i < kept.size(); i += 2)
      half.emplace_back(kept[i].first, kept[std::min(i + 1, kept.size() - 1)].second);
    kept = std::move(half);
  }
  front = std::move(kept);
}

std::int64_t plus(std::int64_t peak, std::int64_t bytes) { return peak == kNoPeak ? kNoPeak : peak + bytes; }

bool is_after(const std::pair<std::int64_t, std::uint32_t>& a, const std::pair<std::int64_t, std::uint32_t>& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

}  // namespace

OrderedPaths::OrderedPaths(const Problem& problem, By by, std::int64_t budget_bytes, std::int64_t max_work)
    : problem_(problem), by_(by), budget_(budget_bytes), max_work_(max_work) {
  const std::size_t count = problem.episodes.size();
  fronts_.resize(count);
  later_ps_.assign(count, 0);
  later_peak_.assign(count, problem.ground_bytes);
  for (const Episode& episode : problem.episodes) floors_.push_back(find_floors(episode));
  for (std::size_t e = count; e-- > 0;) {
    if (floors_[e][0] > budget_) return;
    if (by_ == By::kTime && !find_fronts(e)) {  // nothing is known of any path
      is_limit_ = true;
      nodes_.push_back({});
      heap_ = {{0, 0}};
      return;
    }
    if (e == 0) break;
    later_ps_[e - 1] = later_ps_[e] + (by_ == By::kTime ? fronts_[e][0].back().second : 0);
    later_peak_[e - 1] = std::max(later_peak_[e], floors_[e][0]);
  }
  if (problem.ground_bytes <= budget_ && count > 0) add({});
}

// Whatever a recompute adds for what is saved is left out, so that two numbers tell a path.
bool OrderedPaths::find_fronts(std::size_t episode) {
  const Episode& e = problem_.episodes[episode];
  std::vector<Front>& fronts = fronts_[episode];
  fronts.resize(e.state_count);
  fronts.back() = {{kNoPeak, 0}};
  for (std::uint32_t state = e.state_count - 1; state-- > 0;) {
    for (std::uint32_t a = e.first_arc[state]; a < e.first_arc[state + 1]; ++a) {
      if (work_ > max_work_) return false;
      const Arc& arc = e.arcs[a];
      Front front;
      for (const auto& [peak, ps] : fronts[arc.to]) front.emplace_back(plus(peak, arc.keep_bytes), ps + arc.base_ps);
      for (const ArcGroup& group : arc.groups) {
        const std::size_t count = front.size();
        for (std::size_t i = 0; i < count; ++i) {
          front.emplace_back(plus(front[i].first, group.bytes), front[i].second);
          front[i].second += group.time_ps;
        }
        tidy(front);
        work_ += static_cast<std::int64_t>(front.size());
      }
      const std::int64_t own = least_peak(arc);
      for (const auto& [peak, ps] : front)
        if (std::max(own, peak) <= budget_) fronts[state].emplace_back(std::max(own, peak), ps);
    }
    tidy(fronts[state]);
  }
  return true;
}

std::int64_t OrderedPaths::least_ps(std::uint32_t episode, std::uint32_t state, std::int64_t kept) const {
  const Front& front = fronts_[episode][state];
  const auto after = std::partition_point(front.begin(), front.end(),
                                          [&](const auto& point) { return plus(point.first, kept) <= budget_; });
  return after == front.begin() ? kNoPath : std::prev(after)->second;
}

std::int64_t OrderedPaths::bound() const { return heap_.empty() ? kNoPath : heap_.front().first; }

// Nodes that cannot become a path within the budget are not kept.
void OrderedPaths::add(Node node) {
  const Episode& e = problem_.episodes[node.episode];
  std::int64_t peak = std::max(node.peak, later_peak_[node.episode]);
  std::uint32_t state = node.state;
  std::int64_t kept = node.kept;
  if (node.arc != kNone) {
    const Arc& arc = e.arcs[node.arc];
    state = arc.to;
    kept += arc.keep_bytes + node.saved;
    peak = std::max(peak, node.kept + plus(node.inner, node.saved));
  }
  if (floors_[node.episode][state] == kNoPath) return;
  peak = std::max(peak, plus(floors_[node.episode][state], kept));
  if (peak > budget_) return;
  std::int64_t bound = peak;
  if (by_ == By::kTime) {
    const std::int64_t rest = least_ps(node.episode, state, kept);
    if (rest == kNoPath) return;
    bound = node.time_ps + rest + later_ps_[node.episode];
  }
  heap_.emplace_back(bound, static_cast<std::uint32_t>(nodes_.size()));
  std::push_heap(heap_.begin(), heap_.end(), is_after);
  nodes_.push_back(node);
}

std::optional<std::vector<Path>> OrderedPaths::next(std::int64_t most) {
  while (!is_limit_ && !heap_.empty() && heap_.front().first <= most) {
    if (++work_ > max_work_ || nodes_.size() > kMostNodes) {
      is_limit_ = true;
      break;
    }
    const std::uint32_t top = heap_.front().second;
    std::pop_heap(heap_.begin(), heap_.end(), is_after);
    heap_.pop_back();
    const Node& node = nodes_[top];
    if (node.arc == kNone && node.state + 1 == problem_.episodes[node.episode].state_count) return path_to(top);
    expand(top);
  }
  return std::nullopt;
}

void OrderedPaths::expand(std::uint32_t parent) {
  const Node node = nodes_[parent];
  if (node.arc != kNone) {
    decide(parent, false);
    decide(parent, true);
    return;
  }
  const Episode& e = problem_.episodes[node.episode];
  for (std::uint32_t a = e.first_arc[node.state]; a < e.first_arc[node.state + 1]; ++a) enter(parent, a);
}

void OrderedPaths::enter(std::uint32_t parent, std::uint32_t a) {
  Node node = nodes_[parent];
  const Arc& arc = problem_.episodes[node.episode].arcs[a];
  node.parent = parent;
  node.arc = a;
  node.group = 0;
  node.saved = 0;
  node.has_saved = node.is_saved = false;
  node.inner = arc.before.empty() ? kNoPeak : arc.before.front().recompute_bytes;
  node.time_ps += arc.base_ps;
  std::int64_t own = arc.tail_bytes;
  if (!arc.before.empty()) own = std::max(own, arc.before.front().forward_bytes);
  node.peak = std::max(node.peak, plus(own, node.kept));
  arc.groups.empty() ? leave(node) : add(node);
}

void OrderedPaths::decide(std::uint32_t parent, bool is_saved) {
  Node node = nodes_[parent];
  const Arc& arc = problem_.episodes[node.episode].arcs[node.arc];
  const ArcGroup& group = arc.groups[node.group];
  node.parent = parent;
  node.is_saved = is_saved;
  if (is_saved) {
    node.saved += group.bytes;
    node.has_saved = true;
  } else {
    node.time_ps += group.time_ps;
    node.inner = std::max(node.inner, plus(group.inside_bytes, -node.saved));
  }
  const ArcGap& gap = arc.before[++node.group];
  node.inner = std::max(node.inner, plus(gap.recompute_bytes, -node.saved));
  node.peak = std::max(node.peak, plus(gap.forward_bytes, node.kept + node.saved));
  node.group < arc.groups.size() ? add(node) : leave(node);
}

// The arc is decided: on to its last state, or to the next episode.
void OrderedPaths::leave(Node node) {
  const Episode& e = problem_.episodes[node.episode];
  const Arc& arc = e.arcs[node.arc];
  if (arc.needs_saved && !node.has_saved) return;
  node.peak = std::max(node.peak, plus(node.inner, node.kept + node.saved));
  node.kept += arc.keep_bytes + node.saved;
  node.state = arc.to;
  // The arc's own number stays in a node between, from which the path is read back.
  const auto last = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(node);
  node.parent = last;
  node.arc = kNone;
  node.saved = 0;
  node.inner = kNoPeak;
  if (node.state + 1 == e.state_count && node.episode + 1 < problem_.episodes.size()) {
    ++node.episode;
    node.state = 0;
    node.kept = 0;
  }
  add(node);
}

std::vector<Path> OrderedPaths::path_to(std::uint32_t at) const {
  std::vector<Path> paths(problem_.episodes.size());
  for (; at != kNone; at = nodes_[at].parent) {
    const Node& node = nodes_[at];
    if (node.arc == kNone) continue;
    Path& path = paths[node.episode];
    const bool is_first = nodes_[node.parent].arc == kNone;  // the newest node of an arc comes first
    const bool is_newest = path.empty() || path.back().arc != node.arc;
    if (is_newest) path.push_back({node.arc, {}});
    if (node.group > 0 && node.is_saved) path.back().saved.push_back(node.group - 1);
    if (is_first) std::reverse(path.back().saved.begin(), path.back().saved.end());
  }
  for (Path& path : paths) std::reverse(path.begin(), path.end());
  return paths;
}

}  // namespace tidemark::planner
