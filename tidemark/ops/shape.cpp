// Copies into another shape: joining, padding, repeating.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

void infer_cat(Call& call) {
  const auto& tensors = call.inputs();
  const std::size_t dim = wrap_dim(call.integer("dim", 0), tensors.front()->rank());
  Dims sizes = tensors.front()->sizes();
  bool all_channels_last = sizes.size() == 4;
  for (const Tensor* t : tensors)
    all_channels_last = all_channels_last && !is_contiguous(*t) && is_channels_last(t->sizes(), t->strides());
  for (std::size_t i = 1; i < tensors.size(); ++i) sizes[dim] += tensors[i]->sizes()[dim];
  call.fresh(tensors.front()->dtype(), sizes,
             all_channels_last ? channels_last_strides(sizes) : contiguous_strides(sizes));
}

// Each tensor gets its piece of the gradient.
void cat_backward(Backward& b) {
  const std::size_t count = b.count("tensors");
  const std::size_t dim = wrap_dim(b.integer("dim", 0), b.input("tensors").sizes.size());
  std::int64_t start = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t size = b.input("tensors", i).sizes[dim];
    if (b.needs_item("tensors", i))
      b.give("tensors", slice(b.runner(), b.grad(), static_cast<std::int64_t>(dim), start, start + size), i);
    start += size;
  }
}

void infer_constant_pad(Call& call) {
  const Tensor& t = call.in(0);
  const Dims pad = call.dims("pad");
  Dims sizes = t.sizes();
  for (std::size_t i = 0; i * 2 < pad.size(); ++i) sizes[sizes.size() - 1 - i] += pad[2 * i] + pad[2 * i + 1];
  call.fresh(t.dtype(), sizes);
}

// A negative width cuts off what forward put there.
void constant_pad_backward(Backward& b) {
  static const Op op("aten.constant_pad_nd.default");
  Dims pad = b.dims("pad");
  for (std::size_t i = 0; i < pad.size(); ++i) pad[i] = -pad[i];
  b.give("self", op(b.runner(), {{"self", b.grad()}, {"pad", pad}}));
}

void infer_repeat(Call& call) {
  const Tensor& t = call.in(0);
  Dims sizes = call.dims("repeats");
  const std::size_t shift = sizes.size() - t.rank();
  for (std::size_t i = 0; i < t.rank(); ++i) sizes[i + shift] *= t.sizes()[i];
  call.fresh(t.dtype(), sizes);
}

void infer_stack(Call& call) {
  Dims sizes = call.in(0).sizes();
  sizes.insert(wrap_dim(call.integer("dim", 0), sizes.size() + 1), static_cast<std::int64_t>(call.inputs().size()));
  call.fresh(call.in(0).dtype(), sizes);
}

}  // namespace

std::vector<Row> shape_rows() {
  return {
      {.name = "aten.cat.default", .infer = infer_cat, .node = "CatBackward0", .backward = cat_backward},
      {.name = "aten.stack.default", .infer = infer_stack},
      {.name = "aten.constant_pad_nd.default",
       .infer = infer_constant_pad,
       .node = "ConstantPadNdBackward0",
       .backward = constant_pad_backward},
      {.name = "aten.repeat.default", .infer = infer_repeat},
      {.name = "aten.tril.default", .infer = infer_like_first},
      {.name = "aten.triu.default", .infer = infer_like_first},
  };
}

Tensor cat(Runner& r, const std::vector<Tensor>& tensors, std::int64_t dim) {
  static const Op op("aten.cat.default");
  return op(r, {{"tensors", tensors}, {"dim", dim}});
}

}  // namespace tidemark::ops
