// The built-in devices, by name.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string_view>

#include "bindings.h"
#include "tidemark/device/catalog.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tidemark::python {

void bind_device(nb::module_& m) {
  nb::class_<device::Device>(m, "Device", "A machine that steps run on, as numbers.")
      .def_ro("name", &device::Device::name, "\"h100-sxm\".")
      .def_ro("title", &device::Device::title, "\"NVIDIA H100 SXM 80 GB\".")
      .def_ro("aliases", &device::Device::aliases, "Other names that find it.")
      .def_prop_ro(
          "kind", [](const device::Device& d) { return device::kDeviceKindNames[static_cast<std::size_t>(d.kind)]; },
          "\"cuda\", \"rocm\" or \"cpu\".")
      .def_ro("generation", &device::Device::generation, "The compute capability, \"9.0\"; \"gfx942\"; \"avx2\".")
      .def_prop_ro(
          "memory_bytes", [](const device::Device& d) { return d.memory_bytes.value; }, "How much memory it has.")
      .def_prop_ro(
          "overhead_bytes", [](const device::Device& d) { return d.overhead_bytes.value; },
          "What of it is not there for tensors: contexts, kernels, libraries.")
      .def("__repr__", [](const device::Device& d) { return "<tidemark.Device " + d.name + ">"; });
  m.def(
      "find_device", &device::find_device, "name_or_path"_a,
      "The device of that name, alias or device file. Raises Error with the nearest names for one that is not known.");
  m.def("devices", &device::built_in_devices, "The built-in devices, in the order of their names.");
}

}  // namespace tidemark::python
