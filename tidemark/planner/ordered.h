#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tidemark/planner/path.h"
#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// The paths through a problem one after the other, cheapest or lowest first. Where the model says less than a replay, a
// replay judges them in this order: the first that passes is the best of all, since those still to come are no better
// by the model, and by a replay only worse. Best-first search, with bounds on what the rest of a path takes.

// What the paths are ordered by.
enum class By : std::uint8_t { kTime, kPeak };

class OrderedPaths {
 public:
  // Only paths with a peak of at most `budget_bytes`. Refers to the problem.
  OrderedPaths(const Problem& problem, By by, std::int64_t budget_bytes, std::int64_t max_work);

  // The next one, by episode, if it is at most `most` picoseconds or bytes; nothing when there is none, or at the
  // limit.
  std::optional<std::vector<Path>> next(std::int64_t most);

  bool reached_limit() const { return is_limit_; }
  // No path that next() has not returned is below: kNoPath when there are none.
  std::int64_t bound() const;
  std::int64_t work() const { return work_; }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  // The beginning of a path: up to a state, or in the middle of an arc.
  struct Node {
    std::int64_t time_ps = 0;
    std::int64_t peak = kNoPeak;   // of all before the arc, and of the arc so far
    std::int64_t kept = 0;         // bytes of earlier arcs
    std::int64_t saved = 0;        // bytes of the arc's groups
    std::int64_t inner = kNoPeak;  // what the arc's recompute has come to, less what was saved before each moment
    std::uint32_t parent = kNone;
    std::uint32_t episode = 0;
    std::uint32_t state = 0;
    std::uint32_t arc = kNone;
    std::uint32_t group = 0;  // the next to decide
    bool is_saved = false;    // the one before
    bool has_saved = false;   // any of the arc
  };
  // Of what is left from a state on: at least so much time if the peak may be so high. Peaks rise, times fall.
  using Front = std::vector<std::pair<std::int64_t, std::int64_t>>;

  bool find_fronts(std::size_t episode);  // false at the limit
  std::int64_t least_ps(std::uint32_t episode, std::uint32_t state, std::int64_t kept) const;
  void add(Node node);
  void expand(std::uint32_t parent);
  void enter(std::uint32_t parent, std::uint32_t arc);
  void decide(std::uint32_t parent, bool is_saved);
  void leave(Node node);
  std::vector<Path> path_to(std::uint32_t node) const;

  const Problem& problem_;
  By by_;
  std::int64_t budget_;
  std::int64_t max_work_;
  std::int64_t work_ = 0;
  bool is_limit_ = false;
  std::vector<std::vector<std::int64_t>> floors_;  // by episode and state
  std::vector<std::vector<Front>> fronts_;         // by episode and state
  std::vector<std::int64_t> later_ps_;             // by episode: of those after it
  std::vector<std::int64_t> later_peak_;
  std::vector<Node> nodes_;
  std::vector<std::pair<std::int64_t, std::uint32_t>> heap_;  // bound and node; of equal ones, the newest
};

}  // namespace tidemark::planner
