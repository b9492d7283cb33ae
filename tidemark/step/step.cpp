#include "tidemark/step/step.h"

#include <bit>

namespace tidemark::step {

namespace {

template <class T>
std::span<const T> part(const std::vector<T>& pool, Range range) {
  return std::span(pool).subspan(range.begin, range.count);
}

}  // namespace

bool operator==(const ArgValue& a, const ArgValue& b) {
  if (a.value.index() != b.value.index()) return false;
  if (const auto* x = std::get_if<double>(&a.value))
    return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(std::get<double>(b.value));
  return a.value == b.value;
}

std::span<const std::int64_t> Step::sizes(const Layout& layout) const {
  return part(tables_.dims_pool, {layout.dims.begin, layout.dims.count / 2});
}

std::span<const std::int64_t> Step::strides(const Layout& layout) const {
  const std::uint32_t rank = layout.dims.count / 2;
  return part(tables_.dims_pool, {layout.dims.begin + rank, rank});
}

std::span<const TensorId> Step::inputs(const Call& call) const { return part(tables_.call_input_pool, call.inputs); }
std::span<const TensorId> Step::outputs(const Call& call) const { return part(tables_.call_output_pool, call.outputs); }
std::span<const TensorId> Step::inputs(const Op& op) const { return part(tables_.input_pool, op.inputs); }
std::span<const Output> Step::outputs(const Op& op) const { return part(tables_.output_pool, op.outputs); }
std::span<const TensorId> Step::held(const Region& region) const { return part(tables_.held_pool, region.held); }

std::string Step::fqn(ModuleId module) const { return fqn_of(tables_, module); }

std::string fqn_of(const StepTables& tables, ModuleId module) {
  std::string name;
  for (; module.has_value(); module = tables.modules[module.index()].parent) {
    const std::string& part = tables.strings[tables.modules[module.index()].name.index()];
    if (part.empty()) continue;
    if (!name.empty()) name.insert(0, 1, '.');
    name.insert(0, part);
  }
  return name;
}

}  // namespace tidemark::step
