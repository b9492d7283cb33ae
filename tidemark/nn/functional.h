#pragma once

#include <optional>

#include "tidemark/fake/runtime.h"

// What PyTorch itself puts together from ops: the functions of torch.nn.functional, with the ops in their order and
// temporaries that die when theirs do.

namespace tidemark::nn {

using fake::Runtime;
using fake::Target;
using ops::Dims;
using ops::DType;
using ops::Tensor;

// The tensor itself, or a copy in another element type.
Tensor in_type(Runtime& rt, const Tensor& t, DType dtype);
Tensor matmul(Runtime& rt, const Tensor& a, const Tensor& b);
Tensor addmm(Runtime& rt, const Tensor& bias, const Tensor& a, const Tensor& b);
Tensor linear(Runtime& rt, const Tensor& input, const Tensor& weight, const Tensor& bias);
Tensor layer_norm(Runtime& rt, const Tensor& input, const Dims& shape, const Tensor& weight, const Tensor& bias,
                  double eps);
Tensor dropout(Runtime& rt, const Tensor& input, double p);
Tensor softmax(Runtime& rt, const Tensor& input, std::int64_t dim, std::optional<DType> dtype);
Tensor embedding(Runtime& rt, const Tensor& weight, const Tensor& indices, std::int64_t padding_idx = -1);
Tensor cross_entropy(Runtime& rt, const Tensor& input, const Tensor& target, std::int64_t ignore_index = -100);

// Which kernel scaled_dot_product_attention takes: the runtime's, or what PyTorch chooses for these inputs.
// Throws: Error when the runtime's kernel does not take these inputs.
using fake::AttentionKernel;

struct AttentionOptions {
  Tensor mask = {};  // empty: none
  double dropout = 0;
  bool is_causal = false;
  std::optional<double> scale = std::nullopt;
  bool enable_gqa = false;
};
Tensor scaled_dot_product_attention(Runtime& rt, const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options);

}  // namespace tidemark::nn
