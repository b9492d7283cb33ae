// Images and signals in another resolution.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

void infer_upsample(Call& call) {
  Dims sizes = call.in(0).sizes();
  const Dims wanted = call.dims("output_size");
  for (std::size_t i = 0; i < wanted.size(); ++i) sizes[sizes.size() - wanted.size() + i] = wanted[i];
  call.fresh(call.in(0).dtype(), sizes);
}

void infer_upsample_backward(Call& call) { call.fresh(call.in(0).dtype(), call.dims("input_size")); }

// The backward op takes what the forward op was given, and the size of the input in between.
void upsample_backward(Backward& b, const Row& row) {
  std::vector<Arg> args = {
      {"grad_output", b.grad()}, {"output_size", b.dims("output_size")}, {"input_size", b.input("self").sizes}};
  for (const char* name : {"align_corners", "scales", "scales_h", "scales_w"})
    if (b.is_given(name)) args.emplace_back(name, *b.find(name));
  b.give("self", std::move(run_all(b.runner(), row, args).front()));
}

void nearest1d_backward(Backward& b) {
  static const Row& op = row("aten.upsample_nearest1d_backward.default");
  upsample_backward(b, op);
}
void nearest2d_backward(Backward& b) {
  static const Row& op = row("aten.upsample_nearest2d_backward.default");
  upsample_backward(b, op);
}
void bilinear2d_backward(Backward& b) {
  static const Row& op = row("aten.upsample_bilinear2d_backward.default");
  upsample_backward(b, op);
}
void bicubic2d_backward(Backward& b) {
  static const Row& op = row("aten.upsample_bicubic2d_backward.default");
  upsample_backward(b, op);
}

}  // namespace

std::vector<Row> resize_rows() {
  const auto in = infer_upsample;
  const auto out = infer_upsample_backward;
  return {
      of_grad("aten.upsample_nearest1d.default", in, "UpsampleNearest1DBackward0", nearest1d_backward),
      {.name = "aten.upsample_nearest1d_backward.default", .infer = out},
      of_grad("aten.upsample_nearest2d.default", in, "UpsampleNearest2DBackward0", nearest2d_backward),
      {.name = "aten.upsample_nearest2d_backward.default", .infer = out},
      of_grad("aten.upsample_bilinear2d.default", in, "UpsampleBilinear2DBackward0", bilinear2d_backward),
      {.name = "aten.upsample_bilinear2d_backward.default", .infer = out},
      of_grad("aten.upsample_bicubic2d.default", in, "UpsampleBicubic2DBackward0", bicubic2d_backward),
      {.name = "aten.upsample_bicubic2d_backward.default", .infer = out},
  };
}

}  // namespace tidemark::ops
