#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tidemark::planner {

__extension__ using Int128 = __int128;

// What a time is at least, given how many bytes may be kept: a decreasing convex function, told by its corners. Fewer
// bytes than the first corner has are not enough; more than the last one has do not help. Integers throughout: where a
// value lies between two corners it is rounded down.
class Convex {
 public:
  static constexpr std::int64_t kNotEnough = std::numeric_limits<std::int64_t>::max();

  struct Corner {
    std::int64_t bytes = 0;
    std::int64_t ps = 0;

    friend bool operator==(const Corner&, const Corner&) = default;
  };

  Convex() = default;
  explicit Convex(Corner only) : corners_{only} {}

  // The largest such function below all points.
  static Convex below(std::vector<Corner> points);

  const std::vector<Corner>& corners() const { return corners_; }
  bool is_empty() const { return corners_.empty(); }
  std::int64_t least_ps() const { return corners_.empty() ? kNotEnough : corners_.back().ps; }
  std::int64_t least_bytes() const { return corners_.front().bytes; }

  std::int64_t at(std::int64_t bytes) const;
  // The corner that begins the piece which `bytes` lies in; the last one when more bytes do not help.
  // Requires: bytes >= least_bytes().
  std::size_t piece_at(std::int64_t bytes) const;
  // value_at() for a piece already found.
  std::int64_t at(std::size_t piece, std::int64_t bytes) const;

  // With at most so many bytes.
  void cut(std::int64_t most_bytes);

 private:
  std::vector<Corner> corners_;
};

// The cheaper of the two ways to spend bytes on two independent things, for all sums: corners are added slope by slope.
// `steps` are (bytes, ps spared) pairs in the order of falling ps per byte, from `start`.
void add_steps(const Convex& f, Convex::Corner start, const std::vector<Convex::Corner>& steps, std::int64_t most_bytes,
               std::vector<Convex::Corner>& points);

}  // namespace tidemark::planner
