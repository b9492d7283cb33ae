#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/planner/op_workspace.h"
#include "tidemark/planner/problem.h"
#include "tidemark/planner/step_view.h"
#include "tidemark/planner/unit_facts.h"

namespace tidemark::planner {

// What of a unit is saved on an arc, whatever else is.
struct SavedOnArc {
  explicit SavedOnArc(const StepView& view);

  void clear();
  void save_op(step::OpId op);
  void save_storage(std::uint32_t storage);
  // Saved for nothing: it takes no time, and no memory before it would be made again.
  void give_op(step::OpId op);
  void give_storage(std::uint32_t storage);

  bool is_cached(std::uint32_t storage) const { return storages_[storage] == kCached; }
  bool is_given(std::uint32_t storage) const { return storages_[storage] == kGiven; }
  bool is_there(std::uint32_t storage) const { return storages_[storage] != kNot; }  // one or the other
  bool is_saved_op(std::uint32_t op) const { return ops_[op] == kCached; }
  bool is_given_op(std::uint32_t op) const { return ops_[op] == kGiven; }
  const std::vector<std::uint32_t>& cached() const { return cached_; }

 private:
  enum How : std::uint8_t { kNot, kCached, kGiven };

  std::vector<How> storages_;
  std::vector<How> ops_;
  std::vector<std::uint32_t> cached_;
  std::vector<std::uint32_t> touched_storages_;
  std::vector<std::uint32_t> touched_ops_;
};

// Runs the region of a unit again, event by event, and notes what that comes to in an arc: before, between and inside
// of the groups that the arc leaves open.
class RecomputeRun {
 public:
  RecomputeRun(const StepView& view, const OpWorkspace& workspace);

  // On top of `start_bytes`. `sums` are the arc's groups.
  void run(const Candidate& c, std::int64_t start_bytes, std::span<const UnitGroup> sums, const SavedOnArc& saved,
           bool is_watched, Arc& arc);

 private:
  std::int64_t counted_bytes(std::uint32_t storage) const;
  void take(std::uint32_t storage);
  void hold(std::uint32_t storage);
  void drop(std::uint32_t storage);
  void drop_cache(const Candidate& c, step::OpId op);

  const StepView& view_;
  const step::StepTables& t_;
  const Moments& m_;
  const OpWorkspace& workspace_;
  const SavedOnArc* saved_ = nullptr;
  std::int64_t total_ = 0;
  std::uint32_t trigger_ = 0;
  std::vector<std::uint32_t> holders_;     // by storage
  std::vector<std::uint8_t> is_taken_;     // by storage: the program holds it
  std::vector<std::uint8_t> is_in_graph_;  // by save: the recomputed graph holds it
  std::vector<std::uint32_t> touched_;     // storages, perhaps several times
  std::vector<std::uint32_t> packed_;      // saves
};

}  // namespace tidemark::planner
