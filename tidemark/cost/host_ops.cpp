#include "tidemark/cost/host_ops.h"

#include <algorithm>

#include "tidemark/step/op_name.h"

namespace tidemark::cost {

namespace {

using namespace step;

constexpr std::string_view kCpu = "cpu";

bool is_one_number(const Step& step, TensorId tensor) {
  const auto sizes = step.sizes(step[step[tensor].layout]);
  return std::all_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size == 1; });
}

// By storage: whether the host keeps it.
std::vector<bool> host_storages(const Step& step) {
  const auto& storages = step.tables().storages;
  std::vector<bool> is_host(storages.size(), false);
  for (std::size_t i = 0; i < storages.size(); ++i) is_host[i] = step.text(storages[i].device) == kCpu;
  // A step that is on a CPU altogether was recorded there, to run anywhere.
  if (std::find(is_host.begin(), is_host.end(), false) == is_host.end()) is_host.assign(is_host.size(), false);
  for (const Op& op : step.tables().ops) {
    const auto inputs = step.inputs(op);
    if (op.flags.has(OpFlag::kHostCopy)) {
      for (const TensorId input : inputs) {
        const StorageId storage = step[input].storage;
        if (step[storage].role == Role::kOptimizerState && is_one_number(step, input)) is_host[storage.index()] = true;
      }
    } else if (inputs.empty() && op_family(step.text(op.name)) == "lift_fresh") {
      for (const Output& output : step.outputs(op)) is_host[step[output.tensor].storage.index()] = true;
    }
  }
  return is_host;
}

}  // namespace

std::vector<bool> host_ops(const Step& step) {
  const std::vector<bool> is_host = host_storages(step);
  std::vector<bool> ops(step.tables().ops.size(), false);
  if (std::find(is_host.begin(), is_host.end(), true) == is_host.end()) return ops;
  const auto lies_there = [&](TensorId tensor) { return is_host[step[tensor].storage.index()]; };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = step.tables().ops[i];
    const auto inputs = step.inputs(op);
    const auto outputs = step.outputs(op);
    ops[i] =
        (!inputs.empty() || !outputs.empty()) && std::all_of(inputs.begin(), inputs.end(), lies_there) &&
        std::all_of(outputs.begin(), outputs.end(), [&](const Output& output) { return lies_there(output.tensor); });
  }
  return ops;
}

}  // namespace tidemark::cost
