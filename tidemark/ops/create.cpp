// Tensors from nothing, or from the shape of another.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

void infer_size(Call& call) { call.fresh(dtype_argument(call, DType::kFloat32), call.dims("size")); }

void infer_like(Call& call) {
  const Tensor& t = call.in(0);
  const char* format = call.text("memory_format");
  const bool is_plain = format != nullptr && std::string_view(format) == "torch.contiguous_format";
  call.fresh(dtype_argument(call, t.dtype()), t.sizes(),
             is_plain ? contiguous_strides(t.sizes()) : like_strides(t.sizes(), t.strides()));
}

void infer_new(Call& call) { call.fresh(dtype_argument(call, call.in(0).dtype()), call.dims("size")); }

void infer_new_strided(Call& call) {
  call.fresh(dtype_argument(call, call.in(0).dtype()), call.dims("size"), call.dims("stride"));
}

void infer_arange(Call& call) {
  const std::int64_t begin = call.integer("start", 0);
  const std::int64_t step = call.integer("step", 1);
  const std::int64_t count = (call.integer("end") - begin + step - 1) / step;
  call.fresh(dtype_argument(call, DType::kInt64), Dims{count});
}

// PyTorch is handed a tensor that was no tensor before; here only its type and size are known.
void infer_lifted(Call& call) {
  const char* type = call.text("lifted");
  call.fresh(type == nullptr ? DType::kFloat32 : dtype_named(type), call.dims("lifted_size"));
}

void infer_scalar(Call& call) { call.fresh(dtype_argument(call, DType::kFloat32), Dims{}); }

bool always(const Call&) { return true; }

// A number that the program reads from a tensor: what follows may depend on it.
void infer_nothing(Call&) {}
constexpr step::OpFlags kReadByTheHost =
    step::OpFlag::kDataDependent | step::OpFlag::kMustSave | step::OpFlag::kHostCopy;

}  // namespace

std::vector<Row> create_rows() {
  return {
      {.name = "aten.empty.memory_format", .infer = infer_size, .moves = moves_nothing},
      {.name = "aten.zeros.default", .infer = infer_size},
      {.name = "aten.ones.default", .infer = infer_size},
      {.name = "aten.full.default", .infer = infer_size},
      {.name = "aten.rand.default", .infer = infer_size, .is_random = always},
      {.name = "aten.randn.default", .infer = infer_size, .is_random = always},
      {.name = "aten.bernoulli.default",
       .infer = infer_like_first,
       .node = "BernoulliBackward0",
       .backward = zero_grad,
       .is_random = always},
      {.name = "aten.empty_like.default", .infer = infer_like, .moves = moves_nothing, .is_constant = true},
      {.name = "aten.zeros_like.default", .infer = infer_like, .moves = only_writes, .is_constant = true},
      {.name = "aten.ones_like.default", .infer = infer_like, .moves = only_writes, .is_constant = true},
      {.name = "aten.full_like.default", .infer = infer_like, .moves = only_writes, .is_constant = true},
      {.name = "aten.new_zeros.default", .infer = infer_new, .moves = only_writes, .is_constant = true},
      {.name = "aten.new_ones.default", .infer = infer_new, .moves = only_writes, .is_constant = true},
      {.name = "aten.new_full.default", .infer = infer_new, .moves = only_writes, .is_constant = true},
      {.name = "aten.new_empty.default", .infer = infer_new, .moves = moves_nothing, .is_constant = true},
      {.name = "aten.new_empty_strided.default",
       .infer = infer_new_strided,
       .moves = moves_nothing,
       .is_constant = true},
      {.name = "aten.arange.default", .infer = infer_arange},
      {.name = "aten.arange.start", .infer = infer_arange},
      {.name = "aten.arange.start_step", .infer = infer_arange},
      {.name = "aten.scalar_tensor.default", .infer = infer_scalar},
      {.name = "aten.lift_fresh.default", .infer = infer_lifted, .hidden = "lifted"},
      {.name = "aten._local_scalar_dense.default", .infer = infer_nothing, .flags = kReadByTheHost},
  };
}

void read_by_host(Runner& r, const Tensor& self) {
  static const Op op("aten._local_scalar_dense.default");
  op.none(r, {{"self", self}});
}

Tensor empty_like(Runner& r, const Tensor& self) {
  static const Op op("aten.empty_like.default");
  return op(r, {{"self", self}});
}

}  // namespace tidemark::ops
