#include "tidemark/cost/reference_roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "tidemark/base/error.h"
#include "tidemark/base/rounding.h"
#include "tidemark/device/catalog.h"
#include "tidemark/ops/tensor.h"
#include "tidemark/step/dtype.h"
#include "tidemark/step/op_name.h"

namespace tidemark::cost {

namespace {

using step::DType;
using step::Step;
using step::TensorId;

constexpr double kFactorM = 0.75;

// What torch queried from the cards of the published runs: SMs x 4 x clock x 32 for float32 without tensor cores, x 512
// with them for half types; bandwidth from memory clock and bus. A100 PCIe 80 GB: 108 SMs at 1.41 GHz, 1.512 GHz on
// 5120 bits; Tesla M60: 16 SMs at 1.177 GHz, 2.505 GHz on 256 bits.
constexpr ReferenceHardware kLineM[] = {
    {ReferenceLine::kM, "a100-80-pcie", 1935.36, {}, {{19.49184, kFactorM}}, {{311.86944, kFactorM}}},
    {ReferenceLine::kM, "m60", 160.3, {}, {{2.410, kFactorM}}, {}},
};

// The presets of the successor. 1979 and 1671 are the figures with structured sparsity, as it has them.
constexpr ReferenceRate kA100Single = {19.5, 0.55};
constexpr ReferenceRate kA100Double = {9.7, 0.55};
constexpr ReferenceRate kA100Half = {312, 0.65};
constexpr ReferenceHardware kLineB[] = {
    {ReferenceLine::kB, "a100-40-pcie", 1555, kA100Double, kA100Single, kA100Half},
    {ReferenceLine::kB, "a100-80-pcie", 1935, kA100Double, kA100Single, kA100Half},
    {ReferenceLine::kB, "a100-40-sxm", 1555, kA100Double, kA100Single, kA100Half},
    {ReferenceLine::kB, "a100-80-sxm", 2039, kA100Double, kA100Single, kA100Half},
    {ReferenceLine::kB, "h100-sxm", 3350, {{34, 0.3}}, {{67, 0.5}}, {{1979, 0.75}}},
    {ReferenceLine::kB, "h100-nvl", 3900, {{30, 0.5}}, {{60, 0.5}}, {{1671, 0.75}}},
};

// The compiler's data sheets (torch._inductor.analysis.device_info, 2.13); H100's are halved there, since the sheet
// counts structured sparsity.
constexpr ReferenceHardware kLineN[] = {
    {ReferenceLine::kN, "b200", 7700, {{37, kFactorM}}, {{75, kFactorM}}, {{2250, kFactorM}}},
    {ReferenceLine::kN, "h100-sxm", 3350, {{33.5, kFactorM}}, {{33.5, kFactorM}}, {{989.5, kFactorM}}},
    {ReferenceLine::kN, "a100-80-sxm", 2039, {{19.5, kFactorM}}, {{19.5, kFactorM}}, {{312.5, kFactorM}}},
    {ReferenceLine::kN, "l4", 3350, {{15.1, kFactorM}}, {{30.3, kFactorM}}, {{242, kFactorM}}},
    {ReferenceLine::kN, "mi350x", 8000, {{72.1, kFactorM}}, {{144.2, kFactorM}}, {{2309.6, kFactorM}}},
    {ReferenceLine::kN, "mi300x", 5300, {{163.4, kFactorM}}, {{163.4, kFactorM}}, {{1307.4, kFactorM}}},
    {ReferenceLine::kN, "mi300a", 5300, {{122.6, kFactorM}}, {{122.6, kFactorM}}, {{980.6, kFactorM}}},
    {ReferenceLine::kN, "mi210", 1600, {{45.3, kFactorM}}, {{45.3, kFactorM}}, {{181, kFactorM}}},
    {ReferenceLine::kN, "arc-b580", 456, {{6.83, kFactorM}}, {{13.67, kFactorM}}, {{116.5, kFactorM}}},
};

// Families that cost nothing: views, and creations.
const std::unordered_set<std::string_view>& free_families() {
  static const std::unordered_set<std::string_view> families = {
      "lift_fresh", "t",          "transpose", "view",       "detach",      "_unsafe_view", "split",
      "adjoint",    "as_strided", "diagonal",  "expand",     "expand_as",   "movedim",      "permute",
      "select",     "squeeze",    "mT",        "mH",         "real",        "imag",         "view_as",
      "unflatten",  "unfold",     "unbind",    "unsqueeze",  "vsplit",      "hsplit",       "split_with_sizes",
      "swapaxes",   "swapdims",   "chunk",     "randint",    "randn",       "rand",         "randn_like",
      "rand_like",  "arange",     "ones_like", "zeros_like", "randint_like"};
  return families;
}

bool moved_twice(std::string_view family) {
  return family == "native_group_norm" || family == "_log_softmax" || family == "native_layer_norm";
}

// Line b divides its traffic by this: caches hold a third of it.
constexpr double kCacheFactorB = 1.5;

double traffic_bytes(const ReferenceTensor& tensor, ReferenceLine line) {
  if (line == ReferenceLine::kN) return tensor.covered_bytes;
  return static_cast<double>(round_up(tensor.storage_bytes, kCudaRoundingBytes));
}

ReferenceTensor measure(const Step& step, TensorId id) {
  const step::Tensor& tensor = step[id];
  const step::Layout& layout = step[tensor.layout];
  double covered = step::item_bytes(layout.dtype);
  const auto sizes = step.sizes(layout);
  const auto strides = step.strides(layout);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (strides[i] != 0) covered *= static_cast<double>(sizes[i]);
  return {step[tensor.storage].bytes, covered};
}

// The type an op computes in: the smallest floating one it returns.
std::optional<DType> computing_type(const Step& step, const step::Op& op) {
  std::optional<DType> smallest;
  for (const step::Output& output : step.outputs(op)) {
    const DType dtype = step[step[output.tensor].layout].dtype;
    if (!ops::is_floating(dtype)) continue;
    if (!smallest || step::item_bytes(dtype) < step::item_bytes(*smallest)) smallest = dtype;
  }
  return smallest;
}

const std::optional<ReferenceRate>& rate_of(const ReferenceHardware& hardware, DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return hardware.float64;
    case DType::kFloat32:
      return hardware.float32;
    default:
      return hardware.half;
  }
}

double compute_ns(const ReferenceWork& work, const ReferenceHardware& hardware) {
  if (work.flops <= 0 || !work.dtype) return 0;
  const auto& rate = rate_of(hardware, *work.dtype);
  if (!rate) {
    throw Error({.kind = ErrorKind::kInput,
                 .place = fmt::format("op {}", work.family),
                 .problem = fmt::format("{} knows no peak of {} for {}",
                                        kReferenceLineNames[static_cast<std::size_t>(hardware.line)], hardware.name,
                                        step::name_of(*work.dtype)),
                 .expected = {},
                 .got = {},
                 .remedy = "take another device, or record the step in another type"});
  }
  return reference_compute_ns(work.flops, *rate);
}

// A row of the line's tables. None: it has no such name.
std::optional<ReferenceHardware> listed(ReferenceLine line, std::string_view name) {
  for (const ReferenceHardware& hardware : reference_hardware(line))
    if (hardware.name == name) return hardware;
  return std::nullopt;
}

// A built-in device by any of its names; a file is never taken for one, whatever name stands in it.
bool is_built_in(const device::Device& device) {
  const auto& all = device::built_in_devices();
  return std::find(all.begin(), all.end(), device) != all.end();
}

// The hardware of a name refers to the device, which therefore is there for the call only.
template <typename Call>
auto with_hardware(ReferenceLine line, const std::string& device, const Call& call) {
  if (const auto row = listed(line, device)) return call(*row);
  const device::Device found = device::find_device(device);
  const auto row = is_built_in(found) ? listed(line, found.name) : std::nullopt;
  return call(row ? *row : reference_hardware_of(line, found));
}

}  // namespace

std::vector<ReferenceHardware> reference_hardware(ReferenceLine line) {
  switch (line) {
    case ReferenceLine::kM:
      return {std::begin(kLineM), std::end(kLineM)};
    case ReferenceLine::kB:
      return {std::begin(kLineB), std::end(kLineB)};
    case ReferenceLine::kN:
      return {std::begin(kLineN), std::end(kLineN)};
  }
  return {};
}

ReferenceHardware find_reference_hardware(ReferenceLine line, std::string_view name) {
  std::string names;
  for (const ReferenceHardware& hardware : reference_hardware(line)) {
    if (hardware.name == name) return hardware;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", hardware.name);
  }
  throw Error({.kind = ErrorKind::kInput,
               .place = "device",
               .problem = fmt::format("{} has no such device", kReferenceLineNames[static_cast<std::size_t>(line)]),
               .expected = names,
               .got = fmt::format("\"{}\"", name),
               .remedy = "take one of these, or the model without a name for any device"});
}

ReferenceHardware reference_hardware_of(ReferenceLine line, const device::Device& device) {
  constexpr double kPerTera = 1e12;
  constexpr double kPerGiga = 1e9;
  const auto rate = [&](device::Precision precision) -> std::optional<ReferenceRate> {
    const auto& peak = device.peak(precision);
    if (!peak) return std::nullopt;
    const bool is_half = precision == device::Precision::kFloat16 || precision == device::Precision::kBFloat16;
    const double factor_b = (is_half ? kA100Half : kA100Single).factor;  // what line b takes of any other device
    return ReferenceRate{static_cast<double>(peak->value) / kPerTera, line == ReferenceLine::kB ? factor_b : kFactorM};
  };
  const auto float16 = rate(device::Precision::kFloat16);
  return {.line = line,
          .name = device.name,
          .bandwidth_gb_per_s = static_cast<double>(device.bandwidth_bytes_per_s.value) / kPerGiga,
          .float64 = rate(device::Precision::kFloat64),
          .float32 = rate(device::Precision::kFloat32),
          .half = float16 ? float16 : rate(device::Precision::kBFloat16)};
}

double reference_compute_ns(double flops, const ReferenceRate& rate) {
  return flops / 2 / (rate.factor * rate.peak_tflops * 1e12) * 1e9;
}

double reference_transfer_ns(double bytes, const ReferenceHardware& hardware) {
  return bytes / hardware.bandwidth_gb_per_s;
}

double reference_op_ms(const ReferenceWork& work, const ReferenceHardware& hardware) {
  if (free_families().contains(work.family)) return 0;
  double bytes = 0;
  for (const ReferenceTensor& tensor : work.tensors) bytes += traffic_bytes(tensor, hardware.line);
  if (hardware.line == ReferenceLine::kB) bytes *= (moved_twice(work.family) ? 2.0 : 1.0) / kCacheFactorB;
  return std::max(compute_ns(work, hardware), reference_transfer_ns(bytes, hardware)) / 1e6;
}

std::vector<double> reference_times_ms(const Step& step, const ReferenceHardware& hardware) {
  std::vector<double> times;
  times.reserve(step.tables().ops.size());
  std::vector<ReferenceTensor> tensors;
  for (const step::Op& op : step.tables().ops) {
    tensors.clear();
    for (const TensorId input : step.inputs(op)) tensors.push_back(measure(step, input));
    for (const step::Output& output : step.outputs(op)) tensors.push_back(measure(step, output.tensor));
    times.push_back(reference_op_ms({.family = step::op_family(step.text(op.name)),
                                     .tensors = tensors,
                                     .flops = static_cast<double>(op.flops),
                                     .dtype = computing_type(step, op)},
                                    hardware));
  }
  return times;
}

std::vector<double> reference_times_ms(const Step& step, ReferenceLine line, const std::string& device) {
  return with_hardware(line, device,
                       [&](const ReferenceHardware& hardware) { return reference_times_ms(step, hardware); });
}

double reference_op_ms(const ReferenceWork& work, ReferenceLine line, const std::string& device) {
  return with_hardware(line, device,
                       [&](const ReferenceHardware& hardware) { return reference_op_ms(work, hardware); });
}

device::DeviceKind reference_device_kind(ReferenceLine line, const std::string& device) {
  return listed(line, device) ? device::DeviceKind::kCuda : device::find_device(device).kind;
}

}  // namespace tidemark::cost
