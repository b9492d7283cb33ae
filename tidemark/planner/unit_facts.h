#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tidemark/planner/op_workspace.h"
#include "tidemark/planner/step_view.h"

namespace tidemark::planner {

// What is the same for all arcs of a candidate: what its unit holds, and how each group of it goes into sums.

// How a group of a unit goes into the sums.
enum class GroupKind : std::uint8_t {
  kSum,        // its bytes are added where it is held, and that is all
  kCondition,  // tried both ways: several ops, or held by others too
  kFree,       // its tensors are there anyway: always worth saving
  kGiven,      // one condition too many: as if it were saved and took no memory, which is less than either way
};

struct UnitGroup {
  std::uint32_t choice = 0;
  GroupKind kind = GroupKind::kSum;
  std::uint32_t begin = 0;  // events of its op, if kSum
  std::uint32_t end = 0;
  std::uint32_t forward_start = 0;  // from when on its tensors are there only because it is saved
  std::int64_t bytes = 0;
  std::int64_t unparked_bytes = 0;                             // of those that the program does not hold anyway
  std::vector<std::pair<std::uint32_t, std::int64_t>> starts;  // the same, tensor by tensor
};

// What is the same for all arcs of a candidate.
struct UnitFacts {
  std::uint32_t first_element = 0;
  std::uint32_t last_element = 0;
  Storages inputs;  // what the frame holds, without what is always there
  std::vector<std::uint32_t> saves;
  std::vector<UnitGroup> groups;  // free ones, in the order of their ops
  std::vector<std::uint32_t> always;
  bool has_watch = false;  // whether it matters that a dispatch mode watches
  bool keeps = true;       // the frame is there at all later moments
  bool keeps_cache = true;
  std::vector<std::uint32_t> backward;  // its moments after the forward, ascending
};

class UnitReader {
 public:
  struct Options {
    std::size_t max_conditions = 0;
  };

  // What it is given has to outlive it.
  UnitReader(const StepView& view, const OpWorkspace& workspace, const Options& options);

  UnitFacts read(const Candidate& c);

  // Of all that were read.
  bool is_exact() const { return is_exact_; }
  std::int64_t given_count() const { return given_count_; }

 private:
  void look_at_region(const Candidate& c, UnitFacts& f);
  void add_input(const Candidate& c, UnitFacts& f, step::TensorId tensor);
  void add_groups(const Candidate& c, UnitFacts& f);
  void give_small_conditions(UnitFacts& f);
  UnitGroup group_of(const Candidate& c, const UnitFacts& f, const Choice& choice) const;
  bool leaves_nothing_else(const Candidate& c, step::OpId op, std::uint32_t end) const;
  bool is_held_outside(const Candidate& c, std::uint32_t storage) const;

  const StepView& view_;
  const step::Step& step_;
  const step::StepTables& t_;
  const Space& space_;
  const Moments& m_;
  const OpWorkspace& workspace_;
  Options options_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> packs_of_;  // by storage: events of hooked packs
  bool is_exact_ = true;
  std::int64_t given_count_ = 0;
};

}  // namespace tidemark::planner
