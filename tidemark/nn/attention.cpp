// scaled_dot_product_attention: the choice of a kernel, and the ops of the one that is no kernel.

#include <cmath>
#include <limits>

#include "tidemark/base/error.h"
#include "tidemark/nn/autocast.h"
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

bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// Every head of keys or values as often as queries share it.
Tensor repeated(Runtime& rt, const Tensor& t, std::int64_t times) {
  Dims sizes = t.sizes();
  sizes.insert(2, times);
  Dims flat = t.sizes();
  flat[1] *= times;
  return ops::view(rt, ops::clone_contiguous(rt, ops::expand(rt, ops::unsqueeze(rt, t, 2), sizes)), flat);
}

// Keys die before values, as in a tuple of C++.
struct Shared {
  Tensor value;
  Tensor key;
};

Shared share_heads(Runtime& rt, const Tensor& query, const Tensor& key, const Tensor& value, bool enable_gqa) {
  Shared shared{value, key};
  if (!enable_gqa || query.size(1) == key.size(1)) return shared;
  shared.key = repeated(rt, key, query.size(1) / key.size(1));
  shared.value = repeated(rt, value, query.size(1) / value.size(1));
  return shared;
}

// As _scaled_dot_product_attention_math: several ops, all of which autograd sees. Half precision is computed in single.
Attended math_attention(Runtime& rt, const Tensor& query_, const Tensor& key_, const Tensor& value_,
                        const AttentionOptions& options) {
  const bool upcasts = is_half(query_.dtype());
  const auto computed = [&](const Tensor& t) { return upcasts ? ops::to_dtype(rt, t, DType::kFloat32) : t; };
  const Tensor query_in = computed(query_);
  const Tensor key = computed(key_);
  const Tensor value = computed(value_);
  Tensor mask = options.mask;
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query_.size(-1))));
  const double factor = std::sqrt(scale);
  const Tensor query = ops::mul_scalar(rt, query_in, factor);
  if (options.is_causal) {
    mask = causal_mask(rt, query.size(-2), key.size(-2));
    mask = additive_mask(rt, mask, query.dtype());
  }
  const Shared shared = share_heads(rt, query_, key, value, options.enable_gqa);
  Tensor attention = matmul(rt, query, ops::mul_scalar(rt, ops::transpose(rt, shared.key, -2, -1), factor));
  if (mask) attention = ops::add(rt, attention, mask);
  static const Op softmax_op("aten._safe_softmax.default");
  attention = softmax_op(rt, {{"self", attention}, {"dim", -1}});
  if (options.dropout > 0) attention = dropout(rt, attention, options.dropout);
  if (!upcasts) return {matmul(rt, attention, shared.value), attention};
  Tensor weights = ops::to_dtype(rt, attention, query_.dtype());
  return {ops::to_dtype(rt, matmul(rt, attention, shared.value), query_.dtype()), std::move(weights)};
}

// The kernel of the CPU, which takes no dropout. PyTorch leaves out arguments at the end that have their defaults.
Tensor flash_cpu(Runtime& rt, const Tensor& query, const Tensor& key, const Tensor& value,
                 const AttentionOptions& options) {
  static const ops::Row& row = ops::row("aten._scaled_dot_product_flash_attention_for_cpu.default");
  std::vector<ops::Arg> args = {{"query", query}, {"key", key}, {"value", value}};
  if (options.is_causal) {
    args.emplace_back("dropout_p", 0.0);
    args.emplace_back("is_causal", true);
  }
  if (options.mask) args.emplace_back("attn_mask", options.mask);
  if (options.scale) args.emplace_back("scale", *options.scale);
  ops::Call call(rt, row, args);
  rt.run(call);
  return std::move(call.made().front().tensor);
}

bool takes_flash_cpu(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionOptions& options) {
  const auto is_plain = [](const Tensor& t) { return t.rank() == 4 && t.strides().back() == 1; };
  return options.dropout == 0 && is_plain(query) && is_plain(key) && is_plain(value) &&
         query.size(-1) == value.size(-1) && !(options.mask && options.mask.needs_grad());
}

[[noreturn]] void refuse(const char* kernel, const char* expected) {
  throw Error({.kind = ErrorKind::kInput,
               .place = "attention",
               .problem = std::string("the ") + kernel + " kernel does not take these inputs",
               .expected = expected,
               .got = {},
               .remedy = "leave the choice to auto"});
}

// What PyTorch chooses on CUDA, compute capability 8.0 or newer (sdp_utils.cpp, torch 2.13).
bool takes_flash_cuda(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionOptions& options) {
  if (query.rank() != 4) return false;
  const bool same_heads = query.size(1) == key.size(1) && key.size(1) == value.size(1);
  const std::int64_t width = query.size(-1);
  const bool grouped = options.enable_gqa && query.size(1) % key.size(1) == 0;
  return is_half(query.dtype()) && !options.mask && width <= 256 && value.size(-1) == width && (same_heads || grouped);
}

bool takes_efficient(const Tensor& query, const Tensor& key, const Tensor& value) {
  const bool same_heads = query.size(1) == key.size(1) && key.size(1) == value.size(1);
  const std::int64_t step = is_half(query.dtype()) ? 8 : 4;
  return query.rank() == 4 && same_heads && query.size(-1) % step == 0 && value.size(-1) % step == 0;
}

AttentionKernel choose_on_cuda(const Tensor& query, const Tensor& key, const Tensor& value,
                               const AttentionOptions& options) {
  if (takes_flash_cuda(query, key, value, options)) return AttentionKernel::kFlash;
  return takes_efficient(query, key, value) ? AttentionKernel::kEfficient : AttentionKernel::kMath;
}

// The first of several results that Python held in a tuple, which lets go of the others from its end.
Tensor first_of(std::vector<Tensor> results) {
  Tensor first = std::move(results.front());
  while (!results.empty()) results.pop_back();
  return first;
}

Tensor padded(Runtime& rt, const Tensor& t, std::int64_t padding) {
  static const Op pad("aten.constant_pad_nd.default");
  return pad(rt, {{"self", t}, {"pad", Dims{0, padding}}, {"value", 0.0}});
}

Tensor flash_cuda(Runtime& rt, const Tensor& query, const Tensor& key, const Tensor& value,
                  const AttentionOptions& options, double scale) {
  static const Op op("aten._scaled_dot_product_flash_attention.default");
  const std::int64_t width = query.size(-1);
  const auto run = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    if (options.dropout == 0 && !options.is_causal)  // defaults at the end are left out
      return first_of(op.all(rt, {{"query", q}, {"key", k}, {"value", v}, {"scale", scale}}));
    if (!options.is_causal)
      return first_of(
          op.all(rt, {{"query", q}, {"key", k}, {"value", v}, {"dropout_p", options.dropout}, {"scale", scale}}));
    return first_of(op.all(rt, {{"query", q},
                                {"key", k},
                                {"value", v},
                                {"dropout_p", options.dropout},
                                {"is_causal", options.is_causal},
                                {"scale", scale}}));
  };
  const std::int64_t padding = (8 - width % 8) % 8;  // the kernel wants multiples of eight
  if (padding == 0) return run(query, key, value);
  Tensor q = padded(rt, query, padding);
  Tensor k = padded(rt, key, padding);
  Tensor v = padded(rt, value, padding);
  Tensor out = run(q, k, v);
  Tensor result = ops::slice(rt, out, 3, 0, width);
  ops::drop(q, k, v, out);
  return result;
}

Tensor on_cuda(Runtime& rt, const Tensor& query, const Tensor& key, const Tensor& value,
               const AttentionOptions& options) {
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  AttentionKernel kernel = rt.attention;
  if (kernel == AttentionKernel::kAuto) kernel = choose_on_cuda(query, key, value, options);
  if (kernel == AttentionKernel::kFlash && !takes_flash_cuda(query, key, value, options))
    refuse("flash", "half precision, heads of at most 256, no mask");
  if (kernel == AttentionKernel::kEfficient && !takes_efficient(query, key, value))
    refuse("efficient", "as many heads for keys as for queries, of aligned sizes");
  if (kernel == AttentionKernel::kFlash) return flash_cuda(rt, query, key, value, options, scale);
  if (kernel == AttentionKernel::kMath) return math_attention(rt, query, key, value, options).output;
  // The kernel takes a mask for every head of every sequence.
  const Tensor mask =
      options.mask ? ops::expand(rt, options.mask, Dims{query.size(0), query.size(1), query.size(2), key.size(2)})
                   : Tensor();
  const bool wants = rt.grad_enabled() && (query.needs_grad() || key.needs_grad() || value.needs_grad());
  std::vector<ops::Arg> args = {
      {"query", query}, {"key", key}, {"value", value}, {"attn_bias", mask}, {"compute_log_sumexp", wants}};
  if (options.dropout > 0 || options.is_causal) args.emplace_back("dropout_p", options.dropout);
  if (options.is_causal) args.emplace_back("is_causal", true);
  args.emplace_back("scale", scale);
  return first_of(ops::run_all(rt, ops::row("aten._scaled_dot_product_efficient_attention.default"), args));
}

}  // namespace

Tensor scaled_dot_product_attention(Runtime& rt, const Tensor& query_, const Tensor& key_, const Tensor& value_,
                                    const AttentionOptions& options) {
  AttentionOptions now = options;
  now.mask = lowered(rt, options.mask);
  const Tensor value = lowered(rt, value_);
  const Tensor key = lowered(rt, key_);
  const Tensor query = lowered(rt, query_);
  const fake::AutocastOff off(rt);
  if (now.mask && now.mask.dtype() == DType::kBool) now.mask = additive_mask(rt, now.mask, query.dtype());
  if (rt.target() == Target::kCuda) return on_cuda(rt, query, key, value, now);
  if (rt.attention == AttentionKernel::kEfficient) refuse("efficient", "target cuda");
  const bool is_flash = takes_flash_cpu(query, key, value, now);
  if (rt.attention == AttentionKernel::kFlash && !is_flash) refuse("flash", "no dropout and no trained mask");
  const fake::Watchful watchful(rt);
  if (is_flash && rt.attention != AttentionKernel::kMath) return flash_cpu(rt, query, key, value, now);
  const Attended attended = math_attention(rt, query, key, value, now);
  return attended.output;
}

}  // namespace tidemark::nn
