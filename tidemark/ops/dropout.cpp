// Dropout as one op, as CUDA has it.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

void infer_native_dropout(Call& call) {
  const Tensor& t = call.in(0);
  const Dims strides = like_strides(t.sizes(), t.strides());
  call.fresh(t.dtype(), t.sizes(), strides);
  call.fresh(DType::kBool, t.sizes(), strides);
}

void native_dropout_backward(Backward& b) {
  static const Op op("aten.native_dropout_backward.default");
  const double p = b.number("p");
  b.give("input",
         op(b.runner(),
            {{"grad_output", b.grad()}, {"mask", b.saved("result1")}, {"scale", p == 1 ? 0.0 : 1.0 / (1.0 - p)}}));
}

bool drops(const Call& call) { return call.number("p") > 0 && call.flag("train", true); }

}  // namespace

std::vector<Row> dropout_rows() {
  return {
      {.name = "aten.native_dropout.default",
       .infer = infer_native_dropout,
       .node = "NativeDropoutBackward0",
       .saved_results = {{"result1"}},
       .results = {"result0", "result1"},
       .backward = native_dropout_backward,
       .is_random = drops},
      {.name = "aten.native_dropout_backward.default", .infer = infer_like_first},
  };
}

}  // namespace tidemark::ops
