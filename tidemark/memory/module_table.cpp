#include "tidemark/memory/module_table.h"

#include <algorithm>

namespace tidemark::memory {

namespace {

using namespace step;

// By storage, the module that has it as a parameter or buffer; of a tied one, the first.
std::vector<ModuleId> owners_of(const Step& step) {
  std::vector<ModuleId> owners(step.tables().storages.size());
  for (const Binding& binding : step.tables().bindings) {
    ModuleId& owner = owners[step[binding.tensor].storage.index()];
    if (owner.is_none()) owner = binding.module;
  }
  return owners;
}

// By module: itself, or the ancestor that stands for it at this depth.
std::vector<ModuleId> shown_modules(const Step& step, std::size_t depth) {
  const std::vector<Module>& modules = step.tables().modules;
  std::vector<ModuleId> shown(modules.size());
  std::vector<std::size_t> depths(modules.size(), 0);
  for (std::uint32_t i = 0; i < modules.size(); ++i) {  // parents stand before children
    const ModuleId parent = modules[i].parent;
    if (parent.has_value()) depths[i] = depths[parent.index()] + 1;
    shown[i] = depths[i] <= depth ? ModuleId(i) : shown[parent.index()];
  }
  return shown;
}

}  // namespace

std::vector<ModuleId> modules_of(const Step& step, const plan::Plan& plan, const std::vector<Alive>& alive) {
  const std::vector<ModuleId> owners = owners_of(step);
  const auto of_call = [&](CallId call) { return call.is_none() ? ModuleId() : step[call].module; };
  std::vector<ModuleId> modules;
  modules.reserve(alive.size());
  for (const Alive& piece : alive) {
    ModuleId module;
    if (piece.block.kind == BlockKind::kRngState) {
      module = of_call(plan.units[piece.block.id].call);
    } else if (piece.block.kind == BlockKind::kOriginal) {
      const Storage& storage = step[StorageId(piece.block.id)];
      module = owners[storage.of.has_value() ? storage.of.index() : piece.block.id];
    }
    if (module.is_none() && piece.made_by.has_value()) module = of_call(step[piece.made_by].call);
    modules.push_back(module);
  }
  return modules;
}

std::vector<ModuleRow> module_table(const Step& step, const plan::Plan& plan, const Timeline& timeline,
                                    std::size_t depth) {
  const std::vector<ModuleId> shown = shown_modules(step, depth);
  std::vector<ModuleRow> by_module(shown.size());
  for (std::uint32_t i = 0; i < shown.size(); ++i) by_module[i].module = ModuleId(i);
  for (std::size_t i = 0; i < timeline.calls.size(); ++i) {
    ModuleRow& row = by_module[step.tables().calls[i].module.index()];
    ++row.calls;
    row.forward_peak_bytes = std::max(row.forward_peak_bytes, timeline.calls[i].forward_bytes);
    row.backward_peak_bytes = std::max(row.backward_peak_bytes, timeline.calls[i].backward_bytes);
  }
  ModuleRow rest;
  const std::vector<ModuleId> modules = modules_of(step, plan, timeline.alive_at_peak);
  for (std::size_t i = 0; i < modules.size(); ++i) {
    ModuleRow& row = modules[i].is_none() ? rest : by_module[shown[modules[i].index()].index()];
    row.peak_share_bytes += timeline.alive_at_peak[i].bytes;
  }
  std::vector<ModuleRow> rows;
  for (const ModuleRow& row : by_module)
    if (shown[row.module.index()] == row.module) rows.push_back(row);
  if (rest.peak_share_bytes > 0) rows.push_back(rest);
  return rows;
}

}  // namespace tidemark::memory
