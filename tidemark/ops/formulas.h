#pragma once

#include "tidemark/ops/call.h"

// What many backward formulas share. A formula is written in the order and with the temporaries of PyTorch's own
// (derivatives.yaml, FunctionsManual.cpp): the ops of one statement die in reverse order at its end.

namespace tidemark::ops {

// The argument as the op was given it, or its default.
Value given(const Backward& b, const char* name, const Value& otherwise);
// The gradient times a number that is mostly one, and then costs nothing.
Tensor maybe_multiply(Runner& r, const Tensor& grad, const Value& factor);
// A tensor of no dimensions with this number in it.
Tensor scalar_tensor(Runner& r, const Value& number, DType dtype);
Tensor zeros_like(Runner& r, const Tensor& self);
// The gradient of a reduction with the dimensions that it has lost, as ones.
Tensor restore_dims(Runner& r, const Tensor& reduced, const Dims& dims, bool keepdim, std::size_t rank);

// A backward formula that only hands the gradient on.
void pass_grad(Backward& b);
// Nothing comes back: zeros like the gradient.
void zero_grad(Backward& b);

// Rows of functions of one tensor, whose backward needs that tensor, the result, or neither.
Row of_self(const char* name, void (*infer)(Call&), const char* node, void (*backward)(Backward&));
Row of_result(const char* name, void (*infer)(Call&), const char* node, void (*backward)(Backward&));
Row of_grad(const char* name, void (*infer)(Call&), const char* node, void (*backward)(Backward&));
// The same op written into its input. `keeps_self`: its backward needs what was there before.
Row in_place_form(const char* name, const Row& row, bool keeps_self);

}  // namespace tidemark::ops
