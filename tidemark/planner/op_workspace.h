#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/memory/workspace.h"
#include "tidemark/planner/step_view.h"

namespace tidemark::planner {

// What an op of a unit takes at its begin beyond what its events say: scratch memory of its kernel, which a dispatch
// mode that watches the unit may change.
struct OpScratch {
  std::int64_t extra = 0;  // hidden bytes, and those of alloc events that have been made to happen
  std::int64_t hidden = 0;
  std::int64_t peak = 0;
  std::vector<std::uint8_t> is_made;  // by alloc event of the op: it happens at the begin; none where none does
  std::vector<std::uint32_t> made;    // the storages of these
};

class OpWorkspace {
 public:
  // `table` may be null; both have to outlive it.
  OpWorkspace(const StepView& view, const memory::WorkspaceTable* table, std::int64_t round_to_bytes);

  // Whether it makes a difference to the op that a dispatch mode watches.
  bool is_changed_by_watch(step::OpId op) const;
  OpScratch at_begin(step::OpId op, bool is_watched) const;

 private:
  const StepView& view_;
  const memory::WorkspaceTable* table_;
  std::int64_t round_to_bytes_;
  std::vector<std::uint32_t> rows_;  // by op; none without a table
  std::vector<std::uint32_t> watched_rows_;
};

}  // namespace tidemark::planner
