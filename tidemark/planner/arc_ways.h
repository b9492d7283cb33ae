#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tidemark/planner/convex.h"
#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// What the way to an arc and the first of its groups take at least, by the bytes that they may keep, if parts of groups
// could be saved. In an arc of few groups the price of a byte on the way to it bounds what they take. An arc of many,
// as a unit that is most of a model has, may be all that there is to save: then groups and way are one function of the
// bytes for both.
class ArcWays {
 public:
  // Turns to an arc. What its peak is at least leaves `own_bytes` for the way to it; nobody asks about more than
  // `most_bytes`. `way` and the arc have to stay as long as questions come.
  void turn_to(const Arc& arc, const Convex& way, std::int64_t own_bytes, std::int64_t most_bytes);

  // Of the way and the groups before `j`, which keep at most `bytes` in all, of which the way keeps at most
  // `way_bytes`. kNotEnough: that is too little.
  std::int64_t least_ps(std::size_t j, std::int64_t bytes, std::int64_t way_bytes);

 private:
  const std::vector<std::int64_t>& rest_of(std::size_t piece);

  const Arc* arc_ = nullptr;
  const Convex* way_ = nullptr;
  std::vector<std::vector<std::int64_t>> rest_;  // by piece of the way: what the groups before each take at its price
  std::vector<Convex> joint_;                    // by group, in an arc of many: with those before it
};

}  // namespace tidemark::planner
