#pragma once

#include "tidemark/ops/call.h"

// Rules that many rows share.

namespace tidemark::ops {

// The element type of a result: floats over integers over booleans; tensors with dimensions over those without;
// numbers count only by their kind.
DType promoted(const Call& call);
// The shape and strides that PyTorch's TensorIterator gives the result of a pointwise op: broadcast, in the order of
// dimensions of the operands.
void pointwise_layout(const Call& call, Dims& sizes, Dims& strides);

void infer_pointwise(Call& call);        // one result of the promoted type
void infer_float_pointwise(Call& call);  // the same, but of a floating type
void infer_compare(Call& call);          // one boolean result
void infer_in_place(Call& call);         // writes into the first input
void infer_like_first(Call& call);       // a new tensor with sizes, strides and type of the first input

// Sizes without these dimensions, or with ones in their place; no dimensions mean all of them.
Dims reduced(const Dims& sizes, const Dims& dims, bool keepdim);

// The dtype named by an argument such as "torch.float32", or `otherwise`.
DType dtype_argument(const Call& call, DType otherwise);
DType dtype_named(const char* word);
const char* dtype_word(DType dtype);  // "torch.float32"
double least_number(DType dtype);     // torch.finfo(dtype).min

// Rows of the files in this folder; the registry joins them.
std::vector<Row> pointwise_rows();
std::vector<Row> elementary_rows();
std::vector<Row> activation_rows();
std::vector<Row> bound_rows();
std::vector<Row> compare_rows();
std::vector<Row> update_rows();
std::vector<Row> create_rows();
std::vector<Row> view_rows();
std::vector<Row> shape_rows();
std::vector<Row> pad_rows();
std::vector<Row> matmul_rows();
std::vector<Row> reduce_rows();
std::vector<Row> extreme_rows();
std::vector<Row> moment_rows();
std::vector<Row> norm_rows();
std::vector<Row> softmax_rows();
std::vector<Row> dropout_rows();
std::vector<Row> loss_rows();
std::vector<Row> binary_loss_rows();
std::vector<Row> index_rows();
std::vector<Row> attention_rows();
std::vector<Row> conv_rows();
std::vector<Row> pool_rows();
std::vector<Row> resize_rows();
std::vector<Row> foreach_rows();

}  // namespace tidemark::ops
