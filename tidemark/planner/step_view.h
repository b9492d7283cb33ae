#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/planner/moments.h"
#include "tidemark/planner/space.h"
#include "tidemark/step/step.h"

namespace tidemark::planner {

using Storages = std::vector<std::uint32_t>;  // ascending

bool has(const Storages& storages, std::uint32_t storage);
Storages union_of(const Storages& a, const Storages& b);

// A storage that something holds from outside a recompute, and when.
struct Hold {
  std::uint32_t storage = 0;
  std::vector<Interval> when;
};

// A step as it is seen while its graph is built: with what a plan may be, its moments, and what is looked up often. All
// that it is made of has to outlive it.
class StepView {
 public:
  StepView(const step::Step& step, const Space& space, const Moments& moments);

  const step::Step& step() const { return *step_; }
  const step::StepTables& tables() const { return step_->tables(); }
  const Space& space() const { return *space_; }
  const Moments& moments() const { return *moments_; }

  std::uint32_t storage_of(std::uint32_t save) const { return (*step_)[tables().saves[save].tensor].storage.value(); }
  std::uint32_t end_of(step::OpId op) const { return op_ends_[op.index()]; }  // the event
  // Whether a storage is made in the region of a candidate.
  bool is_inside(const Candidate& c, std::uint32_t storage) const;
  // The storages that a checkpoint holds for a saved op, without those it holds as inputs anyway.
  Storages cache_of(const Candidate& c, step::OpId op) const;

 private:
  const step::Step* step_;
  const Space* space_;
  const Moments* moments_;
  std::vector<std::uint32_t> op_ends_;  // by op
};

}  // namespace tidemark::planner
