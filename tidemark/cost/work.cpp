#include "tidemark/cost/work.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "tidemark/step/dtype.h"
#include "tidemark/step/op_name.h"

namespace tidemark::cost {

namespace {

using namespace step;
using device::Precision;

struct Named {
  std::string_view name;  // without namespace and overload
  Family family;
};

// Ops that are more than a walk over their elements, in the order of their names.
constexpr std::array kNamed = std::to_array<Named>({
    {"_addmm_activation", Family::kMatmul},
    {"_convolution", Family::kConvolution},
    {"_cudnn_attention_backward", Family::kAttention},
    {"_cudnn_attention_forward", Family::kAttention},
    {"_efficient_attention_backward", Family::kAttention},
    {"_efficient_attention_forward", Family::kAttention},
    {"_flash_attention_backward", Family::kAttention},
    {"_flash_attention_forward", Family::kAttention},
    {"_fused_rms_norm", Family::kNorm},
    {"_fused_rms_norm_backward", Family::kNorm},
    {"_grouped_mm", Family::kMatmul},
    {"_log_softmax", Family::kSoftmax},
    {"_log_softmax_backward_data", Family::kSoftmax},
    {"_safe_softmax", Family::kSoftmax},
    {"_scaled_dot_product_cudnn_attention", Family::kAttention},
    {"_scaled_dot_product_cudnn_attention_backward", Family::kAttention},
    {"_scaled_dot_product_efficient_attention", Family::kAttention},
    {"_scaled_dot_product_efficient_attention_backward", Family::kAttention},
    {"_scaled_dot_product_flash_attention", Family::kAttention},
    {"_scaled_dot_product_flash_attention_backward", Family::kAttention},
    {"_scaled_dot_product_flash_attention_for_cpu", Family::kAttention},
    {"_scaled_dot_product_flash_attention_for_cpu_backward", Family::kAttention},
    {"_scaled_mm", Family::kMatmul},
    {"_softmax", Family::kSoftmax},
    {"_softmax_backward_data", Family::kSoftmax},
    {"addmm", Family::kMatmul},
    {"baddbmm", Family::kBatched},
    {"bmm", Family::kBatched},
    {"convolution", Family::kConvolution},
    {"convolution_backward", Family::kConvolution},
    {"cudnn_batch_norm", Family::kNorm},
    {"cudnn_batch_norm_backward", Family::kNorm},
    {"linear", Family::kMatmul},
    {"mm", Family::kMatmul},
    {"native_batch_norm", Family::kNorm},
    {"native_batch_norm_backward", Family::kNorm},
    {"native_group_norm", Family::kNorm},
    {"native_group_norm_backward", Family::kNorm},
    {"native_layer_norm", Family::kNorm},
    {"native_layer_norm_backward", Family::kNorm},
});

// Their work is no function of how many bytes they touch.
constexpr std::array kUnknownWork = std::to_array<std::string_view>(
    {"_cdist_backward", "_cdist_forward", "_ctc_loss", "_cudnn_rnn", "_cudnn_rnn_backward", "_fft_c2c", "_fft_c2r",
     "_fft_r2c", "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell", "_unique2", "cholesky", "geqrf", "inverse",
     "lu_solve", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "nonzero", "triangular_solve"});

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return Precision::kFloat64;
    case DType::kFloat16:
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

std::int64_t count_of(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// Reads what a formula needs from one op.
class OpReader {
 public:
  OpReader(const Step& step, const Op& op)
      : step_(step), op_(op), inputs_(step.inputs(op)), outputs_(step.outputs(op)) {}

  Work read(Family family) {
    work_.family = family;
    work_.flops = std::max<std::int64_t>(op_.flops, 0);
    const bool are_bytes_known = op_.read_bytes != Op::kUnknown && op_.written_bytes != Op::kUnknown;
    work_.bytes = are_bytes_known ? op_.read_bytes + op_.written_bytes : bytes_of_tensors();
    if (op_.flags.has(OpFlag::kCollective)) {
      work_.family = Family::kCollective;
    } else if (only_makes_views() || makes_nothing()) {
      work_.family = Family::kFree;
    } else if (family != Family::kUnpriced) {
      read_shapes();
      if (op_.flops == Op::kUnknown && needs_flops()) work_.family = Family::kUnpriced;
    }
    drop_shape_if_huge();
    return work_;
  }

 private:
  // Sizes come from files; the formulas multiply them.
  void drop_shape_if_huge() {
    const double size = static_cast<double>(std::max<std::int64_t>(work_.b, 1)) *
                        static_cast<double>(std::max<std::int64_t>(work_.m, 1)) *
                        static_cast<double>(std::max<std::int64_t>(work_.n, 1)) *
                        static_cast<double>(std::max<std::int64_t>(work_.k, 1));
    if (!(size < 1e17)) work_.b = work_.m = work_.n = work_.k = work_.winograd_tiles = 0;
  }

  const Layout& layout(TensorId tensor) const { return step_[step_[tensor].layout]; }
  std::span<const std::int64_t> sizes(TensorId tensor) const { return step_.sizes(layout(tensor)); }

  bool only_makes_views() const {
    return !outputs_.empty() &&
           std::all_of(outputs_.begin(), outputs_.end(), [](const Output& o) { return o.alias == AliasKind::kView; });
  }

  // Whether a record without FLOPs says too little; those of products follow from their shapes.
  bool needs_flops() const {
    return work_.family == Family::kConvolution || work_.family == Family::kAttention ||
           ((work_.family == Family::kMatmul || work_.family == Family::kBatched) && work_.flops == 0);
  }

  // New memory without values.
  bool makes_nothing() const {
    return op_.read_bytes == 0 && op_.written_bytes == 0 && op_.flops == 0 && !outputs_.empty();
  }

  std::int64_t bytes_of_tensors() const {
    std::int64_t bytes = 0;
    const auto add = [&](TensorId tensor) { bytes += count_of(sizes(tensor)) * item_bytes(layout(tensor).dtype); };
    for (const TensorId input : inputs_) add(input);
    for (const Output& output : outputs_)
      if (output.alias != AliasKind::kView) add(output.tensor);
    return bytes;
  }

  void read_shapes() {
    if (!inputs_.empty()) {
      const DType dtype = layout(inputs_.back()).dtype;
      work_.precision = precision_of(dtype);
      work_.item_bytes = item_bytes(dtype);
    }
    switch (work_.family) {
      case Family::kMatmul:
      case Family::kBatched:
        read_product();
        break;
      case Family::kConvolution:
        read_convolution();
        break;
      case Family::kAttention:
        set_dtype(inputs_.front());
        work_.is_backward = step::op_family(step_.text(op_.name)).ends_with("backward");
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
    work_.precision = precision_of(layout(tensor).dtype);
    work_.item_bytes = item_bytes(layout(tensor).dtype);
  }

  // The factors are the last two inputs; a bias comes before them. linear() is told by the flops: its inputs are
  // (x, weight[, bias]).
  void read_product() {
    if (inputs_.size() < 2) return;
    const bool is_linear = step::op_family(step_.text(op_.name)) == "linear";
    const TensorId a = is_linear ? inputs_[0] : inputs_[inputs_.size() - 2];
    const TensorId b = is_linear ? inputs_[1] : inputs_.back();
    const auto a_sizes = sizes(a);
    const auto b_sizes = sizes(b);
    if (a_sizes.size() < 2 || b_sizes.size() < 2) return;
    set_dtype(a);
    work_.k = a_sizes.back();
    work_.n = is_linear ? b_sizes[0] : b_sizes.back();
    if (work_.k == 0 || work_.n == 0) return;
    if (work_.family == Family::kBatched) work_.b = a_sizes[0];
    const double others = 2.0 * static_cast<double>(std::max<std::int64_t>(work_.b, 1)) * static_cast<double>(work_.n) *
                          static_cast<double>(work_.k);
    if (op_.flops == Op::kUnknown && a_sizes.size() == (work_.family == Family::kBatched ? 3u : 2u)) {
      const double flops = others * static_cast<double>(a_sizes[a_sizes.size() - 2]);
      if (flops < 1e17) work_.flops = static_cast<std::int64_t>(flops);
    }
    work_.m = static_cast<std::int64_t>(static_cast<double>(work_.flops) / others);
    const auto b_strides = step_.strides(layout(b));
    work_.is_along_rows = step_.strides(layout(a)).back() == 1 &&
                          (is_linear ? b_strides.back() == 1 : b_strides[b_strides.size() - 2] == 1);
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
    const std::int64_t channels = sizes(inputs_[weight_at - 1])[1];
    const std::int64_t groups = weight[1] > 0 ? std::max<std::int64_t>(channels / weight[1], 1) : 1;
    work_.b = groups;
    work_.n = std::max<std::int64_t>(weight[0] / groups, 1);
    work_.m = result[0] * count_of(result.subspan(2));
    const auto image = sizes(inputs_[weight_at - 1]);
    const bool is_winograd = groups == 1 && weight.size() == 4 && weight[2] == 3 && weight[3] == 3 &&
                             image.size() == 4 && image[2] == result[2] && image[3] == result[3];
    if (is_winograd) work_.winograd_tiles = result[0] * ((result[2] + 3) / 4) * ((result[3] + 3) / 4);
  }

  // Rows are what the statistics count: one mean each; softmax: all but the dimension it runs along.
  void read_rows() {
    const bool is_backward = step::op_family(step_.text(op_.name)).find("backward") != std::string_view::npos;
    work_.is_backward = is_backward;
    const TensorId tensor = inputs_.front();
    set_dtype(tensor);
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
  std::span<const TensorId> inputs_;
  std::span<const Output> outputs_;
  Work work_;
};

}  // namespace

Family family_of(std::string_view op_name) {
  if (!op_name.starts_with("aten.")) return Family::kUnpriced;
  const std::string_view name = step::op_family(op_name);
  const auto found = std::lower_bound(kNamed.begin(), kNamed.end(), name,
                                      [](const Named& named, std::string_view wanted) { return named.name < wanted; });
  if (found != kNamed.end() && found->name == name) return found->family;
  const bool is_unknown = name.starts_with("linalg_") || name.starts_with("_linalg_") ||
                          std::binary_search(kUnknownWork.begin(), kUnknownWork.end(), name);
  return is_unknown ? Family::kUnpriced : Family::kStream;
}

std::vector<Family> families_of(const Step& step) {
  std::vector<Family> families(step.tables().strings.size(), Family::kUnpriced);
  std::vector<bool> is_known(families.size(), false);
  for (const Op& op : step.tables().ops) {
    if (is_known[op.name.index()]) continue;
    is_known[op.name.index()] = true;
    families[op.name.index()] = family_of(step.text(op.name));
  }
  return families;
}

Work work_of(const Step& step, const Op& op, const std::vector<Family>& families) {
  return OpReader(step, op).read(families[op.name.index()]);
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
