// Convolution. FLOPs: 2 x batch x channels out x channels in x filter x positions, where positions are the output's,
// or the input's when transposed; groups are implicit in the weight's second dimension.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

Dims output_sizes(const Call& call) {
  const Dims& input = call.in(0).sizes();
  const Dims& weight = call.in(1).sizes();
  const Dims stride = call.dims("stride");
  const Dims padding = call.dims("padding");
  const Dims dilation = call.dims("dilation");
  const Dims output_padding = call.dims("output_padding");
  const bool transposed = call.flag("transposed");
  Dims sizes{input[0], transposed ? weight[1] * call.integer("groups", 1) : weight[0]};
  for (std::size_t i = 0; i + 2 < input.size(); ++i) {
    const std::int64_t reach = dilation[i] * (weight[i + 2] - 1);
    if (transposed) {
      sizes.push_back((input[i + 2] - 1) * stride[i] - 2 * padding[i] + reach + output_padding[i] + 1);
    } else {
      sizes.push_back((input[i + 2] + 2 * padding[i] - reach - 1) / stride[i] + 1);
    }
  }
  return sizes;
}

bool has_channels_last(const Tensor& t) { return !is_contiguous(t) && is_channels_last(t.sizes(), t.strides()); }

void infer_convolution(Call& call) {
  const Dims sizes = output_sizes(call);
  const bool last = has_channels_last(call.in(0)) || has_channels_last(call.in(1));
  call.fresh(call.in(0).dtype(), sizes, last ? channels_last_strides(sizes) : contiguous_strides(sizes));
}

void infer_convolution_backward(Call& call) {
  const Mask mask = call.mask("output_mask");
  const Tensor& input = call.tensor("input");
  const Tensor& weight = call.tensor("weight");
  const auto grad_of = [&](bool is_wanted, const Tensor& t) {
    if (!is_wanted) {
      call.nothing();
    } else {
      call.fresh(t.dtype(), t.sizes(), has_channels_last(t) ? t.strides() : contiguous_strides(t.sizes()));
    }
  };
  grad_of(mask[0], input);
  grad_of(mask[1], weight);
  if (mask[2]) {
    call.fresh(input.dtype(), call.dims("bias_sizes"));
  } else {
    call.nothing();
  }
}

std::int64_t flops_of(const Dims& input, const Dims& weight, const Dims& output, bool transposed) {
  const Dims& positions = transposed ? input : output;
  std::int64_t count = times(2, input[0]);
  for (const std::int64_t size : weight) count = times(count, size);
  for (std::size_t i = 2; i < positions.size(); ++i) count = times(count, positions[i]);
  return count;
}

std::int64_t convolution_flops(const Call& call) {
  return flops_of(call.in(0).sizes(), call.in(1).sizes(), output_sizes(call), call.flag("transposed"));
}

// The gradients of input and weight are convolutions of the same size as the forward one; that of the weight is counted
// as if there were no groups, since PyTorch's counter does so.
std::int64_t convolution_backward_flops(const Call& call) {
  const Mask mask = call.mask("output_mask");
  const std::int64_t one = flops_of(call.tensor("input").sizes(), call.tensor("weight").sizes(),
                                    call.tensor("grad_output").sizes(), call.flag("transposed"));
  return times(one, (mask[0] ? 1 : 0) + (mask[1] ? call.integer("groups", 1) : 0));
}

void convolution_backward(Backward& b) {
  static const Op op("aten.convolution_backward.default");
  const bool has_bias = b.count("bias") > 0;
  std::vector<Tensor> grads =
      op.all(b.runner(), {{"grad_output", b.grad()},
                          {"input", b.saved("input")},
                          {"weight", b.saved("weight")},
                          {"bias_sizes", has_bias ? b.input("bias").sizes : Dims{0}},
                          {"stride", b.dims("stride")},
                          {"padding", b.dims("padding")},
                          {"dilation", b.dims("dilation")},
                          {"transposed", b.flag("transposed")},
                          {"output_padding", b.dims("output_padding")},
                          {"groups", b.integer("groups", 1)},
                          {"output_mask", Mask{b.needs("input"), b.needs("weight"), b.needs("bias")}}});
  const char* const names[] = {"input", "weight", "bias"};
  for (std::size_t i = 0; i < 3; ++i)
    if (b.needs(names[i])) b.give(names[i], std::move(grads[i]));
}

}  // namespace

std::vector<Row> conv_rows() {
  return {
      {.name = "aten.convolution.default",
       .infer = infer_convolution,
       .node = "ConvolutionBackward0",
       .saves = {{"input"}, {"weight"}},
       .backward = convolution_backward,
       .flops = convolution_flops},
      {.name = "aten.convolution_backward.default",
       .infer = infer_convolution_backward,
       .flops = convolution_backward_flops},
  };
}

}  // namespace tidemark::ops
