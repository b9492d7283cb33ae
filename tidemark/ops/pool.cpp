// Pooling and resizing of images.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

Dims pooled(const Call& call) {
  const Dims kernel = call.dims("kernel_size");
  const Dims stride = call.dims("stride").empty() ? kernel : call.dims("stride");
  const Dims padding = call.dims("padding").empty() ? Dims(kernel.size(), 0) : call.dims("padding");
  Dims sizes = call.in(0).sizes();
  const std::size_t first = sizes.size() - kernel.size();
  for (std::size_t i = 0; i < kernel.size(); ++i)
    sizes[first + i] = (sizes[first + i] + 2 * padding[i] - kernel[i]) / stride[i] + 1;
  return sizes;
}

void infer_max_pool(Call& call) {
  const Dims sizes = pooled(call);
  call.fresh(call.in(0).dtype(), sizes);
  call.fresh(DType::kInt64, sizes);
}

void infer_avg_pool(Call& call) { call.fresh(call.in(0).dtype(), pooled(call)); }

void infer_like_self(Call& call) {
  const Tensor& self = call.tensor("self");
  call.fresh(self.dtype(), self.sizes());
}

void max_pool_backward(Backward& b) {
  static const Op op("aten.max_pool2d_with_indices_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"self", b.saved("self")},
                                 {"kernel_size", b.dims("kernel_size")},
                                 {"stride", b.dims("stride")},
                                 {"padding", b.is_given("padding") ? b.dims("padding") : Dims{0, 0}},
                                 {"dilation", Dims{1, 1}},
                                 {"ceil_mode", false},
                                 {"indices", b.saved("result1")}}));
}

void avg_pool_backward(Backward& b) {
  static const Op op("aten.avg_pool2d_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"self", b.saved("self")},
                                 {"kernel_size", b.dims("kernel_size")},
                                 {"stride", b.dims("stride")},
                                 {"padding", b.is_given("padding") ? b.dims("padding") : Dims{0, 0}},
                                 {"ceil_mode", false},
                                 {"count_include_pad", true},
                                 {"divisor_override", None{}}}));
}

void infer_upsample(Call& call) {
  const Dims size = call.dims("output_size");
  const Dims& input = call.in(0).sizes();
  call.fresh(call.in(0).dtype(), Dims{input[0], input[1], size[0], size[1]});
}

void infer_upsample_backward(Call& call) { call.fresh(call.in(0).dtype(), call.dims("input_size")); }

void upsample_backward(Backward& b) {
  static const Op op("aten.upsample_nearest2d_backward.default");
  const Value* h = b.find("scales_h");
  if (h != nullptr && std::holds_alternative<double>(*h)) {
    b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                   {"output_size", b.dims("output_size")},
                                   {"input_size", b.input("self").sizes},
                                   {"scales_h", b.number("scales_h")},
                                   {"scales_w", b.number("scales_w")}}));
  } else {
    b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                   {"output_size", b.dims("output_size")},
                                   {"input_size", b.input("self").sizes}}));
  }
}

}  // namespace

std::vector<Row> pool_rows() {
  return {
      {.name = "aten.max_pool2d_with_indices.default",
       .infer = infer_max_pool,
       .node = "MaxPool2DWithIndicesBackward0",
       .saves = {{"self"}},
       .saved_results = {{"result1"}},
       .results = {"result0", "result1"},
       .backward = max_pool_backward},
      {.name = "aten.max_pool2d_with_indices_backward.default", .infer = infer_like_self},
      {.name = "aten.avg_pool2d.default",
       .infer = infer_avg_pool,
       .node = "AvgPool2DBackward0",
       .saves = {{"self"}},
       .backward = avg_pool_backward},
      {.name = "aten.avg_pool2d_backward.default", .infer = infer_like_self},
      {.name = "aten.upsample_nearest2d.default",
       .infer = infer_upsample,
       .node = "UpsampleNearest2DBackward0",
       .backward = upsample_backward},
      {.name = "aten.upsample_nearest2d_backward.default", .infer = infer_upsample_backward},
  };
}

}  // namespace tidemark::ops
