#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/typing.h>

#include <span>
#include <string>
#include <tuple>

#include "args.h"
#include "bindings.h"
#include "rows.h"
#include "tidemark/step/dump.h"

using namespace nanobind::literals;
using namespace tidemark::step;

namespace tidemark::python {

namespace {

template <class T>
nb::tuple tuple_of(std::span<const T> items) {
  nb::list list;
  for (const T& item : items) list.append(item);
  return nb::tuple(list);
}

std::optional<std::int64_t> amount(std::int64_t value) {
  return value == Op::kUnknown ? std::nullopt : std::optional(value);
}

// What stands after "Op 3" in a repr.
template <class Record>
std::string describe(const Row<Record>&) {
  return {};
}
std::string describe(const Row<Op>& op) { return " " + std::string(op.text(op->name)); }
std::string describe(const Row<Node>& node) { return " " + std::string(node.text(node->name)); }
std::string describe(const Row<Module>& module) { return " '" + module.step->fqn(ModuleId(module.id)) + "'"; }
std::string describe(const Row<Layout>& layout) { return " " + describe_layout(*layout.step, LayoutId(layout.id)); }
std::string describe(const Row<Tensor>& tensor) { return " " + describe_layout(*tensor.step, tensor->layout); }
std::string describe(const Row<Storage>& storage) {
  return " " + std::to_string(storage->bytes) + " bytes, " + std::string(name_of(storage->role));
}

// The class of one kind of row, with what all of them have.
template <class Record>
nb::class_<Row<Record>> row_class(nb::module_& m, const char* name, const char* doc) {
  return nb::class_<Row<Record>>(m, name, doc)
      .def_prop_ro(
          "id", [](const Row<Record>& row) { return row.id; }, "Its position in the table.")
      .def(
          "__eq__", [](const Row<Record>& a, const Row<Record>& b) { return a.owner.is(b.owner) && a.id == b.id; },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Row<Record>& row) { return nb::hash(nb::int_(row.id)); })
      .def("__repr__", [name](const Row<Record>& row) {
        return "<" + std::string(name) + " " + std::to_string(row.id) + describe(row) + ">";
      });
}

// Python's rule: a negative index counts from the end.
std::size_t position_of(Py_ssize_t index, std::size_t size) {
  const Py_ssize_t count = static_cast<Py_ssize_t>(size);
  const Py_ssize_t position = index < 0 ? index + count : index;
  if (position < 0 || position >= count)
    throw nb::index_error(("id " + std::to_string(index) + " of a table of " + std::to_string(size) + " rows").c_str());
  return static_cast<std::size_t>(position);
}

void bind_table(nb::module_& m) {
  m.attr("RowT") = nb::type_var("RowT");
  nb::class_<TableView>(m, "Table", nb::is_generic(), nb::sig("class Table(typing.Generic[RowT])"),
                        "A read-only view of one table of a Step, indexed by id.\n\n"
                        "It holds no rows itself: a row is made when it is asked for, and reads its fields from the\n"
                        "Step, which both keep alive.")
      .def("__len__", [](const TableView& table) { return table.size; })
      .def(
          "__getitem__",
          [](const TableView& table, Py_ssize_t index) { return table.row(table, position_of(index, table.size)); },
          nb::sig("def __getitem__(self, index: int, /) -> RowT"))
      .def(
          "__getitem__",
          [](const TableView& table, const nb::slice& slice) {
            auto [start, stop, step, length] = slice.compute(table.size);
            nb::list rows;
            for (std::size_t i = 0; i < length; ++i, start += step)
              rows.append(table.row(table, static_cast<std::size_t>(start)));
            return rows;
          },
          nb::sig("def __getitem__(self, ids: slice, /) -> list[RowT]"))
      .def(
          "__iter__", [](nb::handle_t<TableView> self) { return nb::steal(PySeqIter_New(self.ptr())); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[RowT]"))
      .def("__repr__", [](const TableView& table) { return "<Table of " + std::to_string(table.size) + " rows>"; });
}

void bind_program_rows(nb::module_& m) {
  row_class<Module>(m, "Module", "A module of the model's tree.")
      .def_prop_ro("parent", [](const Row<Module>& r) { return optional(r->parent); })
      .def_prop_ro(
          "name", [](const Row<Module>& r) { return r.text(r->name); }, "The attribute it is reached by.")
      .def_prop_ro(
          "type", [](const Row<Module>& r) { return r.text(r->type); }, "The name of its class.")
      .def_prop_ro(
          "fqn", [](const Row<Module>& r) { return r.step->fqn(ModuleId(r.id)); },
          "Its fully qualified name, such as \"layers.0.mlp\"; the root's is empty.");
  row_class<Pass>(m, "Pass", "A stretch of the step: forward, loss, backward, recompute or optimizer.")
      .def_prop_ro("kind", [](const Row<Pass>& r) { return name_of(r->kind); })
      .def_prop_ro("micro_batch", [](const Row<Pass>& r) { return r->micro_batch; })
      .def_prop_ro(
          "graph_task", [](const Row<Pass>& r) { return r->graph_task; }, "Which backward() of the step.")
      .def_prop_ro("rank", [](const Row<Pass>& r) { return r->rank; });
  row_class<Call>(m, "Call", "One run of a module's forward.")
      .def_prop_ro("module", [](const Row<Call>& r) { return r->module; })
      .def_prop_ro("parent", [](const Row<Call>& r) { return optional(r->parent); })
      .def_prop_ro(
          "index", [](const Row<Call>& r) { return r->index; },
          "How many calls of this module came before it in the same pass.")
      .def_prop_ro("pass_", [](const Row<Call>& r) { return r->pass; })
      .def_prop_ro(
          "inputs", [](const Row<Call>& r) { return tuple_of(r.step->inputs(*r.record)); },
          nb::for_getter(nb::sig("def inputs(self) -> tuple[int, ...]")),
          "The tensors in its arguments, also by keyword and inside containers.")
      .def_prop_ro(
          "outputs", [](const Row<Call>& r) { return tuple_of(r.step->outputs(*r.record)); },
          nb::for_getter(nb::sig("def outputs(self) -> tuple[int, ...]")), "The tensors that it returned.");
  row_class<Source>(m, "Source", "A place in the user's program.")
      .def_prop_ro("file", [](const Row<Source>& r) { return r.text(r->file); })
      .def_prop_ro("line", [](const Row<Source>& r) { return r->line; })
      .def_prop_ro("function", [](const Row<Source>& r) { return r.text(r->function); });
  row_class<Region>(m, "Region", "A property of the program that holds for a group of ops, such as no_grad.")
      .def_prop_ro("kind", [](const Row<Region>& r) { return name_of(r->kind); })
      .def_prop_ro("parent", [](const Row<Region>& r) { return optional(r->parent); })
      .def_prop_ro("call", [](const Row<Region>& r) { return optional(r->call); })
      .def_prop_ro(
          "args_id", [](const Row<Region>& r) { return optional(r->args); }, "Its row in `Step.args`.")
      .def_prop_ro(
          "held", [](const Row<Region>& r) { return tuple_of(r.step->held(*r.record)); },
          nb::for_getter(nb::sig("def held(self) -> tuple[int, ...]")), "The tensors that it keeps alive for itself.");
  row_class<Note>(m, "Note", "Something the recorder wants a reader to know.")
      .def_prop_ro("kind", [](const Row<Note>& r) { return r.text(r->kind); })
      .def_prop_ro("text", [](const Row<Note>& r) { return r.text(r->text); })
      .def_prop_ro("op", [](const Row<Note>& r) { return optional(r->op); });
}

void bind_data_rows(nb::module_& m) {
  row_class<Layout>(m, "Layout", "Element type, sizes and strides, shared by all tensors that have them.")
      .def_prop_ro(
          "dtype", [](const Row<Layout>& r) { return name_of(r->dtype); }, "PyTorch's name: \"float32\".")
      .def_prop_ro(
          "shape", [](const Row<Layout>& r) { return tuple_of(r.step->sizes(*r.record)); },
          nb::for_getter(nb::sig("def shape(self) -> tuple[int, ...]")))
      .def_prop_ro(
          "stride", [](const Row<Layout>& r) { return tuple_of(r.step->strides(*r.record)); },
          nb::for_getter(nb::sig("def stride(self) -> tuple[int, ...]")), "In elements.");
  row_class<Storage>(m, "Storage", "A piece of memory.")
      .def_prop_ro(
          "bytes", [](const Row<Storage>& r) { return r->bytes; },
          "What the program asked for, before any rounding by an allocator.")
      .def_prop_ro("device", [](const Row<Storage>& r) { return r.text(r->device); })
      .def_prop_ro("role", [](const Row<Storage>& r) { return name_of(r->role); })
      .def_prop_ro(
          "of", [](const Row<Storage>& r) { return optional(r->of); },
          "For a gradient or optimizer state: the parameter it belongs to.");
  row_class<Tensor>(m, "Tensor", "A value: a storage at a version, seen through a layout.")
      .def_prop_ro("storage", [](const Row<Tensor>& r) { return r->storage; })
      .def_prop_ro(
          "version", [](const Row<Tensor>& r) { return r->version; },
          "Two tensors hold the same value iff storage and version agree.")
      .def_prop_ro("layout", [](const Row<Tensor>& r) { return r->layout; })
      .def_prop_ro(
          "offset", [](const Row<Tensor>& r) { return r->offset; }, "In elements.")
      .def_prop_ro("is_view", [](const Row<Tensor>& r) { return r->is_view; })
      .def_prop_ro("dtype", [](const Row<Tensor>& r) { return name_of((*r.step)[r->layout].dtype); })
      .def_prop_ro(
          "shape", [](const Row<Tensor>& r) { return tuple_of(r.step->sizes((*r.step)[r->layout])); },
          nb::for_getter(nb::sig("def shape(self) -> tuple[int, ...]")))
      .def_prop_ro(
          "stride", [](const Row<Tensor>& r) { return tuple_of(r.step->strides((*r.step)[r->layout])); },
          nb::for_getter(nb::sig("def stride(self) -> tuple[int, ...]")));
  row_class<Binding>(m, "Binding", "A parameter or buffer of a module; a tied weight has several.")
      .def_prop_ro("module", [](const Row<Binding>& r) { return r->module; })
      .def_prop_ro("name", [](const Row<Binding>& r) { return r.text(r->name); })
      .def_prop_ro("tensor", [](const Row<Binding>& r) { return r->tensor; })
      .def_prop_ro("kind", [](const Row<Binding>& r) { return name_of(r->kind); })
      .def_prop_ro("trainable", [](const Row<Binding>& r) { return r->trainable; });
}

void bind_graph_rows(nb::module_& m) {
  row_class<Node>(m, "Node", "A node of the autograd graph.")
      .def_prop_ro(
          "name", [](const Row<Node>& r) { return r.text(r->name); }, "Such as \"AddmmBackward0\".")
      .def_prop_ro(
          "sequence", [](const Row<Node>& r) { return r->sequence; },
          "PyTorch's sequence number; it repeats, so nodes are paired by id.")
      .def_prop_ro(
          "pass_", [](const Row<Node>& r) { return r->pass; }, "The pass in which it was made.");
  row_class<Save>(m, "Save", "A tensor that autograd keeps for a node.")
      .def_prop_ro("node", [](const Row<Save>& r) { return r->node; })
      .def_prop_ro("slot", [](const Row<Save>& r) { return r->slot; })
      .def_prop_ro("tensor", [](const Row<Save>& r) { return r->tensor; })
      .def_prop_ro(
          "hooked", [](const Row<Save>& r) { return r->hooked; },
          "False: kept where saved-tensor hooks do not see it.");
}

nb::tuple output_to_python(const Output& output) {
  const bool shares_input = output.alias == AliasKind::kView || output.alias == AliasKind::kMutates;
  return nb::make_tuple(output.tensor, name_of(output.alias),
                        shares_input ? std::optional(output.input) : std::nullopt);
}

nb::list outputs_of(const Row<Op>& op) {
  nb::list outputs;
  for (const Output& output : op.step->outputs(*op.record)) outputs.append(output_to_python(output));
  return outputs;
}

nb::frozenset flags_of(const Row<Op>& op) {
  nb::list words;
  for (const OpFlagName& entry : kOpFlagNames)
    if (op->flags.has(entry.flag)) words.append(entry.name);
  return nb::frozenset(words);
}

void bind_op_row(nb::module_& m) {
  row_class<Op>(m, "Op", "One op as PyTorch's dispatcher saw it.")
      .def_prop_ro(
          "name", [](const Row<Op>& r) { return r.text(r->name); }, "Such as \"aten.addmm.default\".")
      .def_prop_ro("pass_", [](const Row<Op>& r) { return r->pass; })
      .def_prop_ro(
          "call", [](const Row<Op>& r) { return optional(r->call); },
          "The module call it belongs to; for a backward op that of its forward op.")
      .def_prop_ro(
          "node", [](const Row<Op>& r) { return optional(r->node); },
          "In forward the node it made, in backward the node it runs for.")
      .def_prop_ro(
          "region", [](const Row<Op>& r) { return optional(r->region); }, "The innermost one.")
      .def_prop_ro(
          "inputs", [](const Row<Op>& r) { return tuple_of(r.step->inputs(*r.record)); },
          nb::for_getter(nb::sig("def inputs(self) -> tuple[int, ...]")), "Tensors, in the order of the schema.")
      .def_prop_ro("outputs", &outputs_of,
                   nb::for_getter(nb::sig("def outputs(self) -> list[tuple[int, str, int | None]]")),
                   "(tensor, alias, input) of every value it makes. The alias is \"fresh\", \"existing\", or \"view\"\n"
                   "or \"mutates\" of the input at this position.")
      .def_prop_ro(
          "args_id", [](const Row<Op>& r) { return optional(r->args); }, "Its row in `Step.args`.")
      .def_prop_ro(
          "args",
          [](const Row<Op>& r) { return r->args.is_none() ? nb::dict() : args_to_python(*r.step, (*r.step)[r->args]); },
          nb::for_getter(nb::sig("def args(self) -> dict[str, typing.Any]")),
          "Its arguments that are no tensors; a range stands for the inputs at these positions.")
      .def_prop_ro("source", [](const Row<Op>& r) { return optional(r->source); })
      .def_prop_ro(
          "group", [](const Row<Op>& r) { return r.text(r->group); }, "Collectives: who takes part.")
      .def_prop_ro("flags", &flags_of, nb::for_getter(nb::sig("def flags(self) -> frozenset[str]")),
                   "Words of `OP_FLAGS`.")
      .def_prop_ro("stream", [](const Row<Op>& r) { return r->stream; })
      .def_prop_ro("flops", [](const Row<Op>& r) { return amount(r->flops); })
      .def_prop_ro("read_bytes", [](const Row<Op>& r) { return amount(r->read_bytes); })
      .def_prop_ro("written_bytes", [](const Row<Op>& r) { return amount(r->written_bytes); });
}

}  // namespace

nb::object to_python(const TableView&, std::size_t, const std::string& string) { return nb::cast(string); }
nb::object to_python(const TableView& table, std::size_t, const ArgList& args) {
  return args_to_python(*table.step, args);
}
nb::object to_python(const TableView&, std::size_t, const Event& event) {
  return nb::make_tuple(name_of(event.kind), event.id);
}
nb::object to_python(const TableView&, std::size_t, const Resize& resize) {
  return nb::make_tuple(resize.storage, resize.bytes);
}

void bind_step_rows(nb::module_& m) {
  bind_table(m);
  bind_program_rows(m);
  bind_data_rows(m);
  bind_graph_rows(m);
  bind_op_row(m);
}

}  // namespace tidemark::python
