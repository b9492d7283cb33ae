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

void infer_layer_norm(Call& call) {
  const Tensor& t = call.in(0);
  call.fresh(t.dtype(), t.sizes());
  call.fresh(t.dtype(), statistic_sizes(call));
  call.fresh(t.dtype(), statistic_sizes(call));
}

void infer_layer_norm_backward(Call& call) {
  const std::vector<bool> mask = call.mask("output_mask");
  const Tensor& input = call.tensor("input");
  const char* const names[] = {"input", "weight", "bias"};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!mask[i]) {
      call.nothing();
    } else {
      call.fresh(input.dtype(), call.tensor(names[i]).sizes());
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
                          {"output_mask", std::vector<bool>{b.needs("input"), b.needs("weight"), b.needs("bias")}}});
  const char* const names[] = {"input", "weight", "bias"};
  for (std::size_t i = 0; i < 3; ++i)
    if (b.needs(names[i])) b.give(names[i], std::move(grads[i]));
}

}  // namespace

std::vector<Row> norm_rows() {
  return {
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
