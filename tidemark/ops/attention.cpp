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

// CUDA's gradients are laid out as the tensors are.
void infer_flash_backward(Call& call) {
  for (const char* name : {"query", "key", "value"}) {
    const Tensor& t = call.tensor(name);
    call.fresh(t.dtype(), t.sizes(), like_strides(t.sizes(), t.strides()));
  }
}

// Two products: scores, and scores times values.
std::int64_t attention_flops(const Call& call) {
  const Tensor& q = call.tensor("query");
  const std::int64_t keys = call.tensor("key").size(2);
  const std::int64_t scores = times(times(times(q.size(0), q.size(1)), q.size(2)), keys);
  return times(2 * (q.size(-1) + call.tensor("value").size(-1)), scores);
}

// Five: the scores again, and the gradients of scores, values, queries and keys.
std::int64_t attention_backward_flops(const Call& call) {
  const Tensor& q = call.tensor("query");
  const std::int64_t keys = call.tensor("key").size(2);
  const std::int64_t scores = times(times(times(q.size(0), q.size(1)), q.size(2)), keys);
  return times(2 * (3 * q.size(-1) + 2 * call.tensor("value").size(-1)), scores);
}

// The kernels of CUDA. Statistics of the efficient one are padded to blocks of 32 rows.
void infer_efficient(Call& call) {
  const Tensor& q = call.tensor("query");
  fresh_like_query(call, q, call.tensor("value").size(-1));
  const std::int64_t rows = call.flag("compute_log_sumexp") ? (q.size(2) + 31) / 32 * 32 : 0;
  call.fresh(DType::kFloat32, Dims{q.size(0), q.size(1), rows});
  call.fresh(DType::kInt64, Dims{});
  call.fresh(DType::kInt64, Dims{});
}

void infer_flash(Call& call) {
  const Tensor& q = call.tensor("query");
  if (is_contiguous(q)) {
    call.fresh(q.dtype(), q.sizes());
  } else {
    fresh_like_query(call, q, q.size(-1));
  }
  call.fresh(DType::kFloat32, Dims{q.size(0), q.size(1), q.size(2)});
  call.nothing();  // cumulative lengths, for ragged sequences only
  call.nothing();
  call.fresh(DType::kUInt64, Dims{2});
  call.fresh(DType::kUInt64, Dims{});
  call.fresh(q.dtype(), Dims{0});
}

void infer_efficient_backward(Call& call) {
  infer_flash_cpu_backward(call);
  if (call.mask("grad_input_mask")[3]) {
    // The kernel pads its rows to multiples of 16 and hands out a part of them.
    const Tensor& bias = call.tensor("attn_bias");
    Dims padded = bias.sizes();
    padded[padded.size() - 1] = (padded.back() + 15) / 16 * 16;
    call.fresh(bias.dtype(), bias.sizes(), contiguous_strides(padded));
  } else {
    call.nothing();
  }
}

bool drops(const Call& call) { return call.number("dropout_p") > 0; }

void give_all(Backward& b, std::vector<Tensor> grads) {
  const char* const names[] = {"query", "key", "value"};
  for (std::size_t i = 0; i < 3; ++i)
    if (b.needs(names[i])) b.give(names[i], std::move(grads[i]));
}

void flash_cpu_backward(Backward& b) {
  static const Row& op = row("aten._scaled_dot_product_flash_attention_for_cpu_backward.default");
  std::vector<Arg> args = {{"grad_out", b.grad()},
                           {"query", b.saved("query")},
                           {"key", b.saved("key")},
                           {"value", b.saved("value")},
                           {"out", b.saved("output")},
                           {"logsumexp", b.saved("logsumexp")},
                           {"dropout_p", b.number("dropout_p")},
                           {"is_causal", b.flag("is_causal")},
                           {"attn_mask", b.saved("attn_mask")}};
  if (b.is_given("scale")) args.emplace_back("scale", b.number("scale"));
  give_all(b, run_all(b.runner(), op, args));
}

void efficient_backward(Backward& b) {
  static const Row& op = row("aten._scaled_dot_product_efficient_attention_backward.default");
  std::vector<Arg> args = {
      {"grad_out_", b.grad()},
      {"query", b.saved("query")},
      {"key", b.saved("key")},
      {"value", b.saved("value")},
      {"attn_bias", b.saved("attn_bias")},
      {"out", b.saved("output")},
      {"logsumexp", b.saved("log_sumexp")},
      {"philox_seed", b.saved("philox_seed")},
      {"philox_offset", b.saved("philox_offset")},
      {"dropout_p", b.number("dropout_p")},
      {"grad_input_mask", Mask{b.needs("query"), b.needs("key"), b.needs("value"), b.needs("attn_bias")}}};
  if (b.flag("is_causal")) args.emplace_back("is_causal", true);
  args.emplace_back("scale", b.number("scale"));
  std::vector<Tensor> grads = run_all(b.runner(), op, args);
  if (b.needs("attn_bias")) b.give("attn_bias", std::move(grads[3]));
  give_all(b, std::move(grads));
}

void flash_backward(Backward& b) {
  static const Op op("aten._scaled_dot_product_flash_attention_backward.default");
  give_all(b, op.all(b.runner(), {{"grad_out", b.grad()},
                                  {"query", b.saved("query")},
                                  {"key", b.saved("key")},
                                  {"value", b.saved("value")},
                                  {"out", b.saved("output")},
                                  {"logsumexp", b.saved("logsumexp")},
                                  {"cum_seq_q", None{}},
                                  {"cum_seq_k", None{}},
                                  {"max_q", b.input("query").sizes[2]},
                                  {"max_k", b.input("key").sizes[2]},
                                  {"dropout_p", b.number("dropout_p")},
                                  {"is_causal", b.flag("is_causal")},
                                  {"philox_seed", b.saved("rng_state")},
                                  {"philox_offset", b.saved("unused")},
                                  {"scale", b.number("scale")}}));
}

}  // namespace

std::vector<Row> attention_rows() {
  return {
      {.name = "aten._scaled_dot_product_efficient_attention.default",
       .infer = infer_efficient,
       .node = "ScaledDotProductEfficientAttentionBackward0",
       .saves = {{"attn_bias"}, {"key"}, {"query"}, {"value"}},
       .saved_results = {{"log_sumexp"}, {"output"}, {"philox_offset"}, {"philox_seed"}},
       .results = {"output", "log_sumexp", "philox_seed", "philox_offset"},
       .backward = efficient_backward,
       .flops = attention_flops,
       .is_random = drops},
      {.name = "aten._scaled_dot_product_efficient_attention_backward.default",
       .infer = infer_efficient_backward,
       .flops = attention_backward_flops,
       .is_random = drops},
      {.name = "aten._scaled_dot_product_flash_attention.default",
       .infer = infer_flash,
       .node = "ScaledDotProductFlashAttentionBackward0",
       .saves = {{"key"}, {"query"}, {"value"}},
       .saved_results = {{"logsumexp"}, {"output"}, {"rng_state"}, {"unused"}},
       .results = {"output", "logsumexp", "cum_seq_q", "cum_seq_k", "rng_state", "unused", "debug_attn_mask"},
       .backward = flash_backward,
       .flops = attention_flops,
       .is_random = drops},
      {.name = "aten._scaled_dot_product_flash_attention_backward.default",
       .infer = infer_flash_backward,
       .flops = attention_backward_flops},
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
