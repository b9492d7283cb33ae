#include "bindings.h"
#include "tidemark/version.h"

NB_MODULE(_core, m) {
  // Tracebacks and tensors that outlive the interpreter may hold a step; that is nobody's mistake.
  nanobind::set_leak_warnings(false);
  m.doc() = "The C++ library of Tidemark. Import the package `tidemark` instead of this module.";
  m.attr("__version__") = TIDEMARK_VERSION;
  tidemark::python::bind_base(m);
  tidemark::python::bind_step_rows(m);
  tidemark::python::bind_step(m);
  tidemark::python::bind_step_builder(m);
  tidemark::python::bind_plan(m);
  tidemark::python::bind_memory(m);
  tidemark::python::bind_device(m);
  tidemark::python::bind_cost(m);
  tidemark::python::bind_sac(m);
  tidemark::python::bind_frontier(m);
  tidemark::python::bind_planner(m);
  tidemark::python::bind_methods(m);
  tidemark::python::bind_zoo(m);
}
