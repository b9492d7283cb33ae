#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tidemark/base/error.h"
#include "tidemark/step/limits.h"
#include "tidemark/step/step.h"

namespace tidemark::step {

// The tables of a Step, in the order of the file's sections.
enum class Table : std::uint8_t {
  kMeta,
  kStrings,
  kModules,
  kPasses,
  kCalls,
  kSources,
  kLayouts,
  kStorages,
  kTensors,
  kBindings,
  kNodes,
  kArgs,
  kRegions,
  kOps,
  kSaves,
  kNotes,
  kEvents,
};
inline constexpr std::array<std::string_view, 17> kTableNames = {
    "meta",     "strings", "modules", "passes",  "calls", "sources", "layouts", "storages", "tensors",
    "bindings", "nodes",   "args",    "regions", "ops",   "saves",   "notes",   "events"};
inline constexpr std::string_view name_of(Table table) { return kTableNames[static_cast<std::size_t>(table)]; }

// The most rows that a table may have. Rows that take few bytes in a file and many in memory have lower caps.
inline constexpr std::int64_t max_rows(Table table) {
  switch (table) {
    case Table::kMeta:
      return kMaxMeta;
    case Table::kStrings:
      return kMaxStrings;
    case Table::kArgs:
      return kMaxArgLists;
    case Table::kEvents:
      return kMaxEvents;
    default:
      return kMaxRecords;
  }
}

// Where and how tables fail to be a Step.
struct Violation {
  Table table = Table::kMeta;
  std::size_t id = 0;
  std::string field;  // may be empty: the row as a whole
  std::string problem;
  std::string expected;
  std::string got;
  std::string remedy;
};

// The text of the place of a violation; a file reader says the line.
using PlaceOf = std::function<std::string(const Violation&)>;

// "ops[12].inputs[1]".
std::string record_place(const Violation& violation);

Error to_error(const Violation& violation, const PlaceOf& place_of);

// The first violation of the rules of docs/step_format.md, table by table and then event by event, or nothing.
std::optional<Violation> find_violation(const StepTables& tables);

}  // namespace tidemark::step
