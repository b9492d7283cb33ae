// Normalisation.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

// Statistics have the leading dimensions and ones for the normalised ones.
Dims statistic_sizes(const Call& call) {
  Dims sizes = call.in(0).sizes();
  const std::size_t normalised = call.dims("normalized_shape").size();
  for (std::size_t i = sizes.size() - normalised; i < sizes.size(); ++i) sizes[i] = 1;
  return sizes;
}

// Means and deviations, and the gradients of weights, have the weights' type where that is not the input's.
DType statistic_type(const Call& call) {
  return call.has_tensor("weight") ? call.tensor("weight").dtype() : call.tensor("input").dtype();
}

void infer_layer_norm(Call& call) {
  const Tensor& t = call.in(0);
  call.fresh(t.dtype(), t.sizes());
  call.fresh(statistic_type(call), statistic_sizes(call));
  call.fresh(statistic_type(call), statistic_sizes(call));
}

void infer_layer_norm_backward(Call& call) {
  const Mask mask = call.mask("output_mask");
  const char* const names[] = {"input", "weight", "bias"};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!mask[i]) {
      call.nothing();
    } else {
      call.fresh(call.tensor(names[i]).dtype(), call.tensor(names[i]).sizes());
    }
  }
}

void layer_norm_backward(Backward& b) {
  static const Op op("aten.native_layer_norm_backward.default");
  std::vector<Tensor> grads =
      op.all(b.runner(), {{"grad_out", b.grad()},
                          {"input", b.saved("input")},
                          {"normalized_shape", b.dims("normalized_shape")},
                          {"mean", b.saved("result1")},
                          {"rstd", b.saved("result2")},
                          {"weight", b.saved("weight")},
                          {"bias", b.saved("bias")},
                          {"output_mask", Mask{b.needs("input"), b.needs("weight"), b.needs("bias")}}});
  const char* const names[] = {"input", "weight", "bias"};
  for (std::size_t i = 0; i < 3; ++i)
    if (b.needs(names[i])) b.give(names[i], std::move(grads[i]));
}

// Running statistics are written although the schema does not say so.
void infer_batch_norm(Call& call) {
  const Tensor& t = call.in(0);
  const Dims channels{t.sizes()[1]};
  call.fresh(t.dtype(), t.sizes(), like_strides(t.sizes(), t.strides()));
  call.fresh(statistic_type(call), channels);
  call.fresh(statistic_type(call), channels);
  if (!call.flag("training", true)) return;
  call.mutates(3);
  call.mutates(4);
}

void infer_batch_norm_backward(Call& call) {
  const Mask mask = call.mask("output_mask");
  const Tensor& input = call.tensor("input");
  const Dims channels{input.sizes()[1]};
  call.fresh(input.dtype(), input.sizes(), like_strides(input.sizes(), input.strides()));
  for (const std::size_t i : {1u, 2u}) {
    if (mask[i]) {
      call.fresh(statistic_type(call), channels);
    } else {
      call.nothing();
    }
  }
}

void batch_norm_backward(Backward& b) {
  static const Op op("aten.native_batch_norm_backward.default");
  std::vector<Tensor> grads =
      op.all(b.runner(), {{"grad_out", b.grad()},
                          {"input", b.saved("input")},
                          {"weight", b.saved("weight")},
                          {"running_mean", b.saved("running_mean")},
                          {"running_var", b.saved("running_var")},
                          {"save_mean", b.saved("result1")},
                          {"save_invstd", b.saved("result2")},
                          {"train", b.flag("training")},
                          {"eps", b.number("eps")},
                          {"output_mask", Mask{b.needs("input"), b.needs("weight"), b.needs("bias")}}});
  const char* const names[] = {"input", "weight", "bias"};
  for (std::size_t i = 0; i < 3; ++i)
    if (b.needs(names[i])) b.give(names[i], std::move(grads[i]));
}

void infer_group_norm(Call& call) {
  const Tensor& t = call.in(0);
  const Dims groups{call.integer("N"), call.integer("group")};
  call.fresh(t.dtype(), t.sizes());
  call.fresh(statistic_type(call), groups);
  call.fresh(statistic_type(call), groups);
}

void infer_group_norm_backward(Call& call) {
  const Mask mask = call.mask("output_mask");
  const Tensor& input = call.tensor("input");
  for (std::size_t i = 0; i < 3; ++i) {
    if (!mask[i]) {
      call.nothing();
    } else {
      call.fresh(i == 0 ? input.dtype() : statistic_type(call), i == 0 ? input.sizes() : Dims{call.integer("C")});
    }
  }
}

void group_norm_backward(Backward& b) {
  static const Op op("aten.native_group_norm_backward.default");
  const Tensor grad = contiguous(b.runner(), b.grad());
  std::vector<Tensor> grads =
      op.all(b.runner(), {{"grad_out", grad},
                          {"input", b.saved("input")},
                          {"mean", b.saved("result1")},
                          {"rstd", b.saved("result2")},
                          {"weight", b.saved("weight")},
                          {"N", b.integer("N")},
                          {"C", b.integer("C")},
                          {"HxW", b.integer("HxW")},
                          {"group", b.integer("group")},
                          {"output_mask", Mask{b.needs("input"), b.needs("weight"), b.needs("bias")}}});
  const char* const names[] = {"input", "weight", "bias"};
  for (std::size_t i = 0; i < 3; ++i)
    if (b.needs(names[i])) b.give(names[i], std::move(grads[i]));
}

}  // namespace

std::vector<Row> norm_rows() {
  return {
      {.name = "aten.native_batch_norm.default",
       .infer = infer_batch_norm,
       .node = "NativeBatchNormBackward0",
       .saves = {{"input"}, {"running_mean"}, {"running_var"}, {"weight"}},
       .saved_results = {{"result1"}, {"result2"}},
       .results = {"result0", "result1", "result2"},
       .backward = batch_norm_backward},
      {.name = "aten.native_batch_norm_backward.default", .infer = infer_batch_norm_backward},
      {.name = "aten.native_group_norm.default",
       .infer = infer_group_norm,
       .node = "NativeGroupNormBackward0",
       .saves = {{"input"}, {"weight"}},
       .saved_results = {{"result1"}, {"result2"}},
       .results = {"result0", "result1", "result2"},
       .backward = group_norm_backward},
      {.name = "aten.native_group_norm_backward.default", .infer = infer_group_norm_backward},
      {.name = "aten.native_layer_norm.default",
       .infer = infer_layer_norm,
       .node = "NativeLayerNormBackward0",
       .saves = {{"bias"}, {"input"}, {"weight"}},
       .saved_results = {{"result1"}, {"result2"}},
       .results = {"result0", "result1", "result2"},
       .backward = layer_norm_backward},
      {.name = "aten.native_layer_norm_backward.default", .infer = infer_layer_norm_backward},
  };
}

}  // namespace tidemark::ops
