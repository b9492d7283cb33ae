// scaled_dot_product_attention: the choice of a kernel, and the ops of the one that is no kernel.

#include <cmath>
#include <limits>

#include "tidemark/nn/functional.h"
#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::nn {

using ops::Op;

namespace {

// A boolean mask as numbers to be added: 0 where attention may go, -inf elsewhere.
Tensor additive_mask(Runtime& rt, const Tensor& mask, DType dtype) {
  static const Op scalar("aten.scalar_tensor.default");
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor blocked = scalar(rt, {{"s", -infinity}, {"dtype", ops::dtype_word(dtype)}, {"device", "cpu"}});
  const Tensor open =
      scalar(rt, {{"s", 0.0}, {"dtype", ops::dtype_word(dtype)}, {"layout", "torch.strided"}, {"device", "cpu"}});
  return ops::where(rt, mask, open, blocked);
}

Tensor causal_mask(Runtime& rt, std::int64_t rows, std::int64_t columns) {
  static const Op ones("aten.ones.default");
  static const Op tril("aten.tril.default");
  const Tensor all = ones(
      rt, {{"size", Dims{rows, columns}}, {"dtype", "torch.bool"}, {"layout", "torch.strided"}, {"device", "cpu"}});
  return tril(rt, {{"self", all}});
}

struct Attended {
  Tensor output;
  Tensor weights;
};

// As _scaled_dot_product_attention_math: several ops, all of which autograd sees.
Attended math_attention(Runtime& rt, const Tensor& query_, const Tensor& key, const Tensor& value,
                        const AttentionOptions& options) {
  Tensor mask = options.mask;
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query_.size(-1))));
  const double factor = std::sqrt(scale);
  const Tensor query = ops::mul_scalar(rt, query_, factor);
  if (options.is_causal) {
    mask = causal_mask(rt, query.size(-2), key.size(-2));
    mask = additive_mask(rt, mask, query.dtype());
  }
  Tensor attention = matmul(rt, query, ops::mul_scalar(rt, ops::transpose(rt, key, -2, -1), factor));
  if (mask) attention = ops::add(rt, attention, mask);
  static const Op softmax_op("aten._safe_softmax.default");
  attention = softmax_op(rt, {{"self", attention}, {"dim", -1}});
  if (options.dropout > 0) attention = dropout(rt, attention, options.dropout);
  return {matmul(rt, attention, value), attention};
}

// The kernel of the CPU, which takes no dropout.
Tensor flash_cpu(Runtime& rt, const Tensor& query, const Tensor& key, const Tensor& value,
                 const AttentionOptions& options, const Tensor& mask) {
  static const Op op("aten._scaled_dot_product_flash_attention_for_cpu.default");
  if (mask) {
    if (options.scale)
      return op(rt, {{"query", query},
                     {"key", key},
                     {"value", value},
                     {"dropout_p", 0.0},
                     {"is_causal", options.is_causal},
                     {"attn_mask", mask},
                     {"scale", *options.scale}});
    return op(rt, {{"query", query},
                   {"key", key},
                   {"value", value},
                   {"dropout_p", 0.0},
                   {"is_causal", options.is_causal},
                   {"attn_mask", mask}});
  }
  if (options.scale)
    return op(rt, {{"query", query},
                   {"key", key},
                   {"value", value},
                   {"dropout_p", 0.0},
                   {"is_causal", options.is_causal},
                   {"scale", *options.scale}});
  if (options.is_causal)
    return op(rt, {{"query", query}, {"key", key}, {"value", value}, {"dropout_p", 0.0}, {"is_causal", true}});
  return op(rt, {{"query", query}, {"key", key}, {"value", value}});
}

bool takes_flash_cpu(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionOptions& options) {
  const auto is_plain = [](const Tensor& t) { return t.rank() == 4 && t.strides().back() == 1; };
  return options.dropout == 0 && is_plain(query) && is_plain(key) && is_plain(value) &&
         query.size(-1) == value.size(-1) && !(options.mask && options.mask.needs_grad());
}

}  // namespace

Tensor scaled_dot_product_attention(Runtime& rt, const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options) {
  const fake::Watchful watchful(rt);
  AttentionOptions now = options;
  if (now.mask && now.mask.dtype() == DType::kBool) now.mask = additive_mask(rt, now.mask, query.dtype());
  if (takes_flash_cpu(query, key, value, now)) return flash_cpu(rt, query, key, value, now, now.mask);
  const Attended attended = math_attention(rt, query, key, value, now);
  return attended.output;
}

}  // namespace tidemark::nn
