#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <exception>
#include <string>
#include <string_view>

#include "bindings.h"
#include "tidemark/base/bytes.h"
#include "tidemark/base/error.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tidemark::python {

namespace {

constexpr const char* kErrorDoc =
    "Misuse, bad input, or a read or write that failed.\n\n"
    "`str(error)` is the whole message; the attributes are its parts: `kind` (\"input\", \"io\", \"limit\" or\n"
    "\"internal\"), `place` (file and line, record and field, or option), `problem`, `expected`, `got` and `remedy`,\n"
    "each of the last three possibly empty.";

// A message may quote what is no UTF-8, such as the name of a file; it must reach Python all the same.
nb::object readable(std::string_view text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

nb::dict error_fields(const char* kind, const ErrorInfo& info) {
  nb::dict fields;
  fields["kind"] = kind;
  fields["place"] = readable(info.place);
  fields["problem"] = readable(info.problem);
  fields["expected"] = readable(info.expected);
  fields["got"] = readable(info.got);
  fields["remedy"] = readable(info.remedy);
  return fields;
}

void raise_in_python(const Error& error, nb::handle type) {
  nb::object instance = type(readable(error.what()));
  for (const auto& [name, value] : error_fields(name_of(error.info().kind), error.info()))
    nb::setattr(instance, name, value);
  PyErr_SetObject(type.ptr(), instance.ptr());
}

void translate_error(const std::exception_ptr& exception, void* type) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    raise_in_python(error, static_cast<PyObject*>(type));
  }
}

void bind_error(nb::module_& m) {
  nb::dict fields = error_fields("", {});
  nb::object type = nb::steal(PyErr_NewExceptionWithDoc((nb::cast<std::string>(m.attr("__name__")) + ".Error").c_str(),
                                                        kErrorDoc, PyExc_ValueError, fields.ptr()));
  m.attr("Error") = type;
  // The module holds the type for as long as the interpreter runs.
  nb::register_exception_translator(&translate_error, type.ptr());

  m.def(
      "fail",
      [](std::string place, std::string problem, std::string expected, std::string got, std::string remedy) {
        throw Error({.kind = ErrorKind::kInput,
                     .place = std::move(place),
                     .problem = std::move(problem),
                     .expected = std::move(expected),
                     .got = std::move(got),
                     .remedy = std::move(remedy)});
      },
      "place"_a, "problem"_a, nb::kw_only(), "expected"_a = "", "got"_a = "", "remedy"_a = "",
      nb::sig("def fail(place: str, problem: str, *, expected: str = '', got: str = '', remedy: str = '') -> "
              "typing.NoReturn"),
      "Raises an Error of kind \"input\": how the Python part of the package words its own errors.");
}

void bind_budget(nb::module_& m) {
  nb::class_<Budget>(m, "Budget", "A number of bytes, or a percentage of a device's memory.")
      .def("bytes_on", &Budget::bytes_on, "device_bytes"_a,
           "The budget in bytes on a device with this much memory, rounded down.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Budget& self) { return nb::hash(nb::str(format_budget(self).c_str())); })
      .def("__str__", &format_budget, "\"70GiB\", \"1234567B\" or \"90%\": reads back as the same budget.")
      .def("__repr__", [](const Budget& self) { return "Budget('" + format_budget(self) + "')"; });
  m.def("parse_budget", &parse_budget, "text"_a, "place"_a = "budget",
        "Reads \"70GiB\", \"1.5GiB\", \"80GB\" or \"90%\" of the device's memory. A number without a unit is refused;\n"
        "`place` names the value in the error.");
  m.def(
      "parse_budget", [](std::int64_t bytes, std::string_view) { return Budget{bytes}; }, "bytes"_a,
      "place"_a = "budget", "An int is a number of bytes.");
}

void bind_bytes(nb::module_& m) {
  m.def("parse_bytes", &parse_bytes, "text"_a, "place"_a = "bytes",
        "Reads \"512B\", \"70GiB\" (2^30) or \"80GB\" (10^9). A number without a unit is refused; `place` names the\n"
        "value in the error.");
  m.def("format_bytes", &format_bytes, "bytes"_a, "\"1.50 GiB\": at most two decimals, for people.");
  m.def("format_bytes_exact", &format_bytes_exact, "bytes"_a, "\"1,610,612,736 B\": every byte.");
}

}  // namespace

void bind_base(nb::module_& m) {
  bind_error(m);
  bind_bytes(m);
  bind_budget(m);
}

}  // namespace tidemark::python
