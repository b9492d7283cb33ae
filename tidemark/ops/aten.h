#pragma once

#include "tidemark/ops/call.h"

// Ops as functions, with PyTorch's names: each runs the op that its row describes. Names that end in an underscore
// write into their first argument. What PyTorch itself puts together from several ops (reshape, sum_to) stands at
// the end.

namespace tidemark::ops {

// -- pointwise --
Tensor add(Runner& r, const Tensor& self, const Tensor& other);
Tensor add(Runner& r, const Tensor& self, double other);
Tensor add(Runner& r, const Tensor& self, std::int64_t other);
Tensor sub(Runner& r, const Tensor& self, const Tensor& other);
Tensor sub(Runner& r, const Tensor& self, std::int64_t other);
Tensor rsub(Runner& r, const Tensor& self, double other);
Tensor mul(Runner& r, const Tensor& self, const Tensor& other);
Tensor mul(Runner& r, const Tensor& self, double other);               // aten.mul.Tensor with a number
Tensor mul(Runner& r, const Tensor& self, std::int64_t other);         // the same
Tensor mul_scalar(Runner& r, const Tensor& self, const Value& other);  // aten.mul.Scalar
Tensor add_scalar(Runner& r, const Tensor& self, std::int64_t other);  // aten.add.Scalar
Tensor sub_scalar(Runner& r, const Tensor& self, std::int64_t other);
Tensor div_scalar(Runner& r, const Tensor& self, std::int64_t other);
Tensor div(Runner& r, const Tensor& self, const Tensor& other);
Tensor div(Runner& r, const Tensor& self, double other);
Tensor neg(Runner& r, const Tensor& self);
Tensor pow(Runner& r, const Tensor& self, const Value& exponent);
Tensor sqrt(Runner& r, const Tensor& self);
Tensor rsqrt(Runner& r, const Tensor& self);
Tensor cos(Runner& r, const Tensor& self);
Tensor sin(Runner& r, const Tensor& self);
Tensor tanh(Runner& r, const Tensor& self);
Tensor sigmoid(Runner& r, const Tensor& self);
Tensor relu(Runner& r, const Tensor& self);
Tensor silu(Runner& r, const Tensor& self);
Tensor gelu(Runner& r, const Tensor& self, bool approximate);
Tensor where(Runner& r, const Tensor& condition, const Tensor& self, const Tensor& other);
Tensor ne(Runner& r, const Tensor& self, std::int64_t other);
Tensor eq(Runner& r, const Tensor& self, std::int64_t other);
Tensor clone(Runner& r, const Tensor& self);             // keeps the layout
Tensor clone_contiguous(Runner& r, const Tensor& self);  // memory_format=contiguous
Tensor to_dtype(Runner& r, const Tensor& self, DType dtype);

// -- in place --
void add_(Runner& r, const Tensor& self, const Tensor& other);
void relu_(Runner& r, const Tensor& self);

// -- creation --
void read_by_host(Runner& r, const Tensor& self);  // .item()
Tensor empty_like(Runner& r, const Tensor& self);
Tensor clone_as(Runner& r, const Tensor& self, const Dims& sizes, const Dims& strides);  // new_empty_strided, copy_

// -- views --
Tensor view(Runner& r, const Tensor& self, const Dims& size);
Tensor unsafe_view(Runner& r, const Tensor& self, const Dims& size);
Tensor t(Runner& r, const Tensor& self);
Tensor transpose(Runner& r, const Tensor& self, std::int64_t dim0, std::int64_t dim1);
Tensor permute(Runner& r, const Tensor& self, const Dims& dims);
Tensor expand(Runner& r, const Tensor& self, const Dims& size);
Tensor unsqueeze(Runner& r, const Tensor& self, std::int64_t dim);
Tensor squeeze(Runner& r, const Tensor& self, std::int64_t dim);
Tensor slice(Runner& r, const Tensor& self, std::int64_t dim, std::int64_t start, std::int64_t end);
Tensor select(Runner& r, const Tensor& self, std::int64_t dim, std::int64_t index);
Tensor alias(Runner& r, const Tensor& self);
std::vector<Tensor> split(Runner& r, const Tensor& self, std::int64_t size, std::int64_t dim);
Tensor detach(const Tensor& self);  // another name for the same tensor; no op is recorded

// -- joining --
Tensor cat(Runner& r, const std::vector<Tensor>& tensors, std::int64_t dim);

// -- products --
Tensor mm(Runner& r, const Tensor& self, const Tensor& mat2);
Tensor bmm(Runner& r, const Tensor& self, const Tensor& mat2);
Tensor addmm(Runner& r, const Tensor& self, const Tensor& mat1, const Tensor& mat2);

// -- sums --
Tensor sum(Runner& r, const Tensor& self);
Tensor sum(Runner& r, const Tensor& self, const Dims& dim, bool keepdim);
Tensor mean(Runner& r, const Tensor& self, const Dims& dim, bool keepdim);

// -- put together --
Tensor sum_to(Runner& r, Tensor self, const Dims& sizes);  // lets go of `self` as soon as it is summed
Tensor reshape(Runner& r, const Tensor& self, const Dims& size);
Tensor contiguous(Runner& r, const Tensor& self);

}  // namespace tidemark::ops
