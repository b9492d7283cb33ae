#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tidemark/memory/workspace.h"
#include "tidemark/planner/space.h"
#include "tidemark/step/step.h"

namespace tidemark::planner {

// Events [begin, end): something is true after each of them.
struct Interval {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  bool contains(std::uint32_t event) const { return begin <= event && event < end; }
  friend auto operator<=>(const Interval&, const Interval&) = default;
};

// Sorted, without overlaps.
std::vector<Interval> union_of(std::vector<Interval> intervals);
std::vector<Interval> without(std::span<const Interval> intervals, std::span<const Interval> taken);

// The record cut into pieces for the planner.
//
// The forward is cut at every place where a candidate begins or ends: these pieces are *elements*. Every moment of the
// step (the total after an event) belongs to one element, its *home*: in the forward, that in which it happens; in
// backward, the last one of which autograd still keeps something. So what an element keeps is there at all moments of
// later elements, and gone at those of earlier ones; a hold for which that is not so is *odd*.
struct Moments {
  static constexpr std::uint32_t kGround = 0xFFFFFFFFu;

  std::uint32_t event_count = 0;
  std::vector<std::int64_t> bytes;        // by storage, rounded
  std::vector<std::uint8_t> is_resized;   // by storage
  std::vector<std::int64_t> level;        // by event: what no plan can change
  std::vector<std::int64_t> extra_peak;   // by event: workspace on top of it, at most
  std::vector<std::int64_t> extra_after;  // and at the end of the event
  std::int64_t ground_bytes = 0;          // the peak of moments without a home, and the start

  std::vector<std::uint32_t> element_begin;       // by element, its first event; and one more
  std::vector<std::uint32_t> episode_begin;       // by episode, its first element; and one more
  std::vector<std::uint32_t> episode_of;          // by element
  std::vector<std::vector<std::uint32_t>> owned;  // by element: its moments, ascending
  std::vector<std::uint32_t> last_later;   // by element: the last moment of a later element of the episode; 0: none
  std::vector<std::uint32_t> first_below;  // by element: the first moment after its own forward that belongs before it

  std::vector<std::uint32_t> packed;            // by save: its event
  std::vector<std::uint32_t> released;          // by save; kNever
  std::vector<std::vector<Interval>> unpacked;  // by save: from unpack to drop

  std::uint32_t element_count() const { return static_cast<std::uint32_t>(element_begin.size()) - 1; }
  std::uint32_t element_at(std::uint32_t event) const;
  // When the program, or a save that hooks do not see, holds a storage.
  std::span<const Interval> fixed(std::uint32_t storage) const;
  bool is_fixed_at(std::uint32_t storage, std::uint32_t event) const;
  bool is_always_fixed(std::uint32_t storage) const;

  // Of storages whose lives were cut, see MomentsOptions: by storage, whether it is one; by event, the bytes of all
  // that were cut up to it, and of those that the program has let go of since.
  std::vector<std::uint8_t> is_parked;
  std::vector<std::int64_t> parked_before;
  std::vector<std::int64_t> left_before;

  // Bytes that `level` leaves out after an event.
  std::int64_t parked_at(std::uint32_t event) const { return parked_before[event] - left_before[event]; }

  std::vector<Interval> program;                              // by storage
  std::map<std::uint32_t, std::vector<Interval>> more_fixed;  // by storage, where `program` is not all
};

struct MomentsOptions {
  const memory::WorkspaceTable* workspace = nullptr;
  std::int64_t round_to_bytes = 1;
  // What the program holds on to for the rest of the forward after its last use (autocast does so with its casts of
  // weights, and so do caches of keys and values) is let go of after that use. Levels are then too low where it is
  // there, by `parked_at`.
  bool cut_parked = false;
  std::size_t least_parked = 1;  // only if there are as many
};

// `is_used` says by candidate whether its unit is to be thought of at all.
Moments find_moments(const step::Step& step, const Space& space, std::span<const std::uint8_t> is_used,
                     const MomentsOptions& options);

}  // namespace tidemark::planner
