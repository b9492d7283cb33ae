#include "tidemark/step/violation.h"

#include <fmt/format.h>

namespace tidemark::step {

std::string record_place(const Violation& violation) {
  std::string place = fmt::format("{}[{}]", name_of(violation.table), violation.id);
  if (!violation.field.empty()) place += "." + violation.field;
  return place;
}

Error to_error(const Violation& violation, const PlaceOf& place_of) {
  return Error({.kind = ErrorKind::kInput,
                .place = place_of(violation),
                .problem = violation.problem,
                .expected = violation.expected,
                .got = violation.got,
                .remedy = violation.remedy});
}

}  // namespace tidemark::step
