#include "tidemark/ops/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tidemark/ops/autograd.h"

namespace tidemark::ops {

namespace {

[[noreturn]] void misfit(const std::string& problem, const Dims& a, const Dims& b) {
  throw Error({.kind = ErrorKind::kInternal,
               .place = "tidemark/ops",
               .problem = problem,
               .expected = {},
               .got = fmt::format("[{}] and [{}]", fmt::join(a.span(), ","), fmt::join(b.span(), ",")),
               .remedy = "please report this with the model and its options"});
}

// Dimensions ordered as they lie in memory, the outermost first; equal strides keep their order.
std::array<std::size_t, Dims::kMax> memory_order(const Dims& sizes, const Dims& strides) {
  std::array<std::size_t, Dims::kMax> order{};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::size_t at = i;
    for (; at > 0 && strides[order[at - 1]] < strides[i]; --at) order[at] = order[at - 1];
    order[at] = i;
  }
  return order;
}

}  // namespace

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product) && product <= (std::int64_t{1} << 60)) return product;
  throw Error({.kind = ErrorKind::kLimit,
               .place = "model",
               .problem = "something would be too large to count",
               .expected = "at most 2^60 elements, bytes or FLOPs",
               .got = fmt::format("{} times {}", a, b),
               .remedy = "smaller sizes, a shorter sequence or a smaller batch"});
}

TensorData::~TensorData() {
  if (storage == nullptr || --storage->holders > 0) return;
  if (storage->watcher != nullptr) storage->watcher->died(*storage);
  delete storage;
}

std::int64_t Tensor::size(int dim) const { return data_->sizes[wrap_dim(dim, rank())]; }

std::int64_t count_of(const Dims& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count = times(count, size);
  return count;
}

std::int64_t bytes_of(DType dtype, const Dims& sizes, const Dims& strides) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    last += times(sizes[i] - 1, strides[i]);
  }
  return times(last + 1, step::item_bytes(dtype));
}

Dims contiguous_strides(const Dims& sizes) {
  Dims strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = times(strides[i], std::max<std::int64_t>(sizes[i], 1));
  return strides;
}

bool is_contiguous(const Dims& sizes, const Dims& strides) {
  std::int64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

Dims channels_last_strides(const Dims& sizes) {
  Dims strides(4, 1);
  strides[3] = sizes[1];
  strides[2] = times(strides[3], sizes[3]);
  strides[0] = times(strides[2], sizes[2]);
  return strides;
}

bool is_channels_last(const Dims& sizes, const Dims& strides) {
  if (sizes.size() != 4) return false;
  std::int64_t expected = 1;
  for (const std::size_t i : {1u, 3u, 2u, 0u}) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

bool is_dense(const Dims& sizes, const Dims& strides) {
  // Dimension by dimension, the next one in memory is looked for: there are few.
  std::array<bool, Dims::kMax> is_seen{};
  std::size_t left = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    is_seen[i] = sizes[i] == 1;
    left += is_seen[i] ? 0 : 1;
  }
  for (std::int64_t expected = 1; left > 0; --left) {
    std::size_t next = 0;
    while (next < sizes.size() && (is_seen[next] || strides[next] != expected)) ++next;
    if (next == sizes.size()) return false;
    is_seen[next] = true;
    expected *= sizes[next];
  }
  return true;
}

Dims like_strides(const Dims& sizes, const Dims& strides) {
  if (is_dense(sizes, strides)) return strides;
  const auto order = memory_order(sizes, strides);
  Dims result(sizes.size(), 1);
  std::int64_t next = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    result[order[i]] = next;
    next = times(next, std::max<std::int64_t>(sizes[order[i]], 1));
  }
  return result;
}

std::size_t wrap_dim(std::int64_t dim, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  TIDEMARK_CHECK(dim >= -count && dim < count, "a dimension lies within the tensor");
  return static_cast<std::size_t>(dim < 0 ? dim + count : dim);
}

Dims infer_size(const Dims& size, std::int64_t count) {
  Dims result = size;
  std::int64_t known = 1;
  std::size_t open = Dims::kMax;
  for (std::size_t i = 0; i < size.size(); ++i) {
    if (size[i] == -1) {
      open = i;
    } else {
      known = times(known, size[i]);
    }
  }
  if (open != Dims::kMax) {
    TIDEMARK_CHECK(known != 0 && count % known == 0, "a view has as many elements as the tensor");
    result[open] = count / known;
  } else {
    TIDEMARK_CHECK(known == count, "a view has as many elements as the tensor");
  }
  return result;
}

bool view_strides(const Dims& sizes, const Dims& strides, const Dims& size, Dims& result) {
  result = Dims(size.size(), 1);
  if (count_of(sizes) == 0) {
    result = contiguous_strides(size);
    return true;
  }
  // PyTorch's computeStride: chunks of dimensions that lie together in memory are cut anew, from the last one on.
  std::int64_t chunk_stride = strides.empty() ? 1 : strides.back();
  std::int64_t tensor_count = 1;
  std::int64_t view_count = 1;
  auto view_dim = static_cast<std::int64_t>(size.size()) - 1;
  for (auto d = static_cast<std::int64_t>(sizes.size()) - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    tensor_count *= sizes[i];
    if (d != 0 && (sizes[i - 1] == 1 || strides[i - 1] == tensor_count * chunk_stride)) continue;
    while (view_dim >= 0 && (view_count < tensor_count || size[static_cast<std::size_t>(view_dim)] == 1)) {
      result[static_cast<std::size_t>(view_dim)] = view_count * chunk_stride;
      view_count *= size[static_cast<std::size_t>(view_dim)];
      --view_dim;
    }
    if (view_count != tensor_count) return false;
    if (d > 0) {
      chunk_stride = strides[i - 1];
      tensor_count = 1;
      view_count = 1;
    }
  }
  if (sizes.empty()) {
    for (std::size_t i = 0; i < size.size(); ++i) result[i] = 1;
    return true;
  }
  return view_dim == -1;
}

Dims broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims result = longer;
  const std::size_t shift = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& size = result[i + shift];
    if (size == 1) {
      size = shorter[i];
    } else if (shorter[i] != 1 && shorter[i] != size) {
      misfit("two shapes do not fit together", a, b);
    }
  }
  return result;
}

bool is_floating(DType dtype) { return dtype < DType::kInt64; }

}  // namespace tidemark::ops
