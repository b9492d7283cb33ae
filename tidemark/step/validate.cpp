#include "tidemark/step/validate_impl.h"

namespace tidemark::step {

std::optional<Violation> find_violation(const StepTables& tables) {
  try {
    detail::check_tables(tables);
    detail::check_events(tables);
  } catch (detail::Found& found) {
    return std::move(found.violation);
  }
  return std::nullopt;
}

}  // namespace tidemark::step
