#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tidemark/step/step.h"

namespace tidemark::memory {

// Kernels allocate scratch memory that no dispatcher sees. How much depends on the machine, so it is not part of a
// Step: it is measured into a table of its own and joined to the ops at replay, by what decides it: the op's name, the
// layouts of its inputs and its other arguments.

enum class WorkspaceStepKind : std::uint8_t {
  kMake,  // value k: the op's k-th alloc event of the record happens here
  kTake,  // value n: n hidden bytes are allocated
  kGive,  // value i: the i-th kTake of the row is freed
};

struct WorkspaceStep {
  WorkspaceStepKind kind = WorkspaceStepKind::kMake;
  std::int64_t value = 0;

  friend bool operator==(const WorkspaceStep&, const WorkspaceStep&) = default;
};

// The step that a file writes as [kind, value]. Throws: Error when there is no such kind.
WorkspaceStep workspace_step(std::int64_t kind, std::int64_t value);

// What happens inside an op, in order. Hidden memory that is not given back goes when the op ends.
struct WorkspaceRow {
  std::string key;
  std::vector<WorkspaceStep> steps;
  bool estimated = false;  // not measured, but taken from a model or a similar op

  friend bool operator==(const WorkspaceRow&, const WorkspaceRow&) = default;
};

struct WorkspaceTable {
  std::string device;  // what it was measured on, for people
  std::vector<WorkspaceRow> rows;

  friend bool operator==(const WorkspaceTable&, const WorkspaceTable&) = default;
};

// The key of an op: "aten.mm.default(float32[2,8;8,1],float32[8,4;1,8]){}".
std::string workspace_key(const step::Step& step, step::OpId op);

// A dispatch mode costs small allocations of its own. A row whose key ends so is for ops that one watches; without it
// they have the same row as others.
inline constexpr std::string_view kWatchedSuffix = " watched";

// By op, the position of its row in the table, or kNoRow. Each different op is looked up once. `are_watched`: all of
// them under a dispatch mode.
// Throws: Error when the table has a key twice or a row that makes no sense.
inline constexpr std::uint32_t kNoRow = 0xFFFFFFFFu;
std::vector<std::uint32_t> join_workspace(const step::Step& step, const WorkspaceTable& table,
                                          bool are_watched = false);

// What is wrong with the steps of a row, or nothing: "". Allocations are freed once, after they are made.
std::string problem_of(const WorkspaceRow& row);

}  // namespace tidemark::memory
