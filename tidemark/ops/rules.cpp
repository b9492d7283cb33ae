#include "tidemark/ops/rules.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace tidemark::ops {

namespace {

int category(DType dtype) {
  if (dtype == DType::kBool) return 0;
  return is_floating(dtype) ? 2 : 1;
}

// Of two types of one category, the one that holds both.
DType wider(DType a, DType b) {
  if (a == b) return a;
  const auto is_half = [](DType d) { return d == DType::kFloat16 || d == DType::kBFloat16; };
  if (is_half(a) && is_half(b)) return DType::kFloat32;
  return step::item_bytes(a) >= step::item_bytes(b) ? a : b;
}

struct Candidate {
  bool is_set = false;
  DType dtype = DType::kBool;

  void add(DType other) {
    if (!is_set) {
      dtype = other;
    } else if (category(other) != category(dtype)) {
      dtype = category(other) > category(dtype) ? other : dtype;
    } else {
      dtype = wider(dtype, other);
    }
    is_set = true;
  }
};

// Which of two dimensions lies further inside in memory, judged by the first operand that can tell.
int compare_dims(const std::vector<Dims>& strides, const Dims& sizes, std::size_t a, std::size_t b) {
  for (const Dims& s : strides) {
    if (s[a] == 0 || s[b] == 0) continue;
    if (s[a] < s[b]) return -1;
    if (s[a] > s[b]) return 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

Dims expanded_strides(const Tensor& t, const Dims& sizes) {
  Dims strides(sizes.size(), 0);
  const std::size_t shift = sizes.size() - t.rank();
  for (std::size_t i = 0; i < t.rank(); ++i)
    strides[i + shift] = t.sizes()[i] == 1 && sizes[i + shift] != 1 ? 0 : t.strides()[i];
  return strides;
}

}  // namespace

DType promoted(const Call& call) {
  Candidate dimensioned;
  Candidate scalar;
  Candidate number;
  for (const Arg& arg : call.args()) {
    if (const auto* t = std::get_if<const Tensor*>(&arg.value)) {
      ((*t)->rank() > 0 ? dimensioned : scalar).add((*t)->dtype());
    } else if (std::holds_alternative<double>(arg.value)) {
      number.add(DType::kFloat32);
    } else if (std::holds_alternative<std::int64_t>(arg.value)) {
      number.add(DType::kInt64);
    }
  }
  Candidate result = dimensioned;
  for (const Candidate& lower : {scalar, number}) {
    if (!lower.is_set) continue;
    if (!result.is_set || category(lower.dtype) > category(result.dtype)) result = lower;
  }
  return result.dtype;
}

void pointwise_layout(const Call& call, Dims& sizes, Dims& strides) {
  const auto& inputs = call.inputs();
  sizes = inputs.front()->sizes();
  bool same_shape = true;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    same_shape = same_shape && inputs[i]->sizes() == sizes;
    if (inputs[i]->sizes() != sizes) sizes = broadcast(sizes, inputs[i]->sizes());
  }
  const auto all = [&](auto&& holds) {
    for (const Tensor* t : inputs)
      if (!holds(*t)) return false;
    return true;
  };
  if (same_shape) {
    if (all([](const Tensor& t) { return is_contiguous(t); })) {
      strides = contiguous_strides(sizes);
      return;
    }
    if (all([](const Tensor& t) { return is_channels_last(t.sizes(), t.strides()); })) {
      strides = channels_last_strides(sizes);
      return;
    }
    const Tensor& first = *inputs.front();
    if (is_dense(first.sizes(), first.strides()) &&
        all([&](const Tensor& t) { return t.strides() == first.strides(); })) {
      strides = first.strides();
      return;
    }
  }
  std::vector<Dims> operand_strides;
  for (const Tensor* t : inputs) operand_strides.push_back(expanded_strides(*t, sizes));
  const std::size_t rank = sizes.size();
  std::array<std::size_t, Dims::kMax> order{};  // innermost first
  for (std::size_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  for (std::size_t i = 1; i < rank; ++i) {
    std::size_t moving = i;
    for (std::size_t j = i; j-- > 0;) {
      const int comparison = compare_dims(operand_strides, sizes, order[j], order[moving]);
      if (comparison > 0) {
        std::swap(order[j], order[moving]);
        moving = j;
      } else if (comparison < 0) {
        break;
      }
    }
  }
  strides = Dims(rank, 1);
  std::int64_t next = 1;
  bool is_plain = true;
  for (std::size_t i = 0; i < rank; ++i) {
    is_plain = is_plain && order[i] == rank - 1 - i;
    strides[order[i]] = next;
    next *= sizes[order[i]];
  }
  if (is_plain) strides = contiguous_strides(sizes);
}

void infer_pointwise(Call& call) {
  Dims sizes;
  Dims strides;
  pointwise_layout(call, sizes, strides);
  call.fresh(promoted(call), sizes, strides);
}

void infer_float_pointwise(Call& call) {
  Dims sizes;
  Dims strides;
  pointwise_layout(call, sizes, strides);
  const DType dtype = promoted(call);
  call.fresh(is_floating(dtype) ? dtype : DType::kFloat32, sizes, strides);
}

void infer_compare(Call& call) {
  Dims sizes;
  Dims strides;
  pointwise_layout(call, sizes, strides);
  call.fresh(DType::kBool, sizes, strides);
}

void infer_in_place(Call& call) { call.mutates(0); }

void infer_like_first(Call& call) {
  const Tensor& t = call.in(0);
  call.fresh(t.dtype(), t.sizes(), like_strides(t.sizes(), t.strides()));
}

Dims reduced(const Dims& sizes, const Dims& dims, bool keepdim) {
  std::array<bool, Dims::kMax> gone{};
  for (const std::int64_t dim : dims) gone[wrap_dim(dim, sizes.size())] = true;
  if (dims.empty()) gone.fill(true);
  Dims result;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!gone[i]) {
      result.push_back(sizes[i]);
    } else if (keepdim) {
      result.push_back(1);
    }
  }
  return result;
}

DType dtype_argument(const Call& call, DType otherwise) {
  const char* word = call.text("dtype");
  if (word == nullptr) return otherwise;
  return dtype_named(word);
}

DType dtype_named(const char* word) {
  const auto dtype = step::dtype_from_name(word + std::strlen("torch."));
  TIDEMARK_CHECK(dtype.has_value(), "the argument names an element type");
  return *dtype;
}

double least_number(DType dtype) {
  // All ones but the last in the exponent, and a mantissa of ones: 10, 7, 23 or 52 of them.
  if (dtype == DType::kFloat16) return -65504.0;
  if (dtype == DType::kBFloat16) return -std::ldexp(2.0 - std::ldexp(1.0, -7), 127);
  if (dtype == DType::kFloat32) return -static_cast<double>(std::numeric_limits<float>::max());
  return std::numeric_limits<double>::lowest();
}

const char* dtype_word(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "torch.float64";
    case DType::kFloat32:
      return "torch.float32";
    case DType::kFloat16:
      return "torch.float16";
    case DType::kBFloat16:
      return "torch.bfloat16";
    case DType::kInt64:
      return "torch.int64";
    case DType::kInt32:
      return "torch.int32";
    case DType::kUInt8:
      return "torch.uint8";
    case DType::kBool:
      return "torch.bool";
    default:
      break;
  }
  TIDEMARK_CHECK(false, "native models use no other element type");
  return "";
}

}  // namespace tidemark::ops
