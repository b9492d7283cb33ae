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
std::string_view overhead_key(step::PassKind kind);

// What the table has for a key. None: nothing.
const device::MeasuredOp* measured_row(const device::Device& device, std::string_view key);
std::optional<std::int64_t> measured_ps(const device::Device& device, std::string_view key);

// The machine of a device with a table, for the ops that are not in it: what a launch costs is the least that was
// measured, and each family is scaled by the median of measured over modelled, from at least three kinds of ops.
// Requires: `rows` is join_measured(step, kinds, device).
Machine fit_to_table(Machine machine, const step::Step& step, const step::OpKinds& kinds,
                     const std::vector<std::uint32_t>& rows, const device::Device& device);

}  // namespace tidemark::cost
