#include "tidemark/cost/work.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <variant>

#include "tidemark/step/dtype.h"
#include "tidemark/step/op_name.h"

namespace tidemark::cost {

namespace {

using namespace step;
using device::Precision;

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return Precision::kFloat64;
    case DType::kFloat16:
    case DType::kComplex32:
      return Precision::kFloat16;
    case DType::kBFloat16:
      return Precision::kBFloat16;
    case DType::kFloat8E4M3Fn:
    case DType::kFloat8E4M3Fnuz:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2Fnuz:
      return Precision::kFloat8;
    case DType::kInt8:
    case DType::kUInt8:
      return Precision::kInt8;
    default:
      return Precision::kFloat32;
  }
}

bool is_complex(DType dtype) {
  return dtype == DType::kComplex32 || dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

double size_of(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1.0,
                         [](double size, std::int64_t next) { return size * static_cast<double>(next); });
}

std::int64_t count_of(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// Reads what a formula needs from one op.
class OpReader {
 public:
  OpReader(const Step& step, const Op& op, const OpFact& fact)
      : step_(step), op_(op), fact_(fact), inputs_(step.inputs(op)), outputs_(step.outputs(op)) {}

  Work read() {
    work_.family = fact_.family;
    work_.flops = std::max<std::int64_t>(op_.flops, 0);
    const bool are_bytes_known = op_.read_bytes != Op::kUnknown && op_.written_bytes != Op::kUnknown;
    work_.bytes = are_bytes_known ? op_.read_bytes + op_.written_bytes : bytes_of_tensors();
    if (op_.flags.has(OpFlag::kCollective) && fact_.family != Family::kFree) {  // what it returns may be its input
      work_.family = Family::kCollective;
      work_.bytes = larger_side_bytes();
    } else if (fact_.family == Family::kFree || only_makes_views() || makes_nothing()) {
      work_.family = Family::kFree;
    } else if (has_unpriced_argument(step_, op_, fact_)) {
      work_.family = Family::kUnpriced;
    } else if (fact_.family != Family::kUnpriced) {
      read_shapes();
      if (is_complex_) work_.flops = std::min(work_.flops, kMostFlops) * kComplexFlops;
      if (lacks_flops()) work_.family = Family::kUnpriced;
    }
    drop_shape_if_huge();
    return work_;
  }

 private:
  void drop_shape_if_huge() {
    if (is_workable(work_)) return;
    work_.skipped_flops = std::min(work_.skipped_flops, work_.flops);
    work_.b = work_.m = work_.n = work_.k = work_.winograd_tiles = 0;
  }

  const Layout& layout(TensorId tensor) const { return step_[step_[tensor].layout]; }
  std::span<const std::int64_t> sizes(TensorId tensor) const { return step_.sizes(layout(tensor)); }

  bool only_makes_views() const {
    return !outputs_.empty() &&
           std::all_of(outputs_.begin(), outputs_.end(), [](const Output& o) { return o.alias == AliasKind::kView; });
  }

  // Whether the record says too little; the FLOPs of products follow from their shapes.
  bool lacks_flops() const {
    const bool computes = work_.family == Family::kConvolution || work_.family == Family::kAttention ||
                          work_.family == Family::kMatmul || work_.family == Family::kBatched;
    return computes && work_.flops == 0 && work_.bytes > 0 && !is_empty();
  }

  // A product over nothing is no work, and not unknown work.
  bool is_empty() const {
    return std::any_of(inputs_.begin(), inputs_.end(), [&](TensorId input) { return count_of(sizes(input)) == 0; });
  }

  // New memory without values.
  bool makes_nothing() const {
    return op_.read_bytes == 0 && op_.written_bytes == 0 && op_.flops == 0 && !outputs_.empty();
  }

  std::int64_t bytes_of(TensorId tensor) const { return count_of(sizes(tensor)) * item_bytes(layout(tensor).dtype); }

  std::int64_t bytes_of_tensors() const {
    std::int64_t bytes = 0;
    for (const TensorId input : inputs_) bytes += bytes_of(input);
    for (const Output& output : outputs_)
      if (output.alias != AliasKind::kView) bytes += bytes_of(output.tensor);
    return bytes;
  }

  // Collectives are counted by what they gather or scatter: all that goes in or all that comes out. What is written
  // in place is the latter.
  std::int64_t larger_side_bytes() const {
    std::int64_t out = 0;
    for (const Output& output : outputs_) out += bytes_of(output.tensor);
    std::int64_t in = 0;
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const bool is_returned = std::any_of(outputs_.begin(), outputs_.end(), [&](const Output& output) {
        return output.alias != AliasKind::kFresh && output.input == i;
      });
      if (!is_returned) in += bytes_of(inputs_[i]);
      largest = std::max(largest, bytes_of(inputs_[i]));
    }
    return outputs_.empty() ? largest : std::max(in, out);
  }

  void read_shapes() {
    if (!inputs_.empty()) set_dtype(inputs_.front());
    switch (work_.family) {
      case Family::kMatmul:
      case Family::kBatched:
        read_product();
        break;
      case Family::kConvolution:
        read_convolution();
        break;
      case Family::kAttention:
        read_attention();
        break;
      case Family::kSoftmax:
      case Family::kNorm:
        read_rows();
        break;
      default:
        if (op_.flags.has(OpFlag::kRandom) && !outputs_.empty()) work_.random = count_of(sizes(outputs_[0].tensor));
    }
  }

  void set_dtype(TensorId tensor) {
    is_complex_ = is_complex(layout(tensor).dtype);
    work_.precision = precision_of(layout(tensor).dtype);
    work_.item_bytes = item_bytes(layout(tensor).dtype);
  }

  // A record without FLOPs: each element of the left factor is multiplied with every column of the result. Groups of
  // one product (_grouped_mm) share the left factor's rows, or the summed dimension, or the result's columns; in the
  // last case each column of the result is a sum over one group's row only.
  std::int64_t product_flops(TensorId left) const {
    const auto result = sizes(outputs_[0].tensor);
    const double by_left = 2.0 * size_of(sizes(left)) * static_cast<double>(result.back());
    const double by_result = 2.0 * size_of(result) * static_cast<double>(sizes(left).back());
    const double flops = work_.family == Family::kBatched ? by_left : std::min(by_left, by_result);
    return flops < 1e17 ? static_cast<std::int64_t>(flops) : 0;
  }

  void read_product() {
    if (inputs_.size() <= std::max(fact_.left, fact_.right) || outputs_.empty()) return;
    const TensorId a = inputs_[fact_.left];
    const TensorId b = inputs_[fact_.right];
    set_dtype(a);
    const auto a_sizes = sizes(a);
    const auto result = sizes(outputs_[0].tensor);
    if (a_sizes.size() < 2 || result.size() < 2 || sizes(b).size() < 2) return;
    work_.k = a_sizes.back();
    work_.n = result.back();
    if (work_.k == 0 || work_.n == 0) return;
    if (work_.family == Family::kBatched) work_.b = std::max<std::int64_t>(a_sizes[0], 1);
    if (work_.flops == 0) work_.flops = product_flops(a);
    const double others =
        2.0 * static_cast<double>(work_.b) * static_cast<double>(work_.n) * static_cast<double>(work_.k);
    work_.m = static_cast<std::int64_t>(static_cast<double>(work_.flops) / others);
    const auto b_strides = step_.strides(layout(b));
    work_.is_along_rows = step_.strides(layout(a)).back() == 1 &&
                          (fact_.is_right_transposed ? b_strides.back() : b_strides[b_strides.size() - 2]) == 1;
  }

  // Kernels leave out the blocks in which no query sees a key, and compute those on the diagonal in full.
  void read_attention() {
    const std::string_view family = step::op_family(step_.text(op_.name));
    work_.is_backward = family.ends_with("backward");
    const std::size_t query_at = work_.is_backward ? 1 : 0;  // after the gradient of the result
    if (!is_causal() || inputs_.size() < query_at + 2) return;
    const auto query = sizes(inputs_[query_at]);
    const auto key = sizes(inputs_[query_at + 1]);
    if (query.size() != 4 || key.size() != 4) return;  // packed sequences: their lengths are values
    const std::size_t length_at = family.find("scaled_dot_product") != std::string_view::npos ? 2 : 1;
    const auto queries = static_cast<double>(query[length_at]);
    const auto keys = static_cast<double>(key[length_at]);
    if (queries == 0 || keys == 0) return;
    // The first `square` queries see half of as many keys, later ones all of them.
    const double square = std::min(queries, keys);
    double seen = square * std::min((square + kCausalBlock) / 2, keys) + (queries - square) * keys;
    // Where the last query sees the last key: all queries see the keys before the square, or the first ones see none.
    if (ends_together()) seen = square * std::min(keys - square + (square + kCausalBlock) / 2, keys);
    work_.skipped_flops = static_cast<std::int64_t>(static_cast<double>(work_.flops) * (1 - seen / (queries * keys)));
  }

  // The mask of the lower right corner.
  bool ends_together() const {
    const ArgValue* mask = argument("custom_mask_type");
    const auto* kind = mask == nullptr ? nullptr : std::get_if<std::int64_t>(&mask->value);
    return kind != nullptr && *kind == 2;
  }

  bool is_causal() const {
    if (const ArgValue* said = argument("is_causal"))
      if (const auto* flag = std::get_if<bool>(&said->value)) return *flag;
    const ArgValue* mask = argument("custom_mask_type");
    const auto* kind = mask == nullptr ? nullptr : std::get_if<std::int64_t>(&mask->value);
    return kind != nullptr && *kind != 0;
  }

  // As one product: every pixel of the result, by the output channels, by what a filter covers. The backward is as many
  // of them as its FLOPs say.
  void read_convolution() {
    const bool is_backward = step::op_family(step_.text(op_.name)).ends_with("backward");
    const std::size_t weight_at = is_backward ? 2 : 1;
    if (inputs_.size() <= weight_at || outputs_.empty()) return;
    const auto weight = sizes(inputs_[weight_at]);
    const auto result = is_backward ? sizes(inputs_[0]) : sizes(outputs_[0].tensor);
    if (weight.size() < 3 || result.size() != weight.size()) return;
    set_dtype(inputs_[weight_at]);
    work_.is_backward = is_backward;
    work_.k = count_of(weight.subspan(1));
    const std::int64_t groups = groups_of(weight, sizes(inputs_[weight_at - 1])[1]);
    if (is_backward && groups > 1) correct_groups(weight, groups);
    work_.b = groups;
    work_.n = std::max<std::int64_t>(weight[0] / groups, 1);
    work_.m = result[0] * count_of(result.subspan(2));
    const auto image = sizes(inputs_[weight_at - 1]);
    const bool is_winograd = groups == 1 && weight.size() == 4 && weight[2] == 3 && weight[3] == 3 &&
                             image.size() == 4 && image[2] == result[2] && image[3] == result[3] && !is_dilated();
    if (is_winograd) work_.winograd_tiles = result[0] * ((result[2] + 3) / 4) * ((result[3] + 3) / 4);
  }

  const ArgValue* argument(std::string_view name) const {
    if (op_.args.is_none()) return nullptr;
    for (const Arg& arg : step_[op_.args])
      if (step_.text(arg.name) == name) return &arg.value;
    return nullptr;
  }

  // By the record, or by how many channels a filter covers.
  std::int64_t groups_of(std::span<const std::int64_t> weight, std::int64_t channels) const {
    if (const ArgValue* said = argument("groups"))
      if (const auto* groups = std::get_if<std::int64_t>(&said->value)) return std::max<std::int64_t>(*groups, 1);
    return weight[1] > 0 ? std::max<std::int64_t>(channels / weight[1], 1) : 1;
  }

  // PyTorch's counter has the gradient of the weight as if there were no groups; in truth each filter meets the
  // channels of its group only, as in the forward.
  void correct_groups(std::span<const std::int64_t> weight, std::int64_t groups) {
    std::int64_t gradients = 0;  // of input and weight; that of the bias is a sum
    std::int64_t counted = 0;    // as convolutions of the forward's size
    for (const Output& output : outputs_) {
      const auto made = sizes(output.tensor);
      if (made.size() < 3) continue;
      ++gradients;
      counted += std::equal(made.begin(), made.end(), weight.begin(), weight.end()) ? groups : 1;
    }
    if (counted > 0) work_.flops = work_.flops / counted * gradients;
  }

  bool is_dilated() const {
    const ArgValue* dilation = argument("dilation");
    const auto* list = dilation == nullptr ? nullptr : std::get_if<ArgValue::List>(&dilation->value);
    return list != nullptr && std::any_of(list->begin(), list->end(), [](const ArgValue& value) {
             const auto* size = std::get_if<std::int64_t>(&value.value);
             return size != nullptr && *size > 1;
           });
  }

  // Rows are what the statistics count: one mean each; softmax: all but the dimension it runs along.
  void read_rows() {
    const bool is_backward = step::op_family(step_.text(op_.name)).find("backward") != std::string_view::npos;
    work_.is_backward = is_backward;
    if (inputs_.empty()) return;
    const TensorId tensor = inputs_.front();
    const std::int64_t elements = count_of(sizes(tensor));
    work_.row_bytes = elements * work_.item_bytes;
    std::int64_t columns = sizes(tensor).empty() ? 1 : sizes(tensor).back();
    if (work_.family == Family::kNorm && !is_backward && outputs_.size() > 1) {
      const std::int64_t rows = count_of(sizes(outputs_[1].tensor));
      if (rows > 0) columns = elements / rows;
    }
    work_.n = std::max<std::int64_t>(columns, 1);
    work_.m = elements / work_.n;
  }

  const Step& step_;
  const Op& op_;
  const OpFact& fact_;
  std::span<const TensorId> inputs_;
  // A complex product is four real ones; counters have it as one.
  static constexpr std::int64_t kComplexFlops = 4;
  // Queries of one block in FlashAttention-2 (Dao, 2023).
  static constexpr double kCausalBlock = 128;
  static constexpr std::int64_t kMostFlops = std::int64_t{1} << 60;

  std::span<const Output> outputs_;
  bool is_complex_ = false;
  Work work_;
};

}  // namespace

Work work_of(const Step& step, const Op& op, const std::vector<OpFact>& facts) {
  return OpReader(step, op, facts[op.name.index()]).read();
}

bool is_workable(const Work& work) {
  constexpr double kMost = 1e17;
  constexpr double kMostWinograd = 1e15;  // its patches are 36 times as many
  const auto at_least_one = [](std::int64_t size) { return static_cast<double>(std::max<std::int64_t>(size, 1)); };
  if (work.skipped_flops > work.flops) return false;
  const double size = at_least_one(work.b) * at_least_one(work.m) * at_least_one(work.n) * at_least_one(work.k);
  if (work.winograd_tiles == 0) return size < kMost;
  return size < kMostWinograd && work.winograd_tiles <= work.m;
}

Work product_work(Family family, std::int64_t b, std::int64_t m, std::int64_t n, std::int64_t k,
                  device::Precision precision, int item_bytes) {
  Work work;
  work.family = family;
  work.precision = precision;
  work.item_bytes = item_bytes;
  work.b = b;
  work.m = m;
  work.n = n;
  work.k = k;
  work.flops = 2 * b * m * n * k;
  work.bytes = item_bytes * b * (m * k + k * n + m * n);
  return work;
}

Work rows_work(Family family, std::int64_t rows, std::int64_t columns) {
  Work work;
  work.family = family;
  work.m = rows;
  work.n = columns;
  work.row_bytes = 4 * rows * columns;
  work.bytes = 2 * work.row_bytes;
  return work;
}

Work stream_work(std::int64_t bytes) {
  Work work;
  work.family = Family::kStream;
  work.bytes = bytes;
  return work;
}

}  // namespace tidemark::cost
