#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/device/device.h"
#include "tidemark/step/dtype.h"
#include "tidemark/step/step.h"

namespace tidemark::cost {

// Times as PyTorch's own estimators give them (torch.distributed._tools.runtime_estimator and its descendants), quirks
// included, so that their published numbers can be reproduced and compared. An op takes the longer of arithmetic and
// traffic; FLOPs are halved although the peak counts a multiply-add as two; views and creations are free, all else
// costs its whole storages. The cost model that plans are made with is another one.
//
//   m  the estimator of torch.distributed: 75 % of the peak, storages rounded up to 512 B, repeated ones counted again
//   b  its successor with presets per device: a factor per type, norms and log-softmax moved twice, bandwidth times 1.5
//   n  the compiler's helper: 75 % of the data sheet, only the bytes that a tensor covers
enum class ReferenceLine : std::uint8_t { kM, kB, kN };
inline constexpr std::array<std::string_view, 3> kReferenceLineNames = {"reference-m", "reference-b", "reference-n"};

// What a line knows of a device. A factor is the part of the peak that the line thinks is reached.
struct ReferenceRate {
  double peak_tflops = 0;
  double factor = 0;
};
struct ReferenceHardware {
  ReferenceLine line = ReferenceLine::kM;
  std::string_view name;
  double bandwidth_gb_per_s = 0;
  std::optional<ReferenceRate> float64, float32, half;  // half: float16 and bfloat16
};

// The devices of a line's tables, in their order.
std::vector<ReferenceHardware> reference_hardware(ReferenceLine line);

// What the line makes of a device that its tables do not have, from the device's own figures: the part of each peak
// that the line takes, which for line b is what it takes of an A100, and 75 % otherwise.
// Requires: `device` outlives the result, which has its name.
ReferenceHardware reference_hardware_of(ReferenceLine line, const device::Device& device);

// Throws: Error with the known names.
ReferenceHardware find_reference_hardware(ReferenceLine line, std::string_view name);

// Nanoseconds for `flops` (multiply and add counted apart), and for `bytes`.
double reference_compute_ns(double flops, const ReferenceRate& rate);
double reference_transfer_ns(double bytes, const ReferenceHardware& hardware);

// What an op asks of a device, without a step around it.
struct ReferenceTensor {
  std::int64_t storage_bytes = 0;
  double covered_bytes = 0;  // of its elements, without dimensions of stride 0
};
struct ReferenceWork {
  std::string_view family;                   // "addmm"
  std::span<const ReferenceTensor> tensors;  // all it is given and returns, repeated ones again
  double flops = 0;
  std::optional<step::DType> dtype;  // the smallest floating type it returns
};

// Throws: Error when the hardware has no peak for the type that the op computes in.
double reference_op_ms(const ReferenceWork& work, const ReferenceHardware& hardware);

// Milliseconds of every op of the step, by its id. Throws: Error when the hardware has no peak for a type that an op
// computes in.
std::vector<double> reference_times_ms(const step::Step& step, const ReferenceHardware& hardware);

// The same for any device: by a name of the line's tables, by a name or alias of a built-in device (the tables' figures
// where they have it), or by the path of a device file. Throws: Error when there is none of these.
std::vector<double> reference_times_ms(const step::Step& step, ReferenceLine line, const std::string& device);
double reference_op_ms(const ReferenceWork& work, ReferenceLine line, const std::string& device);
// The kind of that device; those of the tables alone are CUDA's.
device::DeviceKind reference_device_kind(ReferenceLine line, const std::string& device);

}  // namespace tidemark::cost
