#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tidemark/planner/arc_ways.h"
#include "tidemark/planner/convex.h"
#include "tidemark/planner/group_bound.h"
#include "tidemark/planner/path.h"
#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// One pass from the last state of an episode to the first that finds all paths up to a target, told by their peak and
// their time: those that are worse in both than another are dropped, and so are those that cannot become cheap enough.

struct SweepResult {
  bool found = false;
  bool is_whole = true;  // false: stopped at the work limit, or lists were cut
  std::int64_t ps = 0;
  std::int64_t next_ps = Convex::kNotEnough;  // the smallest time that was turned away
};

class Sweep {
 public:
  // With a bound of whole groups, fewer paths are followed; for targets up to what it knows.
  // Requires: `ways` is find_ways(episode, find_floors(episode), budget_bytes); both outlive the pass.
  Sweep(const Episode& episode, const std::vector<Convex>& ways, std::int64_t budget_bytes, GroupBound* groups);

  // Everything that takes at most `target_ps`; lists have at most `width` entries.
  SweepResult run(std::int64_t target_ps, std::size_t width, std::int64_t max_work);
  // The path that run() found.
  Path path() const;

  std::int64_t work() const { return work_; }
  std::size_t longest() const { return longest_; }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

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

  struct SavedLink {
    std::uint32_t group = 0;
    std::uint32_t before = kNone;
  };

  static bool is_cheaper(const Entry& a, const Entry& b);
  static std::vector<Entry> pareto(std::vector<Entry> list);
  std::vector<Entry> undominated(const Arc& arc, std::size_t j, std::vector<Entry> list);
  void add_arc(std::uint32_t a, std::uint32_t state, std::vector<Entry>& all);
  void enter();
  bool may_do(const Entry& entry, std::size_t j);
  Entry saved(const Entry& entry, std::size_t j, std::int64_t bytes);
  std::vector<Entry> flat_group(const Arc& arc, std::size_t j, const std::vector<Entry>& list);
  std::vector<Entry> any_group(const Arc& arc, std::size_t j, const std::vector<Entry>& list);
  template <typename RestPs>
  void shorten(std::vector<Entry>& list, const RestPs& rest_ps_of);

  const Episode& e_;
  std::int64_t budget_;
  std::vector<std::uint8_t> is_flat_;            // by arc
  const std::vector<Convex>& way_;               // by state
  std::optional<GroupBound::Entered> to_enter_;  // the arc in hand, as long as its bound was not asked for
  std::int64_t target_ = 0;
  std::int64_t own_ = kNoPeak;  // what the peak of the arc in hand is at least
  ArcWays ways_to_arc_;         // of it
  std::int64_t next_ = 0;
  std::size_t width_ = 0;
  std::int64_t stop_ = 0;
  bool was_cut_ = false;
  std::int64_t work_ = 0;
  std::int64_t compared_ = 0;
  std::size_t longest_ = 0;
  std::vector<std::vector<Entry>> lists_;  // by state
  std::vector<SavedLink> links_;
  std::uint32_t best_ = 0;
  GroupBound* groups_;
};

}  // namespace tidemark::planner
