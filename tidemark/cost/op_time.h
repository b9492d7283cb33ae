#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tidemark/cost/machine.h"
#include "tidemark/cost/work.h"

namespace tidemark::cost {

// Where a time comes from.
enum class TimeSource : std::uint8_t {
  kModelled,  // a formula
  kMeasured,  // a row of the device's table
  kFree,      // nothing runs on the device
  kUnpriced,  // not known: counts as nothing, and is listed
};
inline constexpr std::array<std::string_view, 4> kTimeSourceNames = {"modelled", "measured", "free", "unpriced"};

// How long one op keeps a device. `total_ps` is launch and work, computing and moving partly overlapped, or what was
// measured. `host_ps` is what the host needs to issue it, which overlaps with other ops' work. Of an op without a
// price, `memory_ps` is what moving its bytes would take.
struct Time {
  std::int64_t compute_ps = 0;
  std::int64_t memory_ps = 0;
  std::int64_t launch_ps = 0;
  std::int64_t total_ps = 0;
  std::int64_t host_ps = 0;
  std::int64_t spread_ps = 0;  // how far off total_ps may be, either way
  std::int64_t flops = 0;      // that kernels carry out: fewer than are counted where a method does with fewer
  TimeSource source = TimeSource::kModelled;

  friend bool operator==(const Time&, const Time&) = default;
};

// The precision whose rate an op is priced at: cuDNN may round the float32 numbers of a convolution to tf32 unless it
// is told not to. A device without such units has the rate of float32 there.
device::Precision priced_precision(const Work& work);

// The longest time that any op is given, so that sums of a few fit: 1e6 s.
inline constexpr std::int64_t kLongestOpPs = 1'000'000'000'000'000'000;

// The model. A pure function: same work, same machine, same time.
Time op_time(const Work& work, const Machine& machine);

// One op run alone, as a benchmark of single calls sees it: the host's launch is the floor.
std::int64_t isolated_ps(const Time& time);

// The time of plain roofline: the longer of FLOPs over the listed peak and bytes over the listed bandwidth. For
// comparison only.
std::int64_t plain_roofline_ps(const Work& work, const device::Device& device);

}  // namespace tidemark::cost
