// Other ways to look at the same storage.

#include <algorithm>
#include <limits>

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

void infer_view(Call& call) {
  const Tensor& t = call.in(0);
  const Dims size = infer_size(call.dims("size"), count_of(t.sizes()));
  Dims strides;
  TIDEMARK_CHECK(view_strides(t.sizes(), t.strides(), size, strides), "the tensor can be seen in this size");
  call.view(0, size, strides, t->offset);
}

// The result is no view to autograd, although it shares the storage.
void infer_unsafe_view(Call& call) {
  infer_view(call);
  call.made().back().tensor->is_view = false;
}

void infer_transpose(Call& call) {
  const Tensor& t = call.in(0);
  const std::size_t a = wrap_dim(call.integer("dim0"), t.rank());
  const std::size_t b = wrap_dim(call.integer("dim1"), t.rank());
  Dims sizes = t.sizes();
  Dims strides = t.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  call.view(0, sizes, strides, t->offset);
}

void infer_t(Call& call) {
  const Tensor& t = call.in(0);
  Dims sizes = t.sizes();
  Dims strides = t.strides();
  if (t.rank() == 2) {
    std::swap(sizes[0], sizes[1]);
    std::swap(strides[0], strides[1]);
  }
  call.view(0, sizes, strides, t->offset);
}

void infer_permute(Call& call) {
  const Tensor& t = call.in(0);
  const Dims dims = call.dims("dims");
  Dims sizes = t.sizes();
  Dims strides = t.strides();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t from = wrap_dim(dims[i], t.rank());
    sizes[i] = t.sizes()[from];
    strides[i] = t.strides()[from];
  }
  call.view(0, sizes, strides, t->offset);
}

void infer_expand(Call& call) {
  const Tensor& t = call.in(0);
  Dims size = call.dims("size");
  Dims strides(size.size(), 0);
  const std::size_t shift = size.size() - t.rank();
  for (std::size_t i = size.size(); i-- > 0;) {
    if (i < shift) {
      // A dimension that was not there: as if of size one, before the next.
      strides[i] = size[i] == 1 && i + 1 < size.size() ? size[i + 1] * strides[i + 1] : 0;
      continue;
    }
    const std::int64_t own = t.sizes()[i - shift];
    if (size[i] == -1) size[i] = own;
    strides[i] = own == size[i] ? t.strides()[i - shift] : 0;
  }
  call.view(0, size, strides, t->offset);
}

void infer_unsqueeze(Call& call) {
  const Tensor& t = call.in(0);
  const std::size_t dim = wrap_dim(call.integer("dim"), t.rank() + 1);
  Dims sizes = t.sizes();
  Dims strides = t.strides();
  const std::int64_t stride = dim < t.rank() ? sizes[dim] * strides[dim] : 1;
  sizes.insert(dim, 1);
  strides.insert(dim, stride);
  call.view(0, sizes, strides, t->offset);
}

void infer_squeeze(Call& call) {
  const Tensor& t = call.in(0);
  const std::size_t dim = wrap_dim(call.integer("dim"), t.rank());
  Dims sizes = t.sizes();
  Dims strides = t.strides();
  if (sizes[dim] == 1) {
    sizes.erase(dim);
    strides.erase(dim);
  }
  call.view(0, sizes, strides, t->offset);
}

// Of the dimensions named, or of all, those of size one go.
void infer_squeeze_some(Call& call) {
  const Tensor& t = call.in(0);
  const Dims named = call.dims("dim");
  Dims sizes;
  Dims strides;
  for (std::size_t i = 0; i < t.rank(); ++i) {
    bool goes = named.empty();
    for (const std::int64_t dim : named) goes = goes || wrap_dim(dim, t.rank()) == i;
    if (goes && t.sizes()[i] == 1) continue;
    sizes.push_back(t.sizes()[i]);
    strides.push_back(t.strides()[i]);
  }
  call.view(0, sizes, strides, t->offset);
}

// Windows along a dimension: the window becomes the last one.
void infer_unfold(Call& call) {
  const Tensor& t = call.in(0);
  const std::size_t dim = wrap_dim(call.integer("dimension"), t.rank());
  const std::int64_t size = call.integer("size");
  const std::int64_t step = call.integer("step");
  Dims sizes = t.sizes();
  Dims strides = t.strides();
  sizes[dim] = (sizes[dim] - size) / step + 1;
  sizes.push_back(size);
  strides.push_back(strides[dim]);
  strides[dim] *= step;
  call.view(0, sizes, strides, t->offset);
}

void infer_diagonal(Call& call) {
  const Tensor& t = call.in(0);
  const std::int64_t offset = call.integer("offset", 0);
  const std::size_t rows = wrap_dim(call.integer("dim1", 0), t.rank());
  const std::size_t columns = wrap_dim(call.integer("dim2", 1), t.rank());
  const std::int64_t length = offset >= 0 ? std::min(t.sizes()[rows], t.sizes()[columns] - offset)
                                          : std::min(t.sizes()[rows] + offset, t.sizes()[columns]);
  const std::int64_t start = offset >= 0 ? offset * t.strides()[columns] : -offset * t.strides()[rows];
  Dims sizes;
  Dims strides;
  for (std::size_t i = 0; i < t.rank(); ++i) {
    if (i == rows || i == columns) continue;
    sizes.push_back(t.sizes()[i]);
    strides.push_back(t.strides()[i]);
  }
  sizes.push_back(std::max<std::int64_t>(length, 0));
  strides.push_back(t.strides()[rows] + t.strides()[columns]);
  call.view(0, sizes, strides, t->offset + (length > 0 ? start : 0));
}

void infer_slice(Call& call) {
  const Tensor& t = call.in(0);
  const std::size_t dim = wrap_dim(call.integer("dim"), t.rank());
  const std::int64_t size = t.sizes()[dim];
  const auto clamp = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size); };
  const std::int64_t start = clamp(call.integer("start", 0));
  const std::int64_t end = std::max(start, clamp(call.integer("end", std::numeric_limits<std::int64_t>::max())));
  const std::int64_t step = call.integer("step", 1);
  Dims sizes = t.sizes();
  Dims strides = t.strides();
  sizes[dim] = (end - start + step - 1) / step;
  strides[dim] *= step;
  call.view(0, sizes, strides, t->offset + start * t.strides()[dim]);
}

void infer_select(Call& call) {
  const Tensor& t = call.in(0);
  const std::size_t dim = wrap_dim(call.integer("dim"), t.rank());
  std::int64_t index = call.integer("index");
  if (index < 0) index += t.sizes()[dim];
  Dims sizes = t.sizes();
  Dims strides = t.strides();
  sizes.erase(dim);
  strides.erase(dim);
  call.view(0, sizes, strides, t->offset + index * t.strides()[dim]);
}

void infer_alias(Call& call) { call.view(0, call.in(0).sizes(), call.in(0).strides(), call.in(0)->offset); }

void infer_split(Call& call) {
  const Tensor& t = call.in(0);
  const std::size_t dim = wrap_dim(call.integer("dim", 0), t.rank());
  const std::int64_t piece = call.integer("split_size");
  for (std::int64_t start = 0; start < t.sizes()[dim]; start += piece) {
    Dims sizes = t.sizes();
    sizes[dim] = std::min(piece, t.sizes()[dim] - start);
    call.view(0, sizes, t.strides(), t->offset + start * t.strides()[dim]);
  }
}

void infer_split_sizes(Call& call) {
  const Tensor& t = call.in(0);
  const std::size_t dim = wrap_dim(call.integer("dim", 0), t.rank());
  std::int64_t start = 0;
  for (const std::int64_t piece : call.dims("split_sizes")) {
    Dims sizes = t.sizes();
    sizes[dim] = piece;
    call.view(0, sizes, t.strides(), t->offset + start * t.strides()[dim]);
    start += piece;
  }
}

void infer_unbind(Call& call) {
  const Tensor& t = call.in(0);
  const std::size_t dim = wrap_dim(call.integer("dim", 0), t.rank());
  for (std::int64_t i = 0; i < t.sizes()[dim]; ++i) {
    Dims sizes = t.sizes();
    Dims strides = t.strides();
    sizes.erase(dim);
    strides.erase(dim);
    call.view(0, sizes, strides, t->offset + i * t.strides()[dim]);
  }
}

void view_backward(Backward& b) { b.give("self", reshape(b.runner(), b.grad(), b.input("self").sizes)); }

void transpose_backward(Backward& b) {
  b.give("self", transpose(b.runner(), b.grad(), b.integer("dim0"), b.integer("dim1")));
}

void t_backward(Backward& b) { b.give("self", t(b.runner(), b.grad())); }

void permute_backward(Backward& b) {
  const Dims dims = b.dims("dims");
  Dims inverse(dims.size(), 0);
  for (std::size_t i = 0; i < dims.size(); ++i) inverse[wrap_dim(dims[i], dims.size())] = static_cast<std::int64_t>(i);
  b.give("self", permute(b.runner(), b.grad(), inverse));
}

void expand_backward(Backward& b) { b.give("self", sum_to(b.runner(), b.grad(), b.input("self").sizes)); }

void unsqueeze_backward(Backward& b) { b.give("self", squeeze(b.runner(), b.grad(), b.integer("dim"))); }

void squeeze_backward(Backward& b) {
  const Dims& sizes = b.input("self").sizes;
  const std::size_t dim = wrap_dim(b.integer("dim"), sizes.size());
  b.give("self", sizes[dim] == 1 ? unsqueeze(b.runner(), b.grad(), static_cast<std::int64_t>(dim)) : b.grad());
}

void squeeze_some_backward(Backward& b) {
  const Dims& sizes = b.input("self").sizes;
  const Dims named = b.dims("dim");
  Tensor grad = b.grad();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    bool went = named.empty();
    for (const std::int64_t dim : named) went = went || wrap_dim(dim, sizes.size()) == i;
    if (went && sizes[i] == 1) grad = unsqueeze(b.runner(), grad, static_cast<std::int64_t>(i));
  }
  b.give("self", std::move(grad));
}

void unfold_backward(Backward& b) {
  static const Op op("aten.unfold_backward.default");
  b.give("self", op(b.runner(), {{"grad_in", b.grad()},
                                 {"input_sizes", b.input("self").sizes},
                                 {"dim", b.integer("dimension")},
                                 {"size", b.integer("size")},
                                 {"step", b.integer("step")}}));
}

void diagonal_backward(Backward& b) {
  static const Op op("aten.diagonal_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"input_sizes", b.input("self").sizes},
                                 {"offset", b.integer("offset", 0)},
                                 {"dim1", b.integer("dim1", 0)},
                                 {"dim2", b.integer("dim2", 1)}}));
}

void slice_backward(Backward& b) {
  static const Op op("aten.slice_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"input_sizes", b.input("self").sizes},
                                 {"dim", b.integer("dim")},
                                 {"start", b.integer("start")},
                                 {"end", b.integer("end", std::numeric_limits<std::int64_t>::max())},
                                 {"step", b.integer("step", 1)}}));
}

void select_backward(Backward& b) {
  static const Op op("aten.select_backward.default");
  b.give("self", op(b.runner(), {{"grad_output", b.grad()},
                                 {"input_sizes", b.input("self").sizes},
                                 {"dim", b.integer("dim")},
                                 {"index", b.integer("index")}}));
}

void alias_backward(Backward& b) { b.give("self", b.grad()); }

Tensor zeros_of(Backward& b, std::size_t output, const Dims& size) {
  static const Op zeros("aten.zeros.default");
  return zeros(
      b.runner(),
      {{"size", size}, {"dtype", dtype_word(b.output(output).dtype)}, {"layout", "torch.strided"}, {"device", "cpu"}});
}

// Gradients of all pieces, with zeros for those that got none, side by side again.
void split_backward(Backward& b) {
  std::vector<Tensor> pieces;
  for (std::size_t i = 0; i < b.grad_count(); ++i) {
    if (b.grad(i)) {
      pieces.push_back(b.grad(i));
    } else {
      pieces.push_back(zeros_of(b, i, b.output(i).sizes));
    }
  }
  const std::size_t dim = wrap_dim(b.integer("dim", 0), b.input("self").sizes.size());
  b.give("self", cat(b.runner(), pieces, static_cast<std::int64_t>(dim)));
}

// The same, but stacked: what got no gradient is one zero, seen as often as needed.
void unbind_backward(Backward& b) {
  static const Op stack("aten.stack.default");
  Runner& r = b.runner();
  std::vector<Tensor> slices;
  for (std::size_t i = 0; i < b.grad_count(); ++i) {
    if (b.grad(i)) {
      slices.push_back(b.grad(i));
    } else {
      slices.push_back(expand(r, zeros_of(b, i, Dims{}), b.output(i).sizes));
    }
  }
  const std::int64_t dim = b.integer("dim", 0);
  b.give("self", dim == 0 ? stack(r, {{"tensors", slices}}) : stack(r, {{"tensors", slices}, {"dim", dim}}));
}

void infer_input_sizes(Call& call) { call.fresh(call.in(0).dtype(), call.dims("input_sizes")); }

}  // namespace

std::vector<Row> view_rows() {
  return {
      {.name = "aten.view.default", .infer = infer_view, .node = "ViewBackward0", .backward = view_backward},
      {.name = "aten._unsafe_view.default",
       .infer = infer_unsafe_view,
       .node = "UnsafeViewBackward0",
       .backward = view_backward},
      {.name = "aten.t.default", .infer = infer_t, .node = "TBackward0", .backward = t_backward},
      {.name = "aten.transpose.int",
       .infer = infer_transpose,
       .node = "TransposeBackward0",
       .backward = transpose_backward},
      {.name = "aten.permute.default",
       .infer = infer_permute,
       .node = "PermuteBackward0",
       .backward = permute_backward},
      {.name = "aten.expand.default", .infer = infer_expand, .node = "ExpandBackward0", .backward = expand_backward},
      {.name = "aten.unsqueeze.default",
       .infer = infer_unsqueeze,
       .node = "UnsqueezeBackward0",
       .backward = unsqueeze_backward},
      {.name = "aten.squeeze.dim", .infer = infer_squeeze, .node = "SqueezeBackward1", .backward = squeeze_backward},
      {.name = "aten.slice.Tensor", .infer = infer_slice, .node = "SliceBackward0", .backward = slice_backward},
      {.name = "aten.slice_backward.default", .infer = infer_input_sizes},
      {.name = "aten.select.int", .infer = infer_select, .node = "SelectBackward0", .backward = select_backward},
      {.name = "aten.select_backward.default", .infer = infer_input_sizes},
      {.name = "aten.alias.default", .infer = infer_alias, .node = "AliasBackward0", .backward = alias_backward},
      {.name = "aten.split.Tensor", .infer = infer_split, .node = "SplitBackward0", .backward = split_backward},
      of_grad("aten.split_with_sizes.default", infer_split_sizes, "SplitWithSizesBackward0", split_backward),
      of_grad("aten.unbind.int", infer_unbind, "UnbindBackward0", unbind_backward),
      of_grad("aten.squeeze.default", infer_squeeze_some, "SqueezeBackward0", squeeze_some_backward),
      of_grad("aten.squeeze.dims", infer_squeeze_some, "SqueezeBackward2", squeeze_some_backward),
      of_grad("aten.unfold.default", infer_unfold, "UnfoldBackward0", unfold_backward),
      {.name = "aten.unfold_backward.default", .infer = infer_input_sizes},
      of_grad("aten.diagonal.default", infer_diagonal, "DiagonalBackward0", diagonal_backward),
      {.name = "aten.diagonal_backward.default", .infer = infer_input_sizes},
  };
}

Tensor view(Runner& r, const Tensor& self, const Dims& size) {
  static const Op op("aten.view.default");
  return op(r, {{"self", self}, {"size", size}});
}
Tensor unsafe_view(Runner& r, const Tensor& self, const Dims& size) {
  static const Op op("aten._unsafe_view.default");
  return op(r, {{"self", self}, {"size", size}});
}
Tensor t(Runner& r, const Tensor& self) {
  static const Op op("aten.t.default");
  return op(r, {{"self", self}});
}
Tensor transpose(Runner& r, const Tensor& self, std::int64_t dim0, std::int64_t dim1) {
  static const Op op("aten.transpose.int");
  return op(r, {{"self", self}, {"dim0", dim0}, {"dim1", dim1}});
}
Tensor permute(Runner& r, const Tensor& self, const Dims& dims) {
  static const Op op("aten.permute.default");
  return op(r, {{"self", self}, {"dims", dims}});
}
Tensor expand(Runner& r, const Tensor& self, const Dims& size) {
  static const Op op("aten.expand.default");
  return op(r, {{"self", self}, {"size", size}});
}
Tensor unsqueeze(Runner& r, const Tensor& self, std::int64_t dim) {
  static const Op op("aten.unsqueeze.default");
  return op(r, {{"self", self}, {"dim", dim}});
}
Tensor squeeze(Runner& r, const Tensor& self, std::int64_t dim) {
  static const Op op("aten.squeeze.dim");
  return op(r, {{"self", self}, {"dim", dim}});
}
// As Python's indexing: what leaves nothing out is an alias.
Tensor slice(Runner& r, const Tensor& self, std::int64_t dim, std::int64_t start, std::int64_t end) {
  static const Op op("aten.slice.Tensor");
  if (start == 0 && end >= self.sizes()[wrap_dim(dim, self.rank())]) return alias(r, self);
  return op(r, {{"self", self}, {"dim", dim}, {"start", start}, {"end", end}});
}
Tensor select(Runner& r, const Tensor& self, std::int64_t dim, std::int64_t index) {
  static const Op op("aten.select.int");
  return op(r, {{"self", self}, {"dim", dim}, {"index", index}});
}
Tensor alias(Runner& r, const Tensor& self) {
  static const Op op("aten.alias.default");
  return op(r, {{"self", self}});
}
std::vector<Tensor> split(Runner& r, const Tensor& self, std::int64_t size, std::int64_t dim) {
  static const Op op("aten.split.Tensor");
  return op.all(r, {{"self", self}, {"split_size", size}, {"dim", dim}});
}

Tensor detach(const Tensor& self) {
  Tensor t(new TensorData);
  t->storage = self->storage;
  ++t->storage->holders;
  t->dtype = self->dtype;
  t->sizes = self->sizes;
  t->strides = self->strides;
  t->offset = self->offset;
  t->layout = self->layout;
  t->is_view = true;
  return t;
}

Tensor reshape(Runner& r, const Tensor& self, const Dims& size) {
  const Dims wanted = infer_size(size, count_of(self.sizes()));
  Dims strides;
  if (view_strides(self.sizes(), self.strides(), wanted, strides)) return view(r, self, size);
  return unsafe_view(r, clone_contiguous(r, self), wanted);
}

Tensor contiguous(Runner& r, const Tensor& self) { return is_contiguous(self) ? self : clone_contiguous(r, self); }

}  // namespace tidemark::ops
