#pragma once

#include "tidemark/nn/layers.h"

// Functions that several models of the `transformers` library (5.22) share, op by op as they run there.

namespace tidemark::zoo {

using nn::Dims;
using nn::DType;
using nn::Net;
using nn::Runtime;
using nn::Tensor;

// arange(length): the positions of a sequence, [1, length].
Tensor position_ids(Runtime& rt, std::int64_t length);
// The search for several sequences packed in one row, which finds none.
void look_for_packed_sequences(Runtime& rt, const Tensor& positions, std::int64_t batch);
// The search for padding at both ends of the texts, of which a warning would come.
void look_for_padding(Runtime& rt, const Tensor& ids, std::int64_t padding);
// The loss of a causal language model: targets are the labels, shifted by one.
Tensor causal_lm_loss(Runtime& rt, const Tensor& logits, const Tensor& labels, std::int64_t vocabulary);

// GELU by the formula of GPT-2, op by op.
Tensor new_gelu(Runtime& rt, const Tensor& x);

// The loss over classes: rows of scores, in whatever shape they come, against one label each.
Tensor class_loss(Runtime& rt, const Tensor& scores, const Tensor& labels, std::int64_t classes);

}  // namespace tidemark::zoo
