#pragma once

#include <nanobind/nanobind.h>

#include "tidemark/step/step_builder.h"

// The arguments of an op that are no tensors, in Python and in C++:
//
//   {"dim": [0], "keepdim": True, "reduction": "mean", "tensors": range(0, 2)}
//
// A range stands for the op's inputs at these positions.

namespace tidemark::python {

nanobind::dict args_to_python(const step::Step& step, const step::ArgList& args);

// Throws: Error when a value is of a type that a step cannot hold.
step::ArgList args_from_python(step::StepBuilder& builder, const nanobind::dict& args);

}  // namespace tidemark::python
