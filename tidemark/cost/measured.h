#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tidemark/cost/machine.h"
#include "tidemark/device/device.h"
#include "tidemark/step/op_key.h"
#include "tidemark/step/step.h"

namespace tidemark::cost {

// By kind of op, the position of its row in the device's table of measurements, or kNotMeasured.
inline constexpr std::uint32_t kNotMeasured = 0xFFFFFFFFu;
std::vector<std::uint32_t> join_measured(const step::Step& step, const step::OpKinds& kinds,
                                         const device::Device& device);

// Rows of the table that are no op: what a checkpointed region costs beside its ops, what each save in it costs,
// keeping the random state for it, and what an op costs more inside a step than when it is called alone (Python,
// modules, autograd), where host and device are one.
inline constexpr std::string_view kRegionKey = "checkpoint region";
inline constexpr std::string_view kRegionSaveKey = "checkpoint save";
inline constexpr std::string_view kRegionRngKey = "checkpoint random state";

// What the table has for a key. None: nothing.
const device::MeasuredOp* measured_row(const device::Device& device, std::string_view key);
std::optional<std::int64_t> measured_ps(const device::Device& device, std::string_view key);

// Of an op, or of a view, in such a pass. Tables of older versions have none for views, which then count as ops.
std::int64_t overhead_ps(const device::Device& device, step::PassKind pass, bool is_view);

// The machine of a device with a table, for the ops that are not in it.
struct TableFit {
  Machine machine;
  std::vector<double> name_scale;  // by the step's strings: ops of that name over what the machine says
};

// Rows that say what their op asked of the device teach whatever the step is, others where the step has such an op.
// What a launch costs is the least that was measured, a view the median of views. Each family is scaled by the median
// of measured over modelled, weighted by what is modelled, of at least three rows; rows of which the launch is nearly
// all say nothing here. An op whose name has such rows is scaled by theirs. Requires: `rows` is join_measured(step,
// kinds, device). Throws: Error that names the row whose words cannot be read.
TableFit fit_to_table(const Machine& machine, const step::Step& step, const step::OpKinds& kinds,
                      const std::vector<std::uint32_t>& rows, const device::Device& device);

}  // namespace tidemark::cost
