#pragma once

#include <string>

#include "tidemark/step/violation.h"

// Shared by the two halves of the validator; not part of the public surface.
namespace tidemark::step::detail {

// Thrown on the way out of the validator only; find_violation() turns it into data.
struct Found {
  Violation violation;
};

[[noreturn]] inline void found(Table table, std::size_t id, std::string field, std::string problem,
                               std::string expected = {}, std::string got = {}, std::string remedy = {}) {
  throw Found{
      {table, id, std::move(field), std::move(problem), std::move(expected), std::move(got), std::move(remedy)}};
}

// Rules about single rows and the rows they name.
void check_tables(const StepTables& tables);

// Rules about the order of events. Requires: check_tables passed.
void check_events(const StepTables& tables);

}  // namespace tidemark::step::detail
