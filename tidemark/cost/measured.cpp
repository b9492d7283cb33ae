#include "tidemark/cost/measured.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tidemark/cost/op_time.h"

namespace tidemark::cost {

namespace {

constexpr std::size_t kFewestRows = 3;
constexpr double kPsPerS = 1e12;

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<std::uint32_t> join_measured(const step::Step& step, const step::OpKinds& kinds,
                                         const device::Device& device) {
  std::vector<std::uint32_t> rows(kinds.first.size(), kNotMeasured);
  if (device.measured.empty()) return rows;
  std::unordered_map<std::string_view, std::uint32_t> by_key;
  for (std::uint32_t i = 0; i < device.measured.size(); ++i) by_key.emplace(device.measured[i].key, i);
  for (std::size_t kind = 0; kind < rows.size(); ++kind) {
    const std::string key = step::op_key(step, kinds.first[kind]);
    const auto found = by_key.find(key);
    if (found != by_key.end()) rows[kind] = found->second;
  }
  return rows;
}

std::string_view overhead_key(step::PassKind kind) {
  switch (kind) {
    case step::PassKind::kBackward:
      return "op overhead backward";
    case step::PassKind::kOptimizer:
      return "op overhead optimizer";
    case step::PassKind::kForward:
    case step::PassKind::kLoss:
    case step::PassKind::kRecompute:
      break;
  }
  return "op overhead forward";
}

const device::MeasuredOp* measured_row(const device::Device& device, std::string_view key) {
  for (const device::MeasuredOp& row : device.measured)
    if (row.key == key) return &row;
  return nullptr;
}

std::optional<std::int64_t> measured_ps(const device::Device& device, std::string_view key) {
  const device::MeasuredOp* row = measured_row(device, key);
  return row == nullptr ? std::nullopt : std::optional(row->time_ps);
}

Machine fit_to_table(Machine machine, const step::Step& step, const step::OpKinds& kinds,
                     const std::vector<std::uint32_t>& rows, const device::Device& device) {
  const auto facts = facts_of(step);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t kind = 0; kind < rows.size(); ++kind)
    if (rows[kind] != kNotMeasured && work_of(step, step[kinds.first[kind]], facts).family != Family::kFree)
      least = std::min(least, device.measured[rows[kind]].time_ps);
  if (least == std::numeric_limits<std::int64_t>::max()) return machine;
  machine.launch_s = static_cast<double>(least) / kPsPerS;
  std::array<std::vector<double>, kFamilyCount> ratios;
  for (std::size_t kind = 0; kind < rows.size(); ++kind) {
    if (rows[kind] == kNotMeasured) continue;
    const Work work = work_of(step, step[kinds.first[kind]], facts);
    const Time modelled = op_time(work, machine);
    const std::int64_t own = modelled.total_ps - modelled.launch_ps;
    const std::int64_t took = device.measured[rows[kind]].time_ps - least;
    if (own > 0 && took > 0)
      ratios[static_cast<std::size_t>(work.family)].push_back(static_cast<double>(took) / static_cast<double>(own));
  }
  for (std::size_t family = 0; family < kFamilyCount; ++family)
    if (ratios[family].size() >= kFewestRows) machine.scale[family] = median(ratios[family]);
  return machine;
}

}  // namespace tidemark::cost
