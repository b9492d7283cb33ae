// Pooling of images.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

Dims pair(const Value* value, std::int64_t otherwise) {
  const auto* dims = value == nullptr ? nullptr : std::get_if<Dims>(value);
  return dims != nullptr && !dims->empty() ? *dims : Dims{otherwise, otherwise};
}

// With ceil_mode a last window may hang over, but must begin inside of the image or its left padding.
std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                     std::int64_t dilation, bool ceil_mode) {
  const std::int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
  std::int64_t count = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (count - 1) * stride >= size + padding) --count;
  return count;
}

Dims pooled(const Call& call) {
  const Dims kernel = call.dims("kernel_size");
  const Dims stride = call.dims("stride").empty() ? kernel : call.dims("stride");
  const Dims padding = pair(call.find("padding"), 0);
  const Dims dilation = pair(call.find("dilation"), 1);
  Dims sizes = call.in(0).sizes();
  const std::size_t first = sizes.size() - kernel.size();
  for (std::size_t i = 0; i < kernel.size(); ++i)
    sizes[first + i] = windows(sizes[first + i], kernel[i], stride[i], padding[i], dilation[i], call.flag("ceil_mode"));
  return sizes;
}

Dims adapted(const Call& call) {
  Dims sizes = call.in(0).sizes();
  const Dims wanted = call.dims("output_size");
  for (std::size_t i = 0; i < wanted.size(); ++i) sizes[sizes.size() - wanted.size() + i] = wanted[i];
  return sizes;
}

void infer_max_pool(Call& call) {
  const Dims sizes = pooled(call);
  call.fresh(call.in(0).dtype(), sizes);
  call.fresh(DType::kInt64, sizes);
}

void infer_avg_pool(Call& call) { call.fresh(call.in(0).dtype(), pooled(call)); }

void infer_adaptive_avg(Call& call) { call.fresh(call.in(0).dtype(), adapted(call)); }

void infer_adaptive_max(Call& call) {
  call.fresh(call.in(0).dtype(), adapted(call));
  call.fresh(DType::kInt64, adapted(call));
}

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
                                 {"padding", pair(b.find("padding"), 0)},
                                 {"dilation", pair(b.find("dilation"), 1)},
                                 {"ceil_mode", b.flag("ceil_mode")},
                                 {"indices", b.saved("result1")}}));
}

void avg_pool_backward(Backward& b) {
  static const Op op("aten.avg_pool2d_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"self", b.saved("self")},
                                 {"kernel_size", b.dims("kernel_size")},
                                 {"stride", b.dims("stride")},
                                 {"padding", pair(b.find("padding"), 0)},
                                 {"ceil_mode", b.flag("ceil_mode")},
                                 {"count_include_pad", b.flag("count_include_pad", true)},
                                 {"divisor_override", given(b, "divisor_override", None{})}}));
}

void adaptive_avg_backward(Backward& b) {
  static const Op op("aten._adaptive_avg_pool2d_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}}));
}

void adaptive_max_backward(Backward& b) {
  static const Op op("aten.adaptive_max_pool2d_backward.default");
  b.give("self",
         op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}, {"indices", b.saved("result1")}}));
}

Row with_places(const char* name, void (*infer)(Call&), const char* node, void (*backward)(Backward&)) {
  return {.name = name,
          .infer = infer,
          .node = node,
          .saves = {{"self"}},
          .saved_results = {{"result1"}},
          .results = {"result0", "result1"},
          .backward = backward};
}

}  // namespace

std::vector<Row> pool_rows() {
  return {
      with_places("aten.max_pool2d_with_indices.default", infer_max_pool, "MaxPool2DWithIndicesBackward0",
                  max_pool_backward),
      {.name = "aten.max_pool2d_with_indices_backward.default", .infer = infer_like_self},
      of_self("aten.avg_pool2d.default", infer_avg_pool, "AvgPool2DBackward0", avg_pool_backward),
      {.name = "aten.avg_pool2d_backward.default", .infer = infer_like_self},
      of_self("aten._adaptive_avg_pool2d.default", infer_adaptive_avg, "AdaptiveAvgPool2DBackward0",
              adaptive_avg_backward),
      {.name = "aten._adaptive_avg_pool2d_backward.default", .infer = infer_like_self},
      with_places("aten.adaptive_max_pool2d.default", infer_adaptive_max, "AdaptiveMaxPool2DBackward0",
                  adaptive_max_backward),
      {.name = "aten.adaptive_max_pool2d_backward.default", .infer = infer_like_self},
  };
}

}  // namespace tidemark::ops
