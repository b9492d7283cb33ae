#include "tidemark/planner/op_workspace.h"

#include <algorithm>

#include "tidemark/base/rounding.h"

namespace tidemark::planner {

using namespace step;

OpWorkspace::OpWorkspace(const StepView& view, const memory::WorkspaceTable* table, std::int64_t round_to_bytes)
    : view_(view), table_(table), round_to_bytes_(round_to_bytes) {
  if (table == nullptr) return;
  rows_ = memory::join_workspace(view.step(), *table);
  watched_rows_ = memory::join_workspace(view.step(), *table, true);
}

bool OpWorkspace::is_changed_by_watch(OpId op) const {
  if (view_.tables().ops[op.index()].flags.has(OpFlag::kUnwatched)) return true;
  return !rows_.empty() && rows_[op.index()] != watched_rows_[op.index()];
}

OpScratch OpWorkspace::at_begin(OpId op, bool is_watched) const {
  const Moments& m = view_.moments();
  OpScratch scratch;
  if (is_watched && view_.tables().ops[op.index()].flags.has(OpFlag::kUnwatched)) {
    const Step& step = view_.step();
    const std::uint32_t written = step[step.outputs(step[op]).front().tensor].storage.value();
    scratch.hidden = scratch.extra = scratch.peak = m.is_resized[written] != 0 ? 0 : m.bytes[written];
    return scratch;
  }
  const std::vector<std::uint32_t>& rows = is_watched ? watched_rows_ : rows_;
  if (rows.empty() || rows[op.index()] == memory::kNoRow) return scratch;
  std::vector<std::uint32_t> allocs;
  for (std::uint32_t at = view_.space().index.begins[op.index()] + 1; at < view_.end_of(op); ++at)
    if (view_.tables().events[at].kind == EventKind::kAlloc) allocs.push_back(view_.tables().events[at].id);
  scratch.is_made.assign(allocs.size(), 0);
  std::vector<std::int64_t> hidden;
  for (const memory::WorkspaceStep& s : table_->rows[rows[op.index()]].steps) {
    const auto value = static_cast<std::size_t>(s.value);
    if (s.kind == memory::WorkspaceStepKind::kTake) {
      hidden.push_back(round_up(s.value, round_to_bytes_));
      scratch.hidden += hidden.back();
      scratch.extra += hidden.back();
    } else if (s.kind == memory::WorkspaceStepKind::kGive) {
      scratch.hidden -= hidden[value];
      scratch.extra -= hidden[value];
      hidden[value] = 0;
    } else if (value < allocs.size() && scratch.is_made[value] == 0) {
      scratch.is_made[value] = 1;
      scratch.extra += m.bytes[allocs[value]];
      scratch.made.push_back(allocs[value]);
    }
    scratch.peak = std::max(scratch.peak, scratch.extra);
  }
  return scratch;
}

}  // namespace tidemark::planner
