#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::device {

// A machine that steps run on, as numbers: what times and memory are estimated from. Every number has a source. Peaks
// are dense, never the figure with structured sparsity; units are decimal (a GB/s is 10^9 bytes a second).
enum class DeviceKind : std::uint8_t { kCuda, kRocm, kCpu };
inline constexpr std::array<std::string_view, 3> kDeviceKindNames = {"cuda", "rocm", "cpu"};

enum class MemoryType : std::uint8_t { kHbm, kGddr, kDdr };
inline constexpr std::array<std::string_view, 3> kMemoryTypeNames = {"hbm", "gddr", "ddr"};

// What arithmetic runs in; tf32 is how CUDA multiplies float32 matrices when it is allowed to.
enum class Precision : std::uint8_t { kFloat64, kFloat32, kTf32, kFloat16, kBFloat16, kFloat8, kInt8 };
inline constexpr std::array<std::string_view, 7> kPrecisionNames = {"float64",  "float32", "tf32", "float16",
                                                                    "bfloat16", "float8",  "int8"};

struct Figure {
  std::int64_t value = 0;
  std::string source;  // a key of Device::sources

  friend bool operator==(const Figure&, const Figure&) = default;
};

using FigureByPrecision = std::array<std::optional<Figure>, kPrecisionNames.size()>;

// How devices reach each other: one direction, per device.
struct Link {
  std::string kind;  // "nvlink4"
  Figure bytes_per_s;
  Figure latency_ns;

  friend bool operator==(const Link&, const Link&) = default;
};

struct Source {
  std::string key;
  std::string text;

  friend bool operator==(const Source&, const Source&) = default;
};

// How long one op took on the device when it was run, by its key (tidemark/step/op_key.h).
struct MeasuredOp {
  std::string key;
  std::int64_t time_ps = 0;    // the median
  std::int64_t spread_ps = 0;  // half of the distance between the quartiles
  // What the op asked of the device, in the words of tidemark/cost/work_text.h, which reads them; empty: nobody said.
  std::string work = {};

  friend bool operator==(const MeasuredOp&, const MeasuredOp&) = default;
};

struct Device {
  std::string name;   // lower case with dashes: "h100-sxm"
  std::string title;  // "NVIDIA H100 SXM 80 GB"
  std::vector<std::string> aliases;
  DeviceKind kind = DeviceKind::kCuda;
  std::string generation;  // compute capability, "9.0"; "gfx942"; "avx2"
  MemoryType memory_type = MemoryType::kHbm;
  Figure memory_bytes;
  Figure bandwidth_bytes_per_s;
  std::optional<Figure> stream_permille;  // of the bandwidth, that kernels reach which stream through memory
  Figure multiprocessors;                 // SMs, compute units, cores
  Figure l2_bytes;
  Figure board_watts;
  FigureByPrecision peak_flops;         // per second; none: the device does not have it
  FigureByPrecision matrix_flops;       // of matrix units, where they do more than peak_flops says
  FigureByPrecision achieved_permille;  // of a product's peak, in a large one that was measured
  Figure launch_floor_ns;               // what an op costs the device at least
  Link link;                            // within a node
  std::optional<Link> network;          // between nodes
  Figure allocator_rounding_bytes;
  Figure overhead_bytes;  // what it takes beside tensors
  std::vector<Source> sources;
  std::vector<MeasuredOp> measured;  // by key, no key twice
  std::string measured_source;       // a key of sources; empty without a table
  std::string measured_place;        // where the table stands, for errors: "mine.json: measured: ops"

  const std::optional<Figure>& peak(Precision precision) const {
    return peak_flops[static_cast<std::size_t>(precision)];
  }
  // What matrix products run at, at best.
  const std::optional<Figure>& product_peak(Precision precision) const {
    const auto& matrix = matrix_flops[static_cast<std::size_t>(precision)];
    return matrix ? matrix : peak(precision);
  }
  // Whether libraries round float32 convolutions to tf32 unless they are told not to: cuDNN does.
  bool rounds_convolutions() const { return kind == DeviceKind::kCuda && peak(Precision::kTf32).has_value(); }
  // Requires: a key of `sources`.
  const std::string& source_text(std::string_view key) const;

  friend bool operator==(const Device&, const Device&) = default;
};

}  // namespace tidemark::device
