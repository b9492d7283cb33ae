// Attention in one kernel. FLOPs are those of the products inside; a causal mask is not discounted.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

// [batch, heads, rows, width] laid out as [batch, rows, heads, width], which is how the kernels write it.
void fresh_by_row(Call& call, DType dtype, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                  std::int64_t width) {
  call.fresh(dtype, Dims{batch, heads, rows, width}, Dims{rows * heads * width, width, heads * width, 1});
}

void fresh_like_query(Call& call, const Tensor& query, std::int64_t width) {
  fresh_by_row(call, query.dtype(), query.size(0), query.size(1), query.size(2), width);
}

DType statistics_type(const Tensor& query) {
  return query.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

void infer_flash_cpu(Call& call) {
  const Tensor& q = call.tensor("query");
  fresh_like_query(call, q, call.tensor("value").size(-1));
  call.fresh(statistics_type(q), Dims{q.size(0), q.size(1), q.size(2)}, Dims{q.size(2) * q.size(1), 1, q.size(1)});
}

void infer_flash_cpu_backward(Call& call) {
  for (const char* name : {"query", "key", "value"})
    fresh_like_query(call, call.tensor(name), call.tensor(name).size(-1));
}

// Two products: scores, and scores times values.
std::int64_t attention_flops(const Call& call) {
  const Tensor& q = call.tensor("query");
  const std::int64_t keys = call.tensor("key").size(2);
  const std::int64_t rows = q.size(0) * q.size(1) * q.size(2);
  return 2 * rows * keys * q.size(-1) + 2 * rows * keys * call.tensor("value").size(-1);
}

// Five: the scores again, and the gradients of scores, values, queries and keys.
std::int64_t attention_backward_flops(const Call& call) {
  const Tensor& q = call.tensor("query");
  const std::int64_t keys = call.tensor("key").size(2);
  const std::int64_t rows = q.size(0) * q.size(1) * q.size(2);
  const std::int64_t width = q.size(-1);
  const std::int64_t value_width = call.tensor("value").size(-1);
  return 2 * rows * keys * (width + value_width + value_width + width + width);
}

bool drops(const Call& call) { return call.number("dropout_p") > 0; }

void give_all(Backward& b, std::vector<Tensor> grads) {
  const char* const names[] = {"query", "key", "value"};
  for (std::size_t i = 0; i < 3; ++i)
    if (b.needs(names[i])) b.give(names[i], std::move(grads[i]));
}

void flash_cpu_backward(Backward& b) {
  static const Op op("aten._scaled_dot_product_flash_attention_for_cpu_backward.default");
  const Tensor& mask = b.saved("attn_mask");
  if (b.is_given("scale")) {
    give_all(b, op.all(b.runner(), {{"grad_out", b.grad()},
                                    {"query", b.saved("query")},
                                    {"key", b.saved("key")},
                                    {"value", b.saved("value")},
                                    {"out", b.saved("output")},
                                    {"logsumexp", b.saved("logsumexp")},
                                    {"dropout_p", b.number("dropout_p")},
                                    {"is_causal", b.flag("is_causal")},
                                    {"attn_mask", mask},
                                    {"scale", b.number("scale")}}));
  } else {
    give_all(b, op.all(b.runner(), {{"grad_out", b.grad()},
                                    {"query", b.saved("query")},
                                    {"key", b.saved("key")},
                                    {"value", b.saved("value")},
                                    {"out", b.saved("output")},
                                    {"logsumexp", b.saved("logsumexp")},
                                    {"dropout_p", b.number("dropout_p")},
                                    {"is_causal", b.flag("is_causal")},
                                    {"attn_mask", mask}}));
  }
}

}  // namespace

std::vector<Row> attention_rows() {
  return {
      {.name = "aten._scaled_dot_product_flash_attention_for_cpu.default",
       .infer = infer_flash_cpu,
       .node = "ScaledDotProductFlashAttentionForCpuBackward0",
       .saves = {{"attn_mask"}, {"key"}, {"query"}, {"value"}},
       .saved_results = {{"logsumexp"}, {"output"}},
       .results = {"output", "logsumexp"},
       .backward = flash_cpu_backward,
       .flops = attention_flops,
       .is_random = drops},
      {.name = "aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
       .infer = infer_flash_cpu_backward,
       .flops = attention_backward_flops},
  };
}

}  // namespace tidemark::ops
