#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "tidemark/cost/step_cost.h"
#include "tidemark/step/step.h"

namespace tidemark::python {

// A sum of times with the keys of `tidemark time --json`.
nanobind::dict to_python(const cost::Total& total);

// (name, count, bytes) of ops without a price.
using UnpricedRows = std::vector<std::tuple<std::string, std::int64_t, std::int64_t>>;
UnpricedRows unpriced_rows(const step::Step& step, const std::vector<cost::UnpricedOp>& ops);

}  // namespace tidemark::python
