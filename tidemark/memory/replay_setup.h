#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/memory/replay.h"
#include "tidemark/plan/event_index.h"
#include "tidemark/plan/plan.h"
#include "tidemark/step/step.h"

namespace tidemark::memory::detail {

// What a replay needs to know of one unit before it starts.
struct UnitFacts {
  step::CallId call;
  plan::EventRange region;
  bool preserve_rng = true;
  bool early_stop = true;
  std::vector<step::StorageId> inputs;                 // what the frame holds, in the order of taking
  std::uint32_t save_count = 0;                        // hooked saves packed in the region
  std::uint32_t last_pack = plan::EventIndex::kNever;  // the event of the last of them
  std::vector<step::OpId> saved_ops;                   // in the order in which they run
};

// What replays of a step look up whatever the plan is.
struct Common {
  plan::EventIndex index;
  std::vector<std::uint32_t> row_of_op;  // of workspace; empty without a table
  std::vector<std::uint32_t> watched_row_of_op;
  std::vector<std::uint8_t> is_saved;  // by storage: some save refers to it
};
// `is_watched`: some plan has a unit with saved ops.
Common prepare_all(const step::Step& step, const ReplayOptions& options, bool is_watched);

// What a replay looks up, worked out once from step, plan and options. Refers to what it has in common with others.
struct Setup {
  const plan::EventIndex& index;
  std::vector<std::uint32_t> row_of_op;
  std::vector<Category> categories = {};  // of originals, by storage
  std::vector<UnitFacts> units = {};
  // These are empty when there are no units.
  std::vector<std::uint32_t> unit_of_call = {};  // kNoUnit: not a unit
  std::vector<std::uint32_t> unit_of_save = {};  // of hooked saves packed in a region
  std::vector<std::uint8_t> is_saved_op = {};    // by op
  std::vector<std::uint8_t> is_cached = {};      // by storage: allocated in a saved op as one of its outputs
  std::vector<std::uint8_t> is_watched_op = {};  // by op: does not write in place, since its unit's checkpoint watches

  bool has_units() const { return !units.empty(); }
};

Setup prepare(const step::Step& step, const plan::Plan& plan, const ReplayOptions& options, const Common& common);

// The distinct storages of an op's outputs, in their order.
void distinct_outputs(const step::Step& step, step::OpId op, std::vector<step::StorageId>& storages);

}  // namespace tidemark::memory::detail
