// Padding: with a number, by reflection, by repeating the border.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

void infer_padded(Call& call, const Dims& pad) {
  const Tensor& t = call.in(0);
  Dims sizes = t.sizes();
  for (std::size_t i = 0; i * 2 < pad.size(); ++i) sizes[sizes.size() - 1 - i] += pad[2 * i] + pad[2 * i + 1];
  call.fresh(t.dtype(), sizes);
}

void infer_constant_pad(Call& call) { infer_padded(call, call.dims("pad")); }
void infer_mirror_pad(Call& call) { infer_padded(call, call.dims("padding")); }
void infer_mirror_backward(Call& call) { call.fresh(call.in(1).dtype(), call.in(1).sizes()); }

// A negative width cuts off what forward put there.
void constant_pad_backward(Backward& b) {
  static const Op op("aten.constant_pad_nd.default");
  Dims pad = b.dims("pad");
  for (std::size_t i = 0; i < pad.size(); ++i) pad[i] = -pad[i];
  b.give("self", op(b.runner(), {{"self", b.grad()}, {"pad", pad}}));
}

enum Mirror { kReflect1, kReflect2, kReplicate1, kReplicate2 };
template <Mirror kWhich>
void mirror_backward(Backward& b) {
  static const Op op(kWhich == kReflect1     ? "aten.reflection_pad1d_backward.default"
                     : kWhich == kReflect2   ? "aten.reflection_pad2d_backward.default"
                     : kWhich == kReplicate1 ? "aten.replication_pad1d_backward.default"
                                             : "aten.replication_pad2d_backward.default");
  b.give("self",
         op(b.runner(), {{"grad_output", b.grad()}, {"self", b.saved("self")}, {"padding", b.dims("padding")}}));
}

}  // namespace

std::vector<Row> pad_rows() {
  const auto in = infer_mirror_pad;
  const auto out = infer_mirror_backward;
  return {
      of_grad("aten.constant_pad_nd.default", infer_constant_pad, "ConstantPadNdBackward0", constant_pad_backward),
      of_self("aten.reflection_pad1d.default", in, "ReflectionPad1DBackward0", mirror_backward<kReflect1>),
      {.name = "aten.reflection_pad1d_backward.default", .infer = out},
      of_self("aten.reflection_pad2d.default", in, "ReflectionPad2DBackward0", mirror_backward<kReflect2>),
      {.name = "aten.reflection_pad2d_backward.default", .infer = out},
      of_self("aten.replication_pad1d.default", in, "ReplicationPad1DBackward0", mirror_backward<kReplicate1>),
      {.name = "aten.replication_pad1d_backward.default", .infer = out},
      of_self("aten.replication_pad2d.default", in, "ReplicationPad2DBackward0", mirror_backward<kReplicate2>),
      {.name = "aten.replication_pad2d_backward.default", .infer = out},
  };
}

}  // namespace tidemark::ops
