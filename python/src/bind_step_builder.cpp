#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "args.h"
#include "bindings.h"
#include "casters.h"
#include "tidemark/step/step_builder.h"
#include "words.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tidemark::step;

namespace tidemark::python {

namespace {

using Builder = nb::class_<StepBuilder>;
using Dims = std::vector<std::int64_t>;
using Amount = std::optional<std::int64_t>;
using Words = nb::typed<nb::iterable, nb::str>;
using OutputTuple = std::tuple<TensorId, std::string_view, std::optional<std::uint32_t>>;

std::vector<Output> outputs_from_python(const StepBuilder& b, const std::vector<OutputTuple>& tuples) {
  std::vector<Output> outputs;
  outputs.reserve(tuples.size());
  const FieldPlace place{"ops", b.tables().ops.size(), "aliases"};
  for (const auto& [tensor, alias, input] : tuples) {
    const auto kind = from_word<AliasKind>(alias, kAliasKindNames, place);
    const bool needs_input = kind == AliasKind::kView || kind == AliasKind::kMutates;
    if (needs_input != input.has_value())
      fail_value(place, needs_input ? "the position of an input" : "None, since the output shares no input",
                 input ? std::to_string(*input) : "None");
    outputs.push_back({tensor, kind, input.value_or(0)});
  }
  return outputs;
}

// None stands for unknown; a negative number stands for nothing.
std::int64_t amount_from_python(const StepBuilder& b, Amount amount, const char* field) {
  if (amount && *amount < 0)
    fail_value({"ops", b.tables().ops.size(), field}, "0 or more, or None", std::to_string(*amount));
  return amount.value_or(Op::kUnknown);
}

void bind_interning(Builder& c) {
  c.def("intern", &StepBuilder::intern, "text"_a,
        "The id of a string. Never needed: functions take strings and intern them; it fixes their order in the file.")
      .def(
          "intern_layout",
          [](StepBuilder& b, std::string_view dtype, const Dims& shape, const Dims& stride) {
            const FieldPlace place{"layouts", b.tables().layouts.size(), "dtype"};
            return b.intern_layout(dtype_from_word(dtype, place), shape, stride);
          },
          "dtype"_a, "shape"_a, "stride"_a, "The id of a layout; equal ones share it. The dtype is a word of `DTYPES`.")
      .def(
          "intern_args",
          [](StepBuilder& b, const nb::dict& args) { return optional(b.intern_args(args_from_python(b, args))); },
          "args"_a, nb::sig("def intern_args(self, args: dict[str, typing.Any]) -> int | None"),
          "The id of an argument list; equal ones share it, and that of an empty one is None. Values are None, bool,\n"
          "int, float, str, lists of these, and a range for the op's inputs at these positions.");
}

void bind_program_rows(Builder& c) {
  c.def(
       "add_module",
       [](StepBuilder& b, ModuleId parent, std::string_view name, std::string_view type) {
         const StringId name_id = b.intern(name);
         return b.add_module({.parent = parent, .name = name_id, .type = b.intern(type)});
       },
       "parent"_a.none(), "name"_a, "type"_a, "A module; `name` is its attribute in the parent, the root's is empty.")
      .def(
          "add_pass",
          [](StepBuilder& b, std::string_view kind, std::uint32_t micro_batch, std::uint32_t graph_task,
             std::uint32_t rank) {
            const FieldPlace place{"passes", b.tables().passes.size(), "kind"};
            return b.add_pass({from_word<PassKind>(kind, kPassKindNames, place), micro_batch, graph_task, rank});
          },
          "kind"_a, nb::kw_only(), "micro_batch"_a = 0, "graph_task"_a = 0, "rank"_a = 0,
          "A pass; the kind is a word of `PASS_KINDS`.")
      .def(
          "add_call",
          [](StepBuilder& b, ModuleId module, CallId parent, std::uint32_t index, PassId pass,
             const std::vector<TensorId>& inputs) {
            return b.add_call({module, parent, index, pass, inputs});
          },
          "module"_a, nb::kw_only(), "parent"_a.none(), "index"_a, "pass_"_a, "inputs"_a = nb::tuple(),
          "One run of a module's forward, the `index`-th of this module in the pass, with the tensors in its "
          "arguments.")
      .def(
          "set_call_outputs",
          [](StepBuilder& b, CallId call, const std::vector<TensorId>& outputs) { b.set_call_outputs(call, outputs); },
          "call"_a, "outputs"_a, "The tensors that a call returned, once that is known.")
      .def(
          "add_source",
          [](StepBuilder& b, std::string_view file, std::uint32_t line, std::string_view function) {
            const StringId file_id = b.intern(file);
            return b.add_source({.file = file_id, .line = line, .function = b.intern(function)});
          },
          "file"_a, "line"_a, "function"_a, "A place in the user's program.")
      .def(
          "add_region",
          [](StepBuilder& b, std::string_view kind, RegionId parent, CallId call, ArgsId args,
             const std::vector<TensorId>& held) {
            const FieldPlace place{"regions", b.tables().regions.size(), "kind"};
            return b.add_region({from_word<RegionKind>(kind, kRegionKindNames, place), parent, call, args, held});
          },
          "kind"_a, nb::kw_only(), "parent"_a = nb::none(), "call"_a = nb::none(), "args"_a = nb::none(),
          "held"_a = nb::tuple(), "A region; the kind is a word of `REGION_KINDS`, `held` what it keeps alive.");
}

void bind_data_rows(Builder& c) {
  c.def(
       "add_storage",
       [](StepBuilder& b, std::int64_t bytes, std::string_view device, std::string_view role, StorageId of) {
         const FieldPlace place{"storages", b.tables().storages.size(), "role"};
         return b.add_storage({bytes, b.intern(device), from_word<Role>(role, kRoleNames, place), of});
       },
       "bytes"_a, "device"_a, "role"_a = "plain", "of"_a = nb::none(),
       "A storage; the role is a word of `ROLES`. A gradient or optimizer state may say which parameter it is `of`.")
      .def(
          "add_tensor",
          [](StepBuilder& b, StorageId storage, LayoutId layout, std::uint32_t version, std::int64_t offset,
             bool is_view) {
            return b.add_tensor({storage, version, layout, offset, is_view});
          },
          "storage"_a, "layout"_a, nb::kw_only(), "version"_a = 0, "offset"_a = 0, "is_view"_a = false,
          "A value: a storage at a version, seen through a layout; the offset is in elements.")
      .def(
          "add_binding",
          [](StepBuilder& b, ModuleId module, std::string_view name, TensorId tensor, std::string_view kind,
             bool trainable) {
            const FieldPlace place{"bindings", b.tables().bindings.size(), "kind"};
            b.add_binding(
                {module, b.intern(name), tensor, from_word<BindingKind>(kind, kBindingKindNames, place), trainable});
          },
          "module"_a, "name"_a, "tensor"_a, nb::kw_only(), "kind"_a, "trainable"_a,
          "A parameter or buffer of a module; the kind is a word of `BINDING_KINDS`.")
      .def(
          "set_storage_role",
          [](StepBuilder& b, StorageId storage, std::string_view role, StorageId of) {
            const FieldPlace place{"storages", storage.index(), "role"};
            b.set_storage_role(storage, from_word<Role>(role, kRoleNames, place), of);
          },
          "storage"_a, "role"_a, "of"_a = nb::none(), "Says what a storage is, once that is known.");
}

void bind_graph_rows(Builder& c) {
  c.def(
       "add_node",
       [](StepBuilder& b, std::string_view name, std::int64_t sequence, PassId pass) {
         return b.add_node({b.intern(name), sequence, pass});
       },
       "name"_a, nb::kw_only(), "sequence"_a, "pass_"_a, "A node of the autograd graph, made in this pass.")
      .def(
          "add_save",
          [](StepBuilder& b, NodeId node, std::uint32_t slot, TensorId tensor, bool hooked) {
            return b.add_save({node, slot, tensor, hooked});
          },
          "node"_a, "slot"_a, "tensor"_a, nb::kw_only(), "hooked"_a = true, "A tensor that autograd keeps for a node.")
      .def(
          "add_op",
          [](StepBuilder& b, std::string_view name, PassId pass, CallId call, NodeId node, RegionId region,
             const std::vector<TensorId>& inputs, const std::vector<OutputTuple>& outputs, ArgsId args, SourceId source,
             std::string_view group, const Words& flags, std::uint16_t stream, Amount flops, Amount read_bytes,
             Amount written_bytes) {
            return b.add_op({.name = name,
                             .pass = pass,
                             .call = call,
                             .node = node,
                             .region = region,
                             .inputs = inputs,
                             .outputs = outputs_from_python(b, outputs),
                             .args = args,
                             .source = source,
                             .group = group,
                             .flags = flags_from_words(flags, {"ops", b.tables().ops.size(), "flags"}),
                             .stream = stream,
                             .flops = amount_from_python(b, flops, "flops"),
                             .read_bytes = amount_from_python(b, read_bytes, "read_bytes"),
                             .written_bytes = amount_from_python(b, written_bytes, "written_bytes")});
          },
          "name"_a, nb::kw_only(), "pass_"_a, "call"_a = nb::none(), "node"_a = nb::none(), "region"_a = nb::none(),
          "inputs"_a = nb::tuple(), "outputs"_a = nb::tuple(), "args"_a = nb::none(), "source"_a = nb::none(),
          "group"_a = "", "flags"_a = nb::tuple(), "stream"_a = 0, "flops"_a = nb::none(), "read_bytes"_a = nb::none(),
          "written_bytes"_a = nb::none(),
          "An op. Outputs are (tensor, alias, input) with a word of `ALIAS_KINDS`; `input` is the position of the "
          "input\n"
          "that is viewed or mutated, else None. `args` is an id from `intern_args`, flags are words of `OP_FLAGS`.")
      .def("set_op_node", &StepBuilder::set_op_node, "op"_a, "node"_a.none(),
           "Says which node a forward op made, once that is known.");
}

void bind_remarks(Builder& c) {
  c.def("add_meta", &StepBuilder::add_meta, "key"_a, "value"_a, "Who recorded what.")
      .def(
          "add_note",
          [](StepBuilder& b, std::string_view kind, std::string_view text, OpId op) {
            const StringId kind_id = b.intern(kind);
            b.add_note({kind_id, b.intern(text), op});
          },
          "kind"_a, "text"_a, "op"_a = nb::none(),
          "Something a reader should know: kind \"imitated\", \"placeholder\", \"missing\", ...")
      .def(
          "add_extra",
          [](StepBuilder& b, std::string name, std::vector<std::string> rows) {
            b.add_extra({std::move(name), std::move(rows)});
          },
          "name"_a, "rows"_a, "A section of another program's, each row one line of JSON.");
}

// Called about ten times for every recorded op. Positional only: that is what nanobind calls fastest.
void bind_events(Builder& c) {
  c.def("phase", &StepBuilder::phase, nb::sig("def phase(self, pass_: int, /) -> None"),
        "What follows is of this pass.")
      .def("enter", &StepBuilder::enter, nb::sig("def enter(self, call: int, /) -> None"), "A module's forward starts.")
      .def("exit", &StepBuilder::exit, nb::sig("def exit(self, call: int, /) -> None"))
      .def("begin", &StepBuilder::begin, nb::sig("def begin(self, op: int, /) -> None"), "The op reads from here on.")
      .def("end", &StepBuilder::end, nb::sig("def end(self, op: int, /) -> None"))
      .def("alloc", &StepBuilder::alloc, nb::sig("def alloc(self, storage: int, /) -> None"))
      .def("free", &StepBuilder::free, nb::sig("def free(self, storage: int, /) -> None"),
           "The program let go of the storage; autograd may still hold it.")
      .def("resize", &StepBuilder::resize, nb::sig("def resize(self, storage: int, bytes: int, /) -> None"))
      .def("pack", &StepBuilder::pack, nb::sig("def pack(self, save: int, /) -> None"), "Autograd takes hold.")
      .def("unpack", &StepBuilder::unpack, nb::sig("def unpack(self, save: int, /) -> None"),
           "A backward node gets the tensor back.")
      .def("drop", &StepBuilder::drop, nb::sig("def drop(self, save: int, /) -> None"),
           "The program let go of a tensor that unpack gave it.")
      .def("release", &StepBuilder::release, nb::sig("def release(self, save: int, /) -> None"), "Autograd lets go.")
      .def("node", &StepBuilder::node, nb::sig("def node(self, node: int, /) -> None"), "The node starts to run.")
      .def("done", &StepBuilder::done, nb::sig("def done(self, node: int, /) -> None"), "The node has run.")
      .def(
          "push",
          [](StepBuilder& b, std::string_view kind, std::uint32_t id) {
            const FieldPlace place{"events", b.tables().events.size(), "kind"};
            b.push(from_word<EventKind>(kind, kEventKindNames, place), id);
          },
          nb::sig("def push(self, kind: str, id: int, /) -> None"),
          "Any event by its word of `EVENT_KINDS`; for \"resize\" the id is that of an earlier resize.");
}

}  // namespace

void bind_step_builder(nb::module_& m) {
  Builder c(
      m, "StepBuilder",
      "Makes a Step, row by row and event by event, in the order in which things happen.\n\n"
      "Ids are ints, None stands for none, kinds and flags are the words that the file uses. Rows may refer only\n"
      "to rows that exist when `finish` is called; parents come before children.");
  c.def(nb::init<>());
  bind_interning(c);
  bind_program_rows(c);
  bind_data_rows(c);
  bind_graph_rows(c);
  bind_remarks(c);
  bind_events(c);
  c.def(
      "finish",
      [](StepBuilder& self) {
        Step step = std::move(self).finish();
        self = StepBuilder();
        return step;
      },
      "The finished Step. Raises Error, whose place is the record and field, when anything is inconsistent; the\n"
      "builder then stays as it is. After success it is empty.");
}

}  // namespace tidemark::python
