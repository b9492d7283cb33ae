#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/step/step.h"

namespace tidemark::plan {

// Positions in the list of events: [begin, end).
struct EventRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  bool contains(std::uint32_t position) const { return begin <= position && position < end; }
  friend bool operator==(const EventRange&, const EventRange&) = default;
};

// An op writes in place into a storage that was there before it.
struct Write {
  step::StorageId storage;
  std::uint32_t at = 0;  // its begin event
  step::OpId op;

  friend auto operator<=>(const Write&, const Write&) = default;
};

// Where in a step's events things stand. The region of a call is what lies between its enter and its exit event.
struct EventIndex {
  static constexpr std::uint32_t kNever = 0xFFFFFFFFu;

  std::vector<EventRange> regions;     // by call; `end` is the position of the exit event
  std::vector<std::uint32_t> begins;   // by op: its begin event
  std::vector<std::uint32_t> allocs;   // by storage: its alloc event, or kNever
  std::vector<step::OpId> allocators;  // by storage: the op it is allocated in, if any
  std::vector<std::uint32_t> unpacks;  // by save: its first unpack event, or kNever
  std::vector<Write> writes;           // by storage, then by position
  // By save: the graph task (Pass) in which it is unpacked, kNever without one, kSeveral for more than one.
  static constexpr std::uint32_t kSeveral = kNever - 1;
  std::vector<std::uint32_t> tasks;
};

EventIndex index_events(const step::Step& step);

// Whether more than one backward needs what autograd keeps for the call, as after backward(retain_graph=True): each
// would recompute all of it.
bool has_several_backwards(const step::Step& step, const EventIndex& index, step::CallId call);

// The first write into the storage at an event of the range, or nothing.
const Write* first_write(const EventIndex& index, step::StorageId storage, EventRange range);

}  // namespace tidemark::plan
