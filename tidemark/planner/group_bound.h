#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::planner {

// What the way to somewhere takes at least when groups are saved as a whole: sharper than with parts of groups, and not
// for nothing. Two implementations: by all sums of rounded sizes (lattice.h), and by their residues (residues.h). Times
// are those of the way for at most so many kept bytes, or Convex::kNotEnough where they are not enough.
class GroupBound {
 public:
  virtual ~GroupBound() = default;

  virtual std::int64_t bound_ps() const = 0;  // of all paths
  virtual std::int64_t known_ps() const = 0;  // paths that take longer are not told from each other
  virtual std::int64_t take_work() = 0;       // cells made since it was last asked

  virtual std::int64_t to_state(std::uint32_t state, std::int64_t bytes) = 0;
  // The arc that is asked about next. Arcs from later states first cost least.
  struct Entered {
    std::uint32_t arc = 0;
    std::int64_t least_bytes = 0;  // that are asked about
    std::int64_t most_bytes = 0;
    std::size_t ways = 0;  // about how many questions come for each group
  };
  virtual void enter(const Entered& entered) = 0;
  virtual std::int64_t to_arc(std::int64_t bytes) const = 0;
  virtual std::int64_t to_group(std::size_t group, std::int64_t bytes) const = 0;  // with the arc's groups before it
};

}  // namespace tidemark::planner
