// What writes into its first argument.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

void add_in_place_backward(Backward& b) {
  if (b.needs("other")) b.give("other", b.grad());
  if (b.needs("self")) b.give("self", b.grad());
}

bool always(const Call&) { return true; }

}  // namespace

std::vector<Row> update_rows() {
  return {
      {.name = "aten.add_.Tensor",
       .infer = infer_in_place,
       .node = "AddBackward0",
       .backward = add_in_place_backward,
       .number = "other"},
      {.name = "aten.div_.Scalar", .infer = infer_in_place},
      {.name = "aten.lerp_.Scalar", .infer = infer_in_place},
      {.name = "aten.addcmul_.default", .infer = infer_in_place},
      {.name = "aten.addcdiv_.default", .infer = infer_in_place},
      {.name = "aten.copy_.default", .infer = infer_in_place, .moves = overwrites},
      {.name = "aten.zero_.default", .infer = infer_in_place, .moves = overwrites},
      {.name = "aten.fill_.Scalar", .infer = infer_in_place, .moves = overwrites},
      {.name = "aten.fill_.Tensor", .infer = infer_in_place, .moves = overwrites},
      {.name = "aten.bernoulli_.float", .infer = infer_in_place, .moves = overwrites, .is_random = always},
      {.name = "aten.uniform_.default", .infer = infer_in_place, .moves = overwrites, .is_random = always},
      {.name = "aten.normal_.default", .infer = infer_in_place, .moves = overwrites, .is_random = always},
  };
}

void add_(Runner& r, const Tensor& self, const Tensor& other) {
  static const Op op("aten.add_.Tensor");
  op.none(r, {{"self", self}, {"other", other}});
}

Tensor clone_as(Runner& r, const Tensor& self, const Dims& sizes, const Dims& strides) {
  static const Op empty("aten.new_empty_strided.default");
  static const Op copy("aten.copy_.default");
  Tensor made = empty(r, {{"self", self},
                          {"size", sizes},
                          {"stride", strides},
                          {"dtype", dtype_word(self.dtype())},
                          {"layout", "torch.strided"},
                          {"device", "cpu"}});
  copy.none(r, {{"self", made}, {"src", self}});
  return made;
}

}  // namespace tidemark::ops
