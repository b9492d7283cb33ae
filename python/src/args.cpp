#include "args.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <string>

#include "tidemark/step/limits.h"

namespace nb = nanobind;

namespace tidemark::python {

using namespace step;

namespace {

nb::object value_to_python(const Step& step, const ArgValue& value) {
  if (const auto* b = std::get_if<bool>(&value.value)) return nb::bool_(*b);
  if (const auto* i = std::get_if<std::int64_t>(&value.value)) return nb::int_(*i);
  if (const auto* d = std::get_if<double>(&value.value)) return nb::float_(*d);
  if (const auto* s = std::get_if<StringId>(&value.value)) return nb::cast(step.text(*s));
  if (const auto* r = std::get_if<InputRange>(&value.value))
    return nb::handle(reinterpret_cast<PyObject*>(&PyRange_Type))(r->begin, r->end);
  const auto* items = std::get_if<ArgValue::List>(&value.value);
  if (items == nullptr) return nb::none();
  nb::list list;
  for (const ArgValue& item : *items) list.append(value_to_python(step, item));
  return list;
}

// Reads one argument list from Python.
class ArgReader {
 public:
  explicit ArgReader(StepBuilder& builder) : builder_(builder) {}

  Arg read(nb::handle name, nb::handle value) {
    name_ = nb::cast<std::string>(nb::str(name));
    if (!nb::isinstance<nb::str>(name)) fail("the name of an argument is no string", "a str", nb::repr(name).c_str());
    return {builder_.intern(name_), read_value(value, 0)};
  }

 private:
  // bool comes before int, because in Python it is one.
  ArgValue read_value(nb::handle value, std::int64_t depth) {
    std::int64_t integer = 0;
    std::string_view text;
    if (value.is_none()) return {};
    if (PyBool_Check(value.ptr())) return {value.ptr() == Py_True};
    if (PyLong_Check(value.ptr()) && nb::try_cast(value, integer)) return {integer};
    if (PyFloat_Check(value.ptr())) return {PyFloat_AsDouble(value.ptr())};
    if (PyUnicode_Check(value.ptr()) && nb::try_cast(value, text)) return {builder_.intern(text)};
    if (PyRange_Check(value.ptr())) return {read_range(value)};
    if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) return {read_list(value, depth + 1)};
    fail("the value cannot be kept in a step",
         "None, bool, int of 64 bits, float, str, a range of inputs or a list of these",
         nb::cast<std::string>(value.type().attr("__name__")));
  }

  InputRange read_range(nb::handle range) const {
    InputRange inputs;
    if (!nb::try_cast(range.attr("start"), inputs.begin) || !nb::try_cast(range.attr("stop"), inputs.end) ||
        !range.attr("step").equal(nb::int_(1)))
      fail("the range does not name inputs of the op", "positions from 0 on, in steps of 1", nb::repr(range).c_str());
    return inputs;
  }

  ArgValue::List read_list(nb::handle items, std::int64_t depth) {
    if (depth > kMaxArgDepth)
      fail("the lists are nested too deep", "at most " + std::to_string(kMaxArgDepth) + " levels", {});
    ArgValue::List list;
    for (const nb::handle item : items) list.push_back(read_value(item, depth));
    return list;
  }

  [[noreturn]] void fail(std::string problem, std::string expected, std::string got) const {
    throw Error({.kind = ErrorKind::kInput,
                 .place = "args[" + std::to_string(builder_.tables().args.size()) + "]." + name_,
                 .problem = std::move(problem),
                 .expected = std::move(expected),
                 .got = std::move(got),
                 .remedy = {}});
  }

  StepBuilder& builder_;
  std::string name_;
};

}  // namespace

nb::dict args_to_python(const Step& step, const ArgList& args) {
  nb::dict dict;
  for (const Arg& arg : args) dict[nb::cast(step.text(arg.name))] = value_to_python(step, arg.value);
  return dict;
}

ArgList args_from_python(StepBuilder& builder, const nb::dict& args) {
  ArgReader reader(builder);
  ArgList list;
  list.reserve(args.size());
  for (const auto& [name, value] : args) list.push_back(reader.read(name, value));
  return list;
}

}  // namespace tidemark::python
