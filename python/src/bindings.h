#pragma once

#include <nanobind/nanobind.h>

// One function per file of bindings; each adds what its C++ folder offers to the module. They hold no logic: a Python
// name stands for the C++ function of the same name.

namespace tidemark::python {

void bind_base(nanobind::module_& m);
void bind_step_rows(nanobind::module_& m);
void bind_step(nanobind::module_& m);
void bind_step_builder(nanobind::module_& m);
void bind_plan(nanobind::module_& m);
void bind_methods(nanobind::module_& m);
void bind_memory(nanobind::module_& m);
void bind_device(nanobind::module_& m);
void bind_cost(nanobind::module_& m);
void bind_sac(nanobind::module_& m);
void bind_frontier(nanobind::module_& m);
void bind_planner(nanobind::module_& m);
void bind_zoo(nanobind::module_& m);

}  // namespace tidemark::python
