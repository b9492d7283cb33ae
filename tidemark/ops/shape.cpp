// Copies into another shape: joining, repeating, turning, cutting triangles.

#include <algorithm>
#include <array>

#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
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

// Each tensor gets its piece of the gradient; those that want none have it cut all the same.
void cat_backward(Backward& b) {
  static const Op slice("aten.slice.Tensor");
  const std::size_t count = b.count("tensors");
  const std::size_t dim = wrap_dim(b.integer("dim", 0), b.input("tensors").sizes.size());
  std::int64_t start = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t size = b.input("tensors", i).sizes[dim];
    b.give(
        "tensors",
        slice(b.runner(),
              {{"self", b.grad()}, {"dim", static_cast<std::int64_t>(dim)}, {"start", start}, {"end", start + size}}),
        i);
    start += size;
  }
}

void infer_stack(Call& call) {
  Dims sizes = call.in(0).sizes();
  sizes.insert(wrap_dim(call.integer("dim", 0), sizes.size() + 1), static_cast<std::int64_t>(call.inputs().size()));
  call.fresh(call.in(0).dtype(), sizes);
}

void stack_backward(Backward& b) {
  for (std::size_t i = 0; i < b.count("tensors"); ++i)
    b.give("tensors", select(b.runner(), b.grad(), b.integer("dim", 0), static_cast<std::int64_t>(i)), i);
}

void infer_repeat(Call& call) {
  const Tensor& t = call.in(0);
  Dims sizes = call.dims("repeats");
  const std::size_t shift = sizes.size() - t.rank();
  for (std::size_t i = 0; i < t.rank(); ++i) sizes[i + shift] *= t.sizes()[i];
  call.fresh(t.dtype(), sizes);
}

// The copies lie in dimensions of their own, and are added up.
void repeat_backward(Backward& b) {
  Runner& r = b.runner();
  const Dims repeats = b.dims("repeats");
  const Dims& sizes = b.input("self").sizes;
  const std::size_t added = repeats.size() - sizes.size();
  Tensor grad = b.grad();
  for (std::size_t i = 0; i < added; ++i) grad = sum(r, grad, Dims{0}, false);
  Dims apart;
  Dims copies;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (repeats[i + added] != 1) {
      copies.push_back(static_cast<std::int64_t>(apart.size()));
      apart.push_back(repeats[i + added]);
    }
    apart.push_back(sizes[i]);
  }
  if (!copies.empty()) grad = sum(r, reshape(r, grad, apart), copies, false);
  b.give("self", std::move(grad));
}

template <bool kLower>
void triangle_backward(Backward& b) {
  static const Op op(kLower ? "aten.tril.default" : "aten.triu.default");
  const std::int64_t diagonal = b.integer("diagonal", 0);
  if (diagonal == 0) {
    b.give("self", op(b.runner(), {{"self", b.grad()}}));
  } else {
    b.give("self", op(b.runner(), {{"self", b.grad()}, {"diagonal", diagonal}}));
  }
}

void flip_backward(Backward& b) {
  static const Op op("aten.flip.default");
  b.give("self", op(b.runner(), {{"self", b.grad()}, {"dims", b.dims("dims")}}));
}

void roll_backward(Backward& b) {
  static const Op op("aten.roll.default");
  const auto reversed = [](const Dims& dims, int sign) {
    Dims result;
    for (std::size_t i = dims.size(); i-- > 0;) result.push_back(sign * dims[i]);
    return result;
  };
  const Dims shifts = reversed(b.dims("shifts"), -1);
  if (b.dims("dims").empty()) {
    b.give("self", op(b.runner(), {{"self", b.grad()}, {"shifts", shifts}}));
  } else {
    b.give("self", op(b.runner(), {{"self", b.grad()}, {"shifts", shifts}, {"dims", reversed(b.dims("dims"), 1)}}));
  }
}

void infer_like_plain(Call& call) { call.fresh(call.in(0).dtype(), call.in(0).sizes()); }

// A diagonal in the last two dimensions.
void infer_diag_embed(Call& call) {
  Dims sizes = call.in(0).sizes();
  const std::int64_t offset = call.integer("offset", 0);
  const std::int64_t side = sizes.back() + (offset < 0 ? -offset : offset);
  sizes[sizes.size() - 1] = side;
  sizes.push_back(side);
  call.fresh(call.in(0).dtype(), sizes);
}

void diag_embed_backward(Backward& b) {
  static const Op op("aten.diagonal.default");
  b.give("self", op(b.runner(), {{"self", b.grad()}, {"offset", b.integer("offset", 0)}, {"dim1", -2}, {"dim2", -1}}));
}

// Channels become pixels, and back.
void infer_pixel_shuffle(Call& call) {
  Dims sizes = call.in(0).sizes();
  const std::int64_t factor = call.integer("upscale_factor");
  const std::size_t rank = sizes.size();
  sizes[rank - 3] /= factor * factor;
  sizes[rank - 2] *= factor;
  sizes[rank - 1] *= factor;
  call.fresh(call.in(0).dtype(), sizes);
}

void infer_pixel_unshuffle(Call& call) {
  Dims sizes = call.in(0).sizes();
  const std::int64_t factor = call.integer("downscale_factor");
  const std::size_t rank = sizes.size();
  sizes[rank - 3] *= factor * factor;
  sizes[rank - 2] /= factor;
  sizes[rank - 1] /= factor;
  call.fresh(call.in(0).dtype(), sizes);
}

void pixel_shuffle_backward(Backward& b) {
  static const Op op("aten.pixel_unshuffle.default");
  b.give("self", op(b.runner(), {{"self", b.grad()}, {"downscale_factor", b.integer("upscale_factor")}}));
}

void pixel_unshuffle_backward(Backward& b) {
  static const Op op("aten.pixel_shuffle.default");
  b.give("self", op(b.runner(), {{"self", b.grad()}, {"upscale_factor", b.integer("downscale_factor")}}));
}

// Blocks of an image as columns.
void infer_im2col(Call& call) {
  const Dims& sizes = call.in(0).sizes();
  std::int64_t width = sizes[1];
  std::int64_t columns = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t kernel = call.dims("kernel_size")[i];
    width *= kernel;
    columns *= (sizes[2 + i] + 2 * call.dims("padding")[i] - call.dims("dilation")[i] * (kernel - 1) - 1) /
                   call.dims("stride")[i] +
               1;
  }
  call.fresh(call.in(0).dtype(), Dims{sizes[0], width, columns});
}

// The kernel makes a tensor like its input and gives it the size of the image; its storage does not shrink.
void infer_col2im(Call& call) {
  const Dims& sizes = call.in(0).sizes();
  const Dims kernel = call.dims("kernel_size");
  const Dims image = call.dims("output_size");
  call.fresh(call.in(0).dtype(), Dims{sizes[0], sizes[1] / (kernel[0] * kernel[1]), image[0], image[1]});
  Storage& storage = *call.made().back().tensor->storage;
  storage.bytes = std::max(storage.bytes, bytes_of(call.in(0).dtype(), sizes, contiguous_strides(sizes)));
}

void im2col_backward(Backward& b) {
  static const Op op("aten.col2im.default");
  const Dims& sizes = b.input("self").sizes;
  b.give("self", op(b.runner(), {{"self", b.grad()},
                                 {"output_size", Dims{sizes.back(1), sizes.back()}},
                                 {"kernel_size", b.dims("kernel_size")},
                                 {"dilation", b.dims("dilation")},
                                 {"padding", b.dims("padding")},
                                 {"stride", b.dims("stride")}}));
}

void col2im_backward(Backward& b) {
  static const Op op("aten.im2col.default");
  b.give("self", op(b.runner(), {{"self", b.grad()},
                                 {"kernel_size", b.dims("kernel_size")},
                                 {"dilation", b.dims("dilation")},
                                 {"padding", b.dims("padding")},
                                 {"stride", b.dims("stride")}}));
}

}  // namespace

std::vector<Row> shape_rows() {
  return {
      of_grad("aten.cat.default", infer_cat, "CatBackward0", cat_backward),
      of_grad("aten.stack.default", infer_stack, "StackBackward0", stack_backward),
      of_grad("aten.repeat.default", infer_repeat, "RepeatBackward0", repeat_backward),
      of_grad("aten.tril.default", infer_like_plain, "TrilBackward0", triangle_backward<true>),
      of_grad("aten.triu.default", infer_like_plain, "TriuBackward0", triangle_backward<false>),
      of_grad("aten.flip.default", infer_like_first, "FlipBackward0", flip_backward),
      of_grad("aten.roll.default", infer_like_first, "RollBackward0", roll_backward),
      of_grad("aten.diag_embed.default", infer_diag_embed, "DiagEmbedBackward0", diag_embed_backward),
      of_grad("aten.pixel_shuffle.default", infer_pixel_shuffle, "PixelShuffleBackward0", pixel_shuffle_backward),
      of_grad("aten.pixel_unshuffle.default", infer_pixel_unshuffle, "PixelUnshuffleBackward0",
              pixel_unshuffle_backward),
      of_grad("aten.im2col.default", infer_im2col, "Im2ColBackward0", im2col_backward),
      of_grad("aten.col2im.default", infer_col2im, "Col2ImBackward0", col2im_backward),
  };
}

Tensor cat(Runner& r, const std::vector<Tensor>& tensors, std::int64_t dim) {
  static const Op op("aten.cat.default");
  return op(r, {{"tensors", tensors}, {"dim", dim}});
}

}  // namespace tidemark::ops
