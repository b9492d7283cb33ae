#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tidemark/plan/event_index.h"
#include "tidemark/step/step.h"

namespace tidemark::plan {

// Why a group's outputs cannot be saved by a selective checkpoint.
enum class SaveObstacle : std::uint8_t {
  kNone,
  kNothingFresh,  // it allocates nothing: views, and changes of what was made elsewhere
  kChanged,       // a tensor of the group is changed in place before the recompute; PyTorch raises "has been mutated"
  kView,          // an op that allocates also returns a view or another existing tensor
};
inline constexpr std::array<std::string_view, 4> kSaveObstacleNames = {"none", "nothing_fresh", "changed", "view"};
inline constexpr std::string_view name_of(SaveObstacle obstacle) {
  return kSaveObstacleNames[static_cast<std::size_t>(obstacle)];
}

// Ops of a unit that are saved or recomputed together. A view belongs to the op that made its storage, and so does a
// change in place; all random ops of a unit belong together, since skipping one would shift the numbers of the next.
// Saving a group means saving its `savers`: the ops that allocate.
struct Group {
  std::vector<step::OpId> ops;     // in the order in which they run
  std::vector<step::OpId> savers;  // of these, the ones to save; in a group without any output, all
  SaveObstacle obstacle = SaveObstacle::kNone;
  bool must_save = false;
  bool is_random = false;
  std::int64_t saved_bytes = 0;  // what the checkpoint holds when the group is saved: all outputs of the savers

  bool can_save() const { return obstacle == SaveObstacle::kNone; }
  friend bool operator==(const Group&, const Group&) = default;
};

// Flags of an op that must not run twice, or whose result must be the same one.
bool must_be_saved(step::OpFlags flags);

// The groups of a call and of the calls inside it, in the order of their first ops.
std::vector<Group> find_groups(const step::Step& step, const EventIndex& index, step::CallId call);
std::vector<Group> find_groups(const step::Step& step, step::CallId call);

}  // namespace tidemark::plan
