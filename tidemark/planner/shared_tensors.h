#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tidemark/planner/step_view.h"
#include "tidemark/planner/unit_facts.h"

namespace tidemark::planner {

// Which storages several arcs may hold, and where it matters which of them do: a state of the graph says of each that
// is open at its place whether earlier arcs hold it.

// How a storage is there by itself at the moments of later elements.
enum class Later : std::uint8_t { kNotAtAll, kSometimes, kAlways };

class SharedTensors {
 public:
  // What it is given has to outlive it. `facts` and `is_used` are by candidate, `plain` by element.
  SharedTensors(const StepView& view, const std::vector<std::vector<Hold>>& plain, const std::vector<UnitFacts>& facts,
                const std::vector<std::uint8_t>& is_used);

  // By event, whether a moment matters at all: before this, all do.
  void set_relevant(const std::vector<std::uint8_t>& is_relevant);
  void find_open();
  // Where there would be too many patterns, only the largest tensors keep a place in them, so many at each place. Each
  // other one is counted from its anchor on, an element that mostly holds it: by the arc over that element, as if all
  // later arcs found it held and earlier ones let go of it at their end. That is at most what is there on any path.
  // False: all have their place. find_open() has to follow.
  bool find_anchors(std::size_t max_shared);

  Later later(std::uint32_t storage, std::uint32_t element) const;
  // By place, which is before an element.
  const Storages& open(std::uint32_t place) const { return open_[place]; }
  const Storages& anchored(std::uint32_t place) const { return anchored_[place]; }  // by anchors before it
  // Whether arcs over these elements count the storage when they keep it.
  bool is_counted(std::uint32_t storage, std::uint32_t first_element, std::uint32_t last_element) const;

 private:
  std::uint32_t anchor_of(std::uint32_t storage) const;

  const StepView& view_;
  const Space& space_;
  const Moments& m_;
  const std::vector<std::vector<Hold>>& plain_;
  const std::vector<UnitFacts>& facts_;
  const std::vector<std::uint8_t>& is_used_;
  std::vector<std::uint32_t> relevant_before_;  // by event: how many moments before it matter
  std::vector<Storages> open_;
  std::map<std::uint32_t, std::uint32_t> anchors_;  // by storage that has no place in patterns
  std::vector<Storages> anchored_;
};

}  // namespace tidemark::planner
