#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/planner/convex.h"
#include "tidemark/planner/path.h"
#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// What is left of an episode when only paths up to a target matter. With a price on every kept byte, a shortest path
// gives a bound for all paths, and for those that take an arc or decide a group one way: what would go above the target
// is decided the other way. Proof: docs/how_plans_are_found.md, "Prices".

// An arc of a narrowed episode, in terms of the whole one.
struct NarrowedArc {
  std::uint32_t arc = 0;
  std::vector<std::uint32_t> open;   // the groups left to decide
  std::vector<std::uint32_t> saved;  // that were decided
};

struct Narrowed {
  Episode episode;
  std::vector<NarrowedArc> origin;            // by arc
  std::int64_t next_ps = Convex::kNotEnough;  // paths that were left out take at least this

  // The same path through the whole episode.
  Path widened(const Path& path) const;
};

// Bounds by prices, for one budget; narrows for any target.
class Bounds {
 public:
  Bounds(const Episode& episode, const std::vector<std::int64_t>& floors, std::int64_t budget_bytes,
         std::vector<std::int64_t> prices);

  const Episode& episode() const { return episode_; }
  Int128 least() const { return before_.back(); }
  Int128 through(std::uint32_t arc) const;  // of all paths that take it
  const std::vector<std::int64_t>& prices() const { return prices_; }
  std::int64_t bound_ps() const;  // kNotEnough: no path fits
  Narrowed narrow(std::int64_t target_ps) const;
  // What the way from a state to the end takes at least when so many bytes are kept before.
  std::int64_t rest_ps(std::uint32_t state, std::int64_t bytes) const;

 private:
  Int128 weight_of(const Arc& arc) const;

  const Episode& episode_;
  std::vector<std::int64_t> prices_;
  std::vector<std::uint8_t> fits_;  // by arc: some path that takes it may fit
  std::vector<Int128> weight_;      // by arc
  std::vector<Int128> before_;      // by state
  std::vector<Int128> after_;       // by state
};

// The arc with some groups decided; `decided` has -1 (open), 0 (run again) or 1 (saved) for each.
Arc decide_groups(const Arc& arc, const std::vector<std::int8_t>& decided);

}  // namespace tidemark::planner
