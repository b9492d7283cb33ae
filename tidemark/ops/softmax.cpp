// Softmax and its relatives.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

void infer_softmax(Call& call) {
  const Tensor& t = call.in(0);
  const DType dtype = call.flag("half_to_float") ? DType::kFloat32 : dtype_argument(call, t.dtype());
  call.fresh(dtype, t.sizes(), like_strides(t.sizes(), t.strides()));
}

void infer_softmax_backward(Call& call) {
  const Tensor& t = call.in(0);
  const char* word = call.text("input_dtype");
  const auto dtype = step::dtype_from_name(std::string_view(word).substr(6));
  call.fresh(*dtype, t.sizes(), like_strides(t.sizes(), t.strides()));
}

template <int kLog>
void softmax_backward(Backward& b) {
  static const Op op(kLog != 0 ? "aten._log_softmax_backward_data.default" : "aten._softmax_backward_data.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"output", b.saved("result")},
                                 {"dim", b.integer("dim")},
                                 {"input_dtype", dtype_word(b.input("self").dtype)}}));
}

}  // namespace

std::vector<Row> softmax_rows() {
  return {
      {.name = "aten._softmax.default",
       .infer = infer_softmax,
       .node = "SoftmaxBackward0",
       .saved_results = {{"result"}},
       .results = {"result"},
       .backward = softmax_backward<0>},
      {.name = "aten._safe_softmax.default",
       .infer = infer_softmax,
       .node = "SafeSoftmaxBackward0",
       .saved_results = {{"result"}},
       .results = {"result"},
       .backward = softmax_backward<0>},
      {.name = "aten._softmax_backward_data.default", .infer = infer_softmax_backward},
      {.name = "aten._log_softmax.default",
       .infer = infer_softmax,
       .node = "LogSoftmaxBackward0",
       .saved_results = {{"result"}},
       .results = {"result"},
       .backward = softmax_backward<1>},
      {.name = "aten._log_softmax_backward_data.default", .infer = infer_softmax_backward},
  };
}

}  // namespace tidemark::ops
