#include "tidemark/planner/recompute_run.h"

#include <algorithm>
#include <cstddef>

namespace tidemark::planner {

using namespace step;

SavedOnArc::SavedOnArc(const StepView& view)
    : storages_(view.tables().storages.size(), kNot), ops_(view.tables().ops.size(), kNot) {}

void SavedOnArc::clear() {
  for (const std::uint32_t storage : touched_storages_) storages_[storage] = kNot;
  for (const std::uint32_t op : touched_ops_) ops_[op] = kNot;
  cached_.clear();
  touched_storages_.clear();
  touched_ops_.clear();
}

void SavedOnArc::save_op(OpId op) {
  ops_[op.index()] = kCached;
  touched_ops_.push_back(op.value());
}

void SavedOnArc::save_storage(std::uint32_t storage) {
  storages_[storage] = kCached;
  touched_storages_.push_back(storage);
  cached_.push_back(storage);
}

void SavedOnArc::give_op(OpId op) {
  ops_[op.index()] = kGiven;
  touched_ops_.push_back(op.value());
}

void SavedOnArc::give_storage(std::uint32_t storage) {
  storages_[storage] = kGiven;
  touched_storages_.push_back(storage);
}

RecomputeRun::RecomputeRun(const StepView& view, const OpWorkspace& workspace)
    : view_(view),
      t_(view.tables()),
      m_(view.moments()),
      workspace_(workspace),
      holders_(t_.storages.size(), 0),
      is_taken_(t_.storages.size(), 0),
      is_in_graph_(t_.saves.size(), 0) {}

void RecomputeRun::run(const Candidate& c, std::int64_t start_bytes, std::span<const UnitGroup> sums,
                       const SavedOnArc& saved, bool is_watched, Arc& arc) {
  saved_ = &saved;
  total_ = start_bytes;
  trigger_ = c.trigger;
  for (const std::uint32_t storage : saved.cached()) {
    holders_[storage] = 1;  // the cache
    touched_.push_back(storage);
  }
  std::size_t gap = 0;
  std::int64_t* most = &arc.before[0].recompute_bytes;
  *most = std::max(*most, total_);
  OpId running;
  OpScratch scratch;
  std::int64_t extra = 0;
  std::size_t next_alloc = 0;
  const auto note = [&](std::int64_t on_top) { *most = std::max(*most, total_ + on_top); };
  for (std::uint32_t at = c.region.begin; at < c.stop; ++at) {
    const std::uint32_t id = t_.events[at].id;
    switch (t_.events[at].kind) {
      case EventKind::kBegin: {
        running = OpId(id);
        next_alloc = 0;
        scratch = {};
        if (gap < sums.size() && sums[gap].begin == at) most = &arc.groups[gap].inside_bytes;
        if (saved.is_saved_op(id) || saved.is_given_op(id)) break;
        const std::int64_t before = total_;
        scratch = workspace_.at_begin(running, is_watched);
        for (const std::uint32_t storage : scratch.made) take(storage);
        note(0);  // made early, all of it
        // On the way some workspace may have been larger; what was made early is in both.
        *most = std::max(*most, before + scratch.peak);
        extra = scratch.hidden;
        note(extra);
        break;
      }
      case EventKind::kEnd:
        extra = 0;
        if (saved.is_saved_op(id)) drop_cache(c, OpId(id));
        if (gap < sums.size() && sums[gap].end == at) most = &arc.before[++gap].recompute_bytes;
        running = {};
        note(0);
        break;
      case EventKind::kAlloc: {
        const std::size_t number = next_alloc++;
        bool is_left_out = false;
        if (running.has_value()) {
          is_left_out = number < scratch.is_made.size() && scratch.is_made[number] != 0;  // made already
          if (saved.is_saved_op(running.value())) is_left_out = !saved.is_cached(id);
          if (saved.is_given_op(running.value())) is_left_out = !saved.is_given(id);
        }
        if (!is_left_out) take(id);
        note(extra);
        break;
      }
      case EventKind::kFree:
        if (is_taken_[id] != 0) {
          is_taken_[id] = 0;
          drop(id);
        }
        break;
      case EventKind::kPack: {
        const std::uint32_t storage = view_.storage_of(id);
        if (view_.is_inside(c, storage)) {
          hold(storage);
          if (!t_.saves[id].hooked || m_.released[id] < c.trigger) {
            is_in_graph_[id] = 1;
            packed_.push_back(id);
          }
        }
        note(extra);
        break;
      }
      case EventKind::kRelease:
        if (is_in_graph_[id] != 0) {
          is_in_graph_[id] = 0;
          drop(view_.storage_of(id));
        }
        break;
      default:
        break;
    }
  }
  for (const std::uint32_t storage : touched_) {
    holders_[storage] = 0;
    is_taken_[storage] = 0;
  }
  for (const std::uint32_t save : packed_) is_in_graph_[save] = 0;
  touched_.clear();
  packed_.clear();
}

void RecomputeRun::take(std::uint32_t storage) {
  is_taken_[storage] = 1;
  hold(storage);
}

std::int64_t RecomputeRun::counted_bytes(std::uint32_t storage) const {
  if (m_.is_resized[storage] != 0) return 0;
  if (saved_->is_there(storage) && m_.is_fixed_at(storage, trigger_)) return 0;
  return m_.bytes[storage];
}

void RecomputeRun::hold(std::uint32_t storage) {
  touched_.push_back(storage);
  if (holders_[storage]++ == 0) total_ += counted_bytes(storage);
}

void RecomputeRun::drop(std::uint32_t storage) {
  if (holders_[storage] > 0 && --holders_[storage] == 0) total_ -= counted_bytes(storage);
}

void RecomputeRun::drop_cache(const Candidate& c, OpId op) {
  for (const std::uint32_t storage : view_.cache_of(c, op))
    if (view_.space().index.allocators[storage] == op && saved_->is_cached(storage)) drop(storage);
}

}  // namespace tidemark::planner
