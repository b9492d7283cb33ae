#pragma once

#include <array>
#include <cstdint>

#include "tidemark/cost/constants.h"
#include "tidemark/device/device.h"

namespace tidemark::cost {

// How matrix products run at a precision.
enum class Unit : std::uint8_t {
  kTiles,       // on the ordinary cores of a CUDA device, one tile of the output per multiprocessor
  kTensorCore,  // on matrix units
  kPlain,       // CPUs, and what is not known better
};

struct Rate {
  double flops_per_s = 0;  // that a large product reaches before tiles, waves and traffic cost their part
  Unit unit = Unit::kPlain;
  double peak_flops_per_s = 0;  // that none exceeds: what is listed, or was measured if that is more; 0: not known
};

// A device with the constants worked into it: what op_time needs, computed once.
struct Machine {
  Constants constants;
  device::DeviceKind kind = device::DeviceKind::kCuda;
  int generation = 0;  // compute capability times ten, 80 for 8.0; 0 for others
  double multiprocessors = 1;
  double threads_per_multiprocessor = 2048;
  double l2_bytes = 0;
  double stream_bytes_per_s = 0;  // reached, not listed
  double launch_s = 0;
  double link_bytes_per_s = 0;
  double link_latency_s = 0;
  double network_bytes_per_s = 0;  // 0: not known
  double network_latency_s = 0;
  double vector_flops_per_s = 0;  // of elementwise work, in float32
  std::array<Rate, device::kPrecisionNames.size()> rates;
  // Measured over modelled, for each family, where a table of measured ops was given.
  std::array<double, kFamilyCount> scale = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  std::array<double, kFamilyCount> error = {};  // how far off the times of a family may be, as a part of them

  // What a view costs where host and device are one and a table has some; else views are free.
  double view_s = 0;

  const Rate& rate(device::Precision precision) const { return rates[static_cast<std::size_t>(precision)]; }
};

// The probe of a device file: one product of three 4096 x 4096 matrices.
inline constexpr std::int64_t kProbeSize = 4096;

Machine make_machine(const device::Device& device, const Constants& constants = kConstants);

}  // namespace tidemark::cost
