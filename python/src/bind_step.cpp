#include <nanobind/operators.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "bindings.h"
#include "rows.h"
#include "tidemark/memory/workspace_file.h"
#include "tidemark/step/dump.h"
#include "tidemark/step/fingerprint.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/summary.h"
#include "tidemark/step/write_step.h"

using namespace nanobind::literals;
using namespace tidemark::step;

namespace tidemark::python {

namespace {

nb::dict meta_to_python(const Meta& meta) {
  nb::dict dict;
  for (const auto& [key, value] : meta) dict[nb::cast(key)] = value;
  return dict;
}

nb::dict extras_to_python(const Step& step) {
  nb::dict dict;
  for (const ExtraSection& extra : step.tables().extras) dict[nb::cast(extra.name)] = extra.rows;
  return dict;
}

nb::dict to_python(const OpCount& count) {
  nb::dict dict;
  dict["name"] = count.name;
  dict["count"] = count.count;
  return dict;
}

nb::dict to_python(const RoleBytes& bytes) {
  nb::dict dict;
  dict["role"] = name_of(bytes.role);
  dict["storages"] = bytes.storages;
  dict["bytes"] = bytes.bytes;
  dict["resident_bytes"] = bytes.resident_bytes;
  return dict;
}

nb::dict to_python(const PassCount& count) {
  nb::dict dict;
  dict["kind"] = name_of(count.kind);
  dict["passes"] = count.passes;
  dict["ops"] = count.ops;
  return dict;
}

nb::dict to_python(const LargeStorage& large) {
  nb::dict dict;
  dict["storage"] = large.storage;
  dict["bytes"] = large.bytes;
  dict["role"] = name_of(large.role);
  dict["description"] = large.description;
  return dict;
}

template <class T>
nb::list list_of(const std::vector<T>& items) {
  nb::list list;
  for (const T& item : items) list.append(to_python(item));
  return list;
}

nb::dict summary_of(const Step& step, std::size_t largest_count) {
  const StepSummary summary = summarize(step, {.largest_count = largest_count});
  nb::dict dict;
  dict["fingerprint"] = summary.fingerprint.hex();
  dict["meta"] = meta_to_python(summary.meta);
  dict["modules"] = summary.modules;
  dict["calls"] = summary.calls;
  dict["ops"] = summary.ops;
  dict["tensors"] = summary.tensors;
  dict["storages"] = summary.storages;
  dict["saves"] = summary.saves;
  dict["saved_bytes"] = summary.saved_bytes;
  dict["events"] = summary.events;
  dict["passes"] = list_of(summary.passes);
  dict["op_counts"] = list_of(summary.op_counts);
  dict["roles"] = list_of(summary.roles);
  dict["largest"] = list_of(summary.largest);
  dict["missing"] = summary.missing;
  return dict;
}

std::string repr_of(const Step& step) {
  const StepTables& t = step.tables();
  return "<Step of " + std::to_string(t.ops.size()) + " ops, " + std::to_string(t.storages.size()) + " storages, " +
         std::to_string(t.events.size()) + " events>";
}

template <std::size_t N>
nb::tuple words_of(const std::array<std::string_view, N>& names) {
  nb::list list;
  for (const std::string_view name : names) list.append(name);
  return nb::tuple(list);
}

// The closed vocabularies, for whoever wants to check or list them.
void bind_words(nb::module_& m) {
  m.attr("PASS_KINDS") = words_of(kPassKindNames);
  m.attr("REGION_KINDS") = words_of(kRegionKindNames);
  m.attr("ROLES") = words_of(kRoleNames);
  m.attr("BINDING_KINDS") = words_of(kBindingKindNames);
  m.attr("ALIAS_KINDS") = words_of(kAliasKindNames);
  m.attr("EVENT_KINDS") = words_of(kEventKindNames);
  nb::list flags;
  for (const OpFlagName& entry : kOpFlagNames) flags.append(entry.name);
  m.attr("OP_FLAGS") = nb::tuple(flags);
  nb::dict dtypes;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    dtypes[nb::cast(name_of(dtype))] = item_bytes(dtype);
  }
  m.attr("DTYPES") = dtypes;
}

void bind_files(nb::class_<Step>& c) {
  c.def_static(
       "load",
       [](const std::filesystem::path& path) {
         nb::object step = nb::cast(read_step(path.string()));
         const std::string beside = memory::workspace_beside(path.string());
         if (std::filesystem::exists(beside)) step.attr("workspace") = nb::cast(memory::read_workspace(beside));
         return step;
       },
       "path"_a, nb::sig("def load(path: str | os.PathLike[str]) -> Step"),
       "Reads a step file, plain or zstd, and the workspace table beside it, if any. Raises Error, which names line "
       "and\n"
       "field.")
      .def(
          "save",
          [](nb::handle_t<Step> self, const std::filesystem::path& path) {
            write_step(nb::cast<const Step&>(self), path.string());
            if (const nb::object table = nb::getattr(self, "workspace", nb::none()); !table.is_none())
              memory::write_workspace(nb::cast<const memory::WorkspaceTable&>(table),
                                      memory::workspace_beside(path.string()));
          },
          "path"_a, nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
          "Writes a step file, whole or not at all; compressed when the name ends in \".zst\". Its workspace table, if "
          "it\n"
          "has one, goes beside it.")
      .def_static(
          "parse", [](std::string_view text, const std::string& name) { return parse_step(text, name); }, "text"_a,
          "name"_a = "step", "Reads a step from the text of a file; `name` stands for the file in errors.")
      .def_static(
          "parse",
          [](const nb::bytes& text, const std::string& name) {
            return parse_step(std::string_view(text.c_str(), text.size()), name);
          },
          "text"_a, "name"_a = "step")
      .def("text", &step_text, "The text of the file, the same on every machine.")
      .def("dump", &dump, "The whole step for a person to read; meant for small steps.");
}

void bind_tables(nb::class_<Step>& c) {
  c.def_prop_ro("modules", &view_table<&StepTables::modules>,
                nb::for_getter(nb::sig("def modules(self) -> Table[Module]")))
      .def_prop_ro("passes", &view_table<&StepTables::passes>,
                   nb::for_getter(nb::sig("def passes(self) -> Table[Pass]")))
      .def_prop_ro("calls", &view_table<&StepTables::calls>, nb::for_getter(nb::sig("def calls(self) -> Table[Call]")))
      .def_prop_ro("sources", &view_table<&StepTables::sources>,
                   nb::for_getter(nb::sig("def sources(self) -> Table[Source]")))
      .def_prop_ro("layouts", &view_table<&StepTables::layouts>,
                   nb::for_getter(nb::sig("def layouts(self) -> Table[Layout]")))
      .def_prop_ro("storages", &view_table<&StepTables::storages>,
                   nb::for_getter(nb::sig("def storages(self) -> Table[Storage]")))
      .def_prop_ro("tensors", &view_table<&StepTables::tensors>,
                   nb::for_getter(nb::sig("def tensors(self) -> Table[Tensor]")))
      .def_prop_ro("bindings", &view_table<&StepTables::bindings>,
                   nb::for_getter(nb::sig("def bindings(self) -> Table[Binding]")))
      .def_prop_ro("nodes", &view_table<&StepTables::nodes>, nb::for_getter(nb::sig("def nodes(self) -> Table[Node]")))
      .def_prop_ro("regions", &view_table<&StepTables::regions>,
                   nb::for_getter(nb::sig("def regions(self) -> Table[Region]")))
      .def_prop_ro("ops", &view_table<&StepTables::ops>, nb::for_getter(nb::sig("def ops(self) -> Table[Op]")))
      .def_prop_ro("saves", &view_table<&StepTables::saves>, nb::for_getter(nb::sig("def saves(self) -> Table[Save]")))
      .def_prop_ro("notes", &view_table<&StepTables::notes>, nb::for_getter(nb::sig("def notes(self) -> Table[Note]")));
}

void bind_plain_tables(nb::class_<Step>& c) {
  c.def_prop_ro(
       "meta", [](const Step& self) { return meta_to_python(self.tables().meta); },
       nb::for_getter(nb::sig("def meta(self) -> dict[str, str]")), "Who recorded what; a copy.")
      .def_prop_ro("strings", &view_table<&StepTables::strings>,
                   nb::for_getter(nb::sig("def strings(self) -> Table[str]")))
      .def_prop_ro("args", &view_table<&StepTables::args>,
                   nb::for_getter(nb::sig("def args(self) -> Table[dict[str, typing.Any]]")),
                   "Argument lists, shared by the ops that have them.")
      .def_prop_ro("resizes", &view_table<&StepTables::resizes>,
                   nb::for_getter(nb::sig("def resizes(self) -> Table[tuple[int, int]]")),
                   "(storage, new bytes) of every resize event.")
      .def_prop_ro("events", &view_table<&StepTables::events>,
                   nb::for_getter(nb::sig("def events(self) -> Table[tuple[str, int]]")),
                   "(kind, id) of everything that happens, in order. The kind is a word of `EVENT_KINDS` and names\n"
                   "the table of the id: phase passes; enter and exit calls; begin and end ops; alloc and free\n"
                   "storages; pack, unpack, drop and release saves; node and done nodes; resize resizes.")
      .def_prop_ro("extras", &extras_to_python, nb::for_getter(nb::sig("def extras(self) -> dict[str, list[str]]")),
                   "Sections that this version does not know, each row a line of JSON; a copy.");
}

}  // namespace

void bind_step(nb::module_& m) {
  bind_words(m);
  nb::class_<Step> c(m, "Step",
                     "One recorded training step: forward, loss, backward, optimizer.\n\n"
                     "It is immutable and consistent; `StepBuilder.finish` and the readers make one. Its tables are\n"
                     "read-only views: `step.ops[3].name`, `for kind, id in step.events`. Rows refer to each other by\n"
                     "id, the position in a table, and None stands for none. `capture` adds `workspace`, what kernels\n"
                     "allocate for themselves; `save` writes it beside the step and `load` finds it there.",
                     nb::dynamic_attr());
  bind_files(c);
  c.def_prop_ro(
       "fingerprint", [](const Step& self) { return fingerprint(self).hex(); },
       "32 hexadecimal digits that tell whether two records are of the same step, however their ids are numbered.\n"
       "Computed anew at every access.")
      .def("summary", &summary_of, "largest_count"_a = SummaryOptions{}.largest_count,
           nb::sig("def summary(self, largest_count: int = 5) -> dict[str, typing.Any]"),
           "What a person wants to know first, as plain values: counts, bytes by role, the largest storages, what is\n"
           "missing.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Step& self) { return fingerprint(self).low >> 1; })
      .def("__repr__", &repr_of);
  bind_tables(c);
  bind_plain_tables(c);
}

}  // namespace tidemark::python
