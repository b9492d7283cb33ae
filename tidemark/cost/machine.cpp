#include "tidemark/cost/machine.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tidemark/cost/products.h"

namespace tidemark::cost {

namespace {

using device::Device;
using device::DeviceKind;
using device::MemoryType;
using device::Precision;

// "8.0" -> 80; 0 for what is no compute capability.
int generation_of(const Device& device) {
  if (device.kind != DeviceKind::kCuda) return 0;
  char* end = nullptr;
  const double capability = std::strtod(device.generation.c_str(), &end);
  if (end == device.generation.c_str() || !(capability > 0) || capability > 1000) return 0;
  return static_cast<int>(std::lround(capability * 10));
}

double stream_part(const Device& device, int generation, const Constants& constants) {
  if (device.stream_permille) return static_cast<double>(device.stream_permille->value) / 1000;
  if (device.memory_type == MemoryType::kDdr) return constants.stream_ddr;
  const bool is_pascal = generation != 0 && generation < 70;
  return device.memory_type == MemoryType::kGddr || is_pascal ? constants.stream_low : constants.stream_hbm;
}

// CUDA programming guide, table of compute capabilities: resident threads per multiprocessor.
double threads_of(int generation) {
  if (generation == 75) return 1024;
  if (generation == 86 || generation == 87 || generation == 89 || generation >= 120) return 1536;
  return 2048;
}

Unit unit_of(const Device& device, int generation, Precision precision) {
  if (device.kind == DeviceKind::kCpu) return Unit::kPlain;
  if (device.matrix_flops[static_cast<std::size_t>(precision)]) return Unit::kTensorCore;
  const bool is_wide = precision == Precision::kFloat32 || precision == Precision::kFloat64;
  if (device.kind == DeviceKind::kCuda && (is_wide || generation < 70)) return Unit::kTiles;
  return Unit::kTensorCore;
}

// What large products reach of the listed peak when nobody measured it: boards are limited by their power. (Whole
// numbers take little of it.)
double assumed_part(const Device& device, int generation, Unit unit, Precision precision, double peak,
                    const Constants& constants) {
  if (unit != Unit::kTiles) return constants.tensor_core_peak;
  if (precision == Precision::kInt8) return constants.float32_peak;
  const double per_watt = generation >= 89   ? constants.flops_per_watt_ada
                          : generation >= 80 ? constants.flops_per_watt_ampere
                                             : constants.flops_per_watt;
  return std::min(constants.float32_peak, per_watt * static_cast<double>(device.board_watts.value) / peak);
}

// The rate at which the model gives the probe the time that was measured.
double rate_from_probe(const Machine& machine, Precision precision, double achieved_flops_per_s) {
  const int item_bytes = precision == Precision::kFloat64                                    ? 8
                         : precision == Precision::kFloat32 || precision == Precision::kTf32 ? 4
                                                                                             : 2;
  Work probe = product_work(Family::kMatmul, 1, kProbeSize, kProbeSize, kProbeSize, precision, item_bytes);
  probe.is_along_rows = true;
  const double launch_s = machine.kind == DeviceKind::kCpu ? machine.launch_s : machine.constants.kernel_us * 1e-6;
  const double wanted = static_cast<double>(probe.flops) / achieved_flops_per_s - launch_s;
  double low = achieved_flops_per_s;
  double high = achieved_flops_per_s * 4;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (product_time(probe, machine, middle).both_s > wanted ? low : high) = middle;
  }
  return high;
}

}  // namespace

Machine make_machine(const Device& device, const Constants& constants) {
  Machine machine;
  machine.constants = constants;
  machine.kind = device.kind;
  machine.generation = generation_of(device);
  machine.multiprocessors = static_cast<double>(device.multiprocessors.value);
  machine.threads_per_multiprocessor = threads_of(machine.generation);
  machine.l2_bytes = static_cast<double>(device.l2_bytes.value);
  machine.stream_bytes_per_s =
      static_cast<double>(device.bandwidth_bytes_per_s.value) * stream_part(device, machine.generation, constants);
  machine.launch_s = static_cast<double>(device.launch_floor_ns.value) * 1e-9;
  machine.link_bytes_per_s = static_cast<double>(device.link.bytes_per_s.value);
  machine.link_latency_s = static_cast<double>(device.link.latency_ns.value) * 1e-9;
  if (device.network) {
    machine.network_bytes_per_s = static_cast<double>(device.network->bytes_per_s.value);
    machine.network_latency_s = static_cast<double>(device.network->latency_ns.value) * 1e-9;
  }
  machine.error = constants.error;
  if (device.kind == DeviceKind::kCpu)
    for (double& error : machine.error) error = std::max(error, constants.guess_error);
  machine.vector_flops_per_s = static_cast<double>(device.peak(Precision::kFloat32)->value);
  const auto float32 = static_cast<std::size_t>(Precision::kFloat32);
  for (std::size_t i = 0; i < machine.rates.size(); ++i) {
    // What the device does not have runs in float32 at best, and float64 at half of that.
    const bool is_there =
        static_cast<Precision>(i) == Precision::kTf32 ? device.rounds_convolutions() : device.peak_flops[i].has_value();
    const std::size_t from = is_there ? i : float32;
    const auto precision = static_cast<Precision>(from);
    Rate& rate = machine.rates[i];
    rate.unit = unit_of(device, machine.generation, precision);
    const auto peak = static_cast<double>(device.product_peak(precision)->value);
    const auto& achieved = device.achieved_permille[from];
    const double part = achieved ? static_cast<double>(achieved->value) / 1000
                                 : assumed_part(device, machine.generation, rate.unit, precision, peak, constants);
    const double slower = from != i && static_cast<Precision>(i) == Precision::kFloat64 ? 2 : 1;
    rate.flops_per_s = rate_from_probe(machine, precision, part * peak) / slower;
    rate.peak_flops_per_s = std::max(1.0, part) * peak / slower;
  }
  return machine;
}

}  // namespace tidemark::cost
