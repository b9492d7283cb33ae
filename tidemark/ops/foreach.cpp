// Ops on lists of tensors, and optimizers in one op.

#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

// Writes into every tensor of a list, which stands where the lists before it end.
void mutates_list(Call& call, const char* name) {
  std::size_t at = 0;
  for (const Arg& arg : call.args()) {
    const auto* list = std::get_if<std::span<const Tensor>>(&arg.value);
    if (std::string_view(arg.name) == name) {
      for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) call.mutates(at + i);
      return;
    }
    at += list != nullptr ? list->size() : std::holds_alternative<const Tensor*>(arg.value) ? 1 : 0;
  }
}

void infer_update(Call& call) { mutates_list(call, "self"); }

void infer_each_number(Call& call) {
  for (std::size_t i = 0; i < call.list("self").size(); ++i) call.fresh(call.list("self")[i].dtype(), Dims{});
}

void infer_each(Call& call) {
  for (const Tensor& t : call.list("self")) call.fresh(t.dtype(), t.sizes(), like_strides(t.sizes(), t.strides()));
}

// Fused optimizers may scale gradients, so their schema says that they write them.
void infer_fused_adam(Call& call) {
  for (const char* name : {"self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"}) mutates_list(call, name);
}

void infer_fused_sgd(Call& call) {
  for (const char* name : {"self", "grads", "momentum_buffer_list"}) mutates_list(call, name);
}

}  // namespace

std::vector<Row> foreach_rows() {
  return {
      {.name = "aten._foreach_add_.Tensor", .infer = infer_update},
      {.name = "aten._foreach_add_.Scalar", .infer = infer_update},
      {.name = "aten._foreach_add_.List", .infer = infer_update},
      {.name = "aten._foreach_mul_.Scalar", .infer = infer_update},
      {.name = "aten._foreach_mul_.Tensor", .infer = infer_update},
      {.name = "aten._foreach_copy_.default", .infer = infer_update},
      {.name = "aten._foreach_lerp_.Scalar", .infer = infer_update},
      {.name = "aten._foreach_addcmul_.Scalar", .infer = infer_update},
      {.name = "aten._foreach_addcdiv_.ScalarList", .infer = infer_update},
      {.name = "aten._foreach_div_.ScalarList", .infer = infer_update},
      {.name = "aten._foreach_sqrt.default", .infer = infer_each},
      {.name = "aten._foreach_norm.Scalar", .infer = infer_each_number},
      {.name = "aten._fused_adamw_.default", .infer = infer_fused_adam},
      {.name = "aten._fused_adam_.default", .infer = infer_fused_adam},
      {.name = "aten._fused_sgd_.default", .infer = infer_fused_sgd},
  };
}

}  // namespace tidemark::ops
