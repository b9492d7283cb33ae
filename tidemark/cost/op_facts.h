#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tidemark/cost/constants.h"
#include "tidemark/step/step.h"

namespace tidemark::cost {

// How an op is priced: a row of one table, by the op's name without namespace and overload. A name that the table does
// not have is unpriced: nothing is taken for a walk over memory unless somebody said so.
struct OpFact {
  Family family = Family::kUnpriced;
  // Products: which of the op's tensors are multiplied.
  std::uint8_t left = 0;
  std::uint8_t right = 1;
  bool is_right_transposed = false;     // the right one has the summed dimension last: linear()
  std::string_view unpriced_when = {};  // an argument that, when it is true, makes another op of it
};

OpFact fact_of(std::string_view op_name);

// The facts of a step's ops by name, so that pricing many ops compares no text.
std::vector<OpFact> facts_of(const step::Step& step);

// Whether a step's op is unpriced because of an argument of its fact.
bool has_unpriced_argument(const step::Step& step, const step::Op& op, const OpFact& fact);

}  // namespace tidemark::cost
