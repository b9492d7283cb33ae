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

// A time, and how far off it may be.
struct Around {
  std::int64_t time_ps = 0;
  std::int64_t spread_ps = 0;
};

// What an op, or a view, costs beside itself in such a pass. Tables of older versions have none for views, which then
// count as ops. And what each pass costs beside all of them, and an optimizer for each parameter that it goes through:
// older tables have nothing.
Around op_overhead(const device::Device& device, step::PassKind pass, bool is_view);
Around pass_overhead(const device::Device& device, step::PassKind pass);
Around parameter_overhead(const device::Device& device);

// What a table says about ops of one name that are not in it.
struct NameFit {
  double scale = 1;        // over what the machine says beside the launch
  double launch_ps = 0;    //
  double error = 0;        // of the total, as a part of it
  double most_own_ps = 0;  // up to which rows were there to learn from, beside the launch
};

// The machine of a device with a table, for the ops that are not in it.
struct TableFit {
  Machine machine;
  std::vector<NameFit> names;  // by the step's strings; those that are no op's are as they come
};

// Rows that say what their op asked of the device teach whatever the step is, others where the step has such an op.
// - A launch is the median of what rows took beyond their work whose work is no more than a launch; a view that of
// views.
// - Each family is scaled by the median of measured over modelled, weighted by what is modelled, of at least three
// rows;
//   only rows that are modelled to take several launches say something here.
// - An op whose name has such rows is scaled by theirs, and its launch is what its small rows took beyond that.
// - How far off that may be: half of the distance between the quartiles of what it is the median of, and no less than
//   the error of the family, nor than what was open before over the root of how many rows there are, by their weights.
// Requires: `rows` is join_measured(step, kinds, device). Throws: Error that names the row whose words cannot be read.
TableFit fit_to_table(const Machine& machine, const step::Step& step, const step::OpKinds& kinds,
                      const std::vector<std::uint32_t>& rows, const device::Device& device);

}  // namespace tidemark::cost
