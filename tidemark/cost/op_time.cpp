#include "tidemark/cost/op_time.h"

#include <algorithm>
#include <cmath>

#include "tidemark/base/duration.h"
#include "tidemark/cost/products.h"

namespace tidemark::cost {

namespace {

constexpr double kPsPerS = 1e12;
constexpr double kMostSeconds = static_cast<double>(kLongestOpPs) / kPsPerS;

std::int64_t ps(double seconds) {
  return static_cast<std::int64_t>(std::llround(std::min(seconds, kMostSeconds) * kPsPerS));
}

// PyTorch's softmax keeps rows up to this long in registers; longer ones it reads three times.
constexpr std::int64_t kLongestRowInRegisters = 1024;
constexpr double kNormThreads = 128;     // of a block that works on one row
constexpr double kSoftmaxThreads = 512;  // at most; a thread takes at least eight elements
constexpr double kElementsPerThread = 8;

// How much of the rows in flight is no longer in L2 when it is read again, from 0 to 1.
double missed(const Work& work, const Machine& machine) {
  if (machine.l2_bytes <= 0) return 1;
  const double threads = work.family == Family::kNorm
                             ? kNormThreads
                             : std::clamp(static_cast<double>(work.n) / kElementsPerThread, 32.0, kSoftmaxThreads);
  const double rows = machine.threads_per_multiprocessor / threads * machine.multiprocessors;
  const double in_flight = std::min(rows, static_cast<double>(work.m)) * static_cast<double>(work.n) * work.item_bytes;
  const double part = in_flight / machine.l2_bytes;
  const Constants& c = machine.constants;
  if (part <= c.cache_all) return 0;
  return std::min(1.0, std::log(part / c.cache_all) / std::log(c.cache_none / c.cache_all));
}

// Bytes from and to memory, rows that are read again included.
double row_traffic(const Work& work, const Machine& machine) {
  const auto bytes = static_cast<double>(work.bytes);
  const auto rows = static_cast<double>(work.row_bytes);
  if (work.family == Family::kNorm) return bytes + rows * (work.is_backward ? 2 : missed(work, machine));
  const bool is_read_again = work.n > kLongestRowInRegisters && !work.is_backward;
  return bytes + (is_read_again ? 2 * rows * missed(work, machine) : 0);
}

struct Parts {
  double compute_s = 0;
  double memory_s = 0;
  double both_s = 0;
  std::int64_t flops = 0;
};

Parts vector_parts(double flops, double bytes, const Machine& machine) {
  const double compute = flops / machine.vector_flops_per_s;
  const double memory = bytes / machine.stream_bytes_per_s;
  return {compute, memory, std::max(compute, memory) + machine.constants.overlap_stream * std::min(compute, memory), 0};
}

Parts product_parts(const Work& work, const Machine& machine, double part_of_rate) {
  const ProductTime time = product_time(work, machine, machine.rate(work.precision).flops_per_s * part_of_rate);
  return {time.compute_s, time.memory_s, time.both_s, work.flops};
}

Parts attention_parts(Work work, const Machine& machine) {
  work.flops -= work.skipped_flops;
  const Constants& c = machine.constants;
  return product_parts(work, machine, work.is_backward ? c.attention_backward : c.attention_forward);
}

Work at_priced_precision(Work work) {
  work.precision = priced_precision(work);
  return work;
}

// The 36 products of Winograd's method for patches of 4 x 4: each pixel of a patch of 6 x 6 is one.
Work winograd_of(const Work& work) {
  constexpr std::int64_t kProducts = 36;
  constexpr std::int64_t kFilter = 9;
  Work products = work;
  products.b = kProducts;
  products.m = work.winograd_tiles;
  products.k = work.k / kFilter;
  const std::int64_t outputs = work.m * work.n * work.k * 2;
  const std::int64_t repeats = std::max<std::int64_t>(1, work.flops / std::max<std::int64_t>(outputs, 1));
  products.flops = 2 * products.b * products.m * products.n * products.k * repeats;
  products.bytes =
      work.item_bytes * kProducts * (products.m * products.k + products.k * products.n + products.m * products.n);
  return products;
}

// What it moves beside the products: the filter, read and written as patches; the patches of the result, read and put
// together. The input is cut into patches on the fly.
double winograd_transform_s(const Work& work, const Work& products, const Machine& machine) {
  const double weights = static_cast<double>(work.k + products.b * products.k) * static_cast<double>(work.n);
  const double results = static_cast<double>(products.b * products.m + work.m) * static_cast<double>(work.n);
  return (weights + results) * work.item_bytes / machine.stream_bytes_per_s;
}

Parts convolution_parts(const Work& work, const Machine& machine) {
  const Constants& c = machine.constants;
  const bool is_tiled = machine.rate(work.precision).unit == Unit::kTiles;
  Parts parts = product_parts(work, machine, is_tiled ? c.convolution_direct : 1);
  if (!is_tiled || work.flops == 0) return parts;  // over nothing no kernel runs
  if (work.winograd_tiles > 0) {
    const Work products = winograd_of(work);
    Parts winograd = product_parts(products, machine, c.convolution_winograd);
    const double transform_s = winograd_transform_s(work, products, machine);
    winograd.memory_s += transform_s;
    winograd.both_s += transform_s;
    if (winograd.both_s < parts.both_s) parts = winograd;
  }
  parts.both_s += c.convolution_us * 1e-6;
  return parts;
}

Parts parts_of(const Work& work, const Machine& machine) {
  const Constants& c = machine.constants;
  const double random = static_cast<double>(work.random) * c.random_flops;
  switch (work.family) {
    case Family::kMatmul:
    case Family::kBatched:
      return product_parts(work, machine, 1);
    case Family::kConvolution:
      return convolution_parts(at_priced_precision(work), machine);
    case Family::kAttention:
      return attention_parts(work, machine);
    case Family::kSoftmax:
    case Family::kNorm:
      return vector_parts(static_cast<double>(work.flops), row_traffic(work, machine), machine);
    default:
      return vector_parts(static_cast<double>(work.flops) + random, static_cast<double>(work.bytes), machine);
  }
}

}  // namespace

device::Precision priced_precision(const Work& work) {
  const bool is_rounded = work.family == Family::kConvolution && work.precision == device::Precision::kFloat32;
  return is_rounded ? device::Precision::kTf32 : work.precision;
}

Time op_time(const Work& work, const Machine& machine) {
  Time time;
  const auto family = static_cast<std::size_t>(work.family);
  if (machine.kind != device::DeviceKind::kCpu) time.host_ps = ps(machine.constants.host_us[family] * 1e-6);
  if (work.family == Family::kFree || work.family == Family::kUnpriced) {
    time.source = work.family == Family::kFree ? TimeSource::kFree : TimeSource::kUnpriced;
    if (time.source == TimeSource::kUnpriced) {
      time.memory_ps = ps(static_cast<double>(work.bytes) / machine.stream_bytes_per_s);
      time.launch_ps = ps(machine.launch_s);
    }
    return time;
  }
  const Parts parts = parts_of(work, machine);
  time.flops = parts.flops;
  const double scale = machine.scale[family];
  time.compute_ps = ps(parts.compute_s * scale);
  time.memory_ps = ps(parts.memory_s * scale);
  time.launch_ps = ps(machine.launch_s);
  time.total_ps = time.launch_ps + ps(parts.both_s * scale);
  time.spread_ps = static_cast<std::int64_t>(static_cast<double>(time.total_ps) * machine.error[family]);
  return time;
}

std::int64_t isolated_ps(const Time& time) {
  return time.total_ps - time.launch_ps + std::max(time.launch_ps, time.host_ps);
}

std::int64_t plain_roofline_ps(const Work& work, const device::Device& device) {
  const auto& figure = device.peak(work.precision) ? device.product_peak(work.precision)
                                                   : device.product_peak(device::Precision::kFloat32);
  return ps(std::max(static_cast<double>(work.flops) / static_cast<double>(figure->value),
                     static_cast<double>(work.bytes) / static_cast<double>(device.bandwidth_bytes_per_s.value)));
}

}  // namespace tidemark::cost
