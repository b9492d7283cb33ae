#include <nanobind/operators.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "casters.h"
#include "plan_of.h"
#include "tidemark/base/error.h"
#include "tidemark/memory/caching_allocator.h"
#include "tidemark/memory/module_table.h"
#include "tidemark/memory/reference_tracker.h"
#include "tidemark/memory/replay.h"
#include "tidemark/memory/workspace_file.h"
#include "tidemark/plan/plan.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tidemark::memory;
using tidemark::plan::Plan;
using tidemark::step::OpId;
using tidemark::step::Step;

namespace tidemark::python {

namespace {

// A timeline together with what it is of.
struct TimelineOf {
  nb::object step;
  Plan plan;
  Timeline timeline;
};

template <class Tag>
nb::object id_or_none(Id<Tag> id) {
  return id.is_none() ? nb::none() : nb::cast(id.value());
}

nb::object number_or_none(std::uint32_t number, std::uint32_t none) {
  return number == none ? nb::none() : nb::cast(number);
}

nb::object bytes_or_none(std::int64_t bytes) { return bytes == CallPeak::kNever ? nb::none() : nb::cast(bytes); }

nb::dict to_python(const Moment& moment) {
  nb::dict dict;
  dict["bytes"] = moment.total_bytes;
  dict["event"] = number_or_none(moment.event, kNoEvent);
  dict["op"] = id_or_none(moment.op);
  dict["call"] = id_or_none(moment.call);
  dict["pass"] = id_or_none(moment.pass);
  dict["unit"] = number_or_none(moment.unit, kNoUnit);
  return dict;
}

nb::dict to_python(const Alive& alive) {
  nb::dict dict;
  dict["block"] = name_of(alive.block.kind);
  dict["id"] = alive.block.id;
  dict["bytes"] = alive.bytes;
  dict["category"] = name_of(alive.category);
  dict["made_by"] = id_or_none(alive.made_by);
  return dict;
}

nb::dict to_python(const Leftover& leftover) {
  nb::dict dict;
  dict["block"] = name_of(leftover.block.kind);
  dict["id"] = leftover.block.id;
  dict["bytes"] = leftover.bytes;
  dict["reason"] = name_of(leftover.reason);
  return dict;
}

nb::dict to_python(const ReferenceSnapshot& snapshot) {
  nb::dict dict;
  for (std::size_t i = 0; i < snapshot.bytes.size(); ++i)
    dict[nb::cast(kReferenceCategoryNames[i])] = snapshot.bytes[i];
  dict["Total"] = snapshot.total_bytes;
  return dict;
}

template <class T>
nb::list list_of(const std::vector<T>& items) {
  nb::list list;
  for (const T& item : items) list.append(to_python(item));
  return list;
}

nb::dict categories_to_python(const CategoryBytes& bytes) {
  nb::dict dict;
  for (std::size_t i = 0; i < bytes.size(); ++i) dict[nb::cast(kCategoryNames[i])] = bytes[i];
  return dict;
}

nb::list modules_to_python(const TimelineOf& self) {
  const Step& step = nb::cast<const Step&>(self.step);
  nb::list list;
  for (const ModuleRow& row : module_table(step, self.plan, self.timeline, std::numeric_limits<std::size_t>::max())) {
    nb::dict dict;
    dict["module"] = id_or_none(row.module);
    dict["fqn"] = row.module.is_none() ? nb::none() : nb::cast(step.fqn(row.module));
    dict["calls"] = row.calls;
    dict["peak_share_bytes"] = row.peak_share_bytes;
    dict["forward_peak_bytes"] = bytes_or_none(row.forward_peak_bytes);
    dict["backward_peak_bytes"] = bytes_or_none(row.backward_peak_bytes);
    list.append(dict);
  }
  return list;
}

// One list per column: much smaller than one object per change.
nb::dict events_to_python(const Timeline& timeline) {
  nb::list kinds;
  nb::list bytes;
  nb::list totals;
  nb::list categories;
  nb::list blocks;
  nb::list ids;
  nb::list events;
  nb::list ops;
  nb::list units;
  for (const Change& change : timeline.changes) {
    kinds.append(change.kind == ChangeKind::kAlloc ? "alloc" : "free");
    bytes.append(change.bytes);
    totals.append(change.total_bytes);
    categories.append(name_of(change.category));
    blocks.append(name_of(change.block.kind));
    ids.append(change.block.id);
    events.append(change.event);
    ops.append(id_or_none(change.op));
    units.append(number_or_none(change.unit, kNoUnit));
  }
  nb::dict dict;
  dict["kind"] = kinds;
  dict["bytes"] = bytes;
  dict["total_bytes"] = totals;
  dict["category"] = categories;
  dict["block"] = blocks;
  dict["id"] = ids;
  dict["event"] = events;
  dict["op"] = ops;
  dict["unit"] = units;
  return dict;
}

nb::dict reserved_to_python(const TimelineOf& self, bool expandable_segments) {
  const AllocatorUse use = use_caching_allocator(nb::cast<const Step&>(self.step), self.timeline,
                                                 {.expandable_segments = expandable_segments});
  nb::dict dict;
  dict["peak_allocated_bytes"] = use.peak_allocated_bytes;
  dict["peak_reserved_bytes"] = use.peak_reserved_bytes;
  dict["fragmentation_bytes"] = use.fragmentation_bytes();
  dict["segments"] = use.segments;
  return dict;
}

nb::dict reference_to_python(const Step& step, const std::string& device, bool counts_stale) {
  const ReferenceRecord record = track_like_reference(step, {.device = device, .counts_stale = counts_stale});
  nb::list modules;
  for (const ReferenceModule& module : record.modules) {
    nb::dict states;
    for (std::size_t i = 0; i < module.snapshots.size(); ++i)
      states[nb::cast(kReferenceStateNames[i])] = list_of(module.snapshots[i]);
    nb::dict dict;
    dict["module"] = module.module.value();
    dict["fqn"] = step.fqn(module.module);
    dict["parameter_bytes"] = module.parameter_bytes;
    dict["buffer_bytes"] = module.buffer_bytes;
    dict["input_bytes"] = module.input_bytes;
    dict["output_bytes"] = module.output_bytes;
    dict["snapshots"] = states;
    modules.append(dict);
  }
  nb::dict dict;
  dict["current"] = to_python(record.current);
  dict["peak"] = to_python(record.peak);
  dict["modules"] = modules;
  return dict;
}

void bind_timeline(nb::module_& m) {
  nb::class_<TimelineOf>(m, "Timeline",
                         "The memory of one step under one plan. Bytes are exact; docs/how_memory_is_counted.md has "
                         "the rules.")
      .def_prop_ro("peak_bytes", [](const TimelineOf& self) { return self.timeline.peak.total_bytes; })
      .def_prop_ro("start_bytes", [](const TimelineOf& self) { return self.timeline.start_bytes; })
      .def_prop_ro("end_bytes", [](const TimelineOf& self) { return self.timeline.end_bytes; })
      .def_prop_ro("change_count", [](const TimelineOf& self) { return self.timeline.change_count; })
      .def_prop_ro(
          "peak", [](const TimelineOf& self) { return to_python(self.timeline.peak); },
          nb::for_getter(nb::sig("def peak(self) -> dict[str, typing.Any]")),
          "The first moment that reaches the peak: bytes, and the ids of event, op, call, pass and of the unit that\n"
          "is being recomputed, each None where there is none.")
      .def_prop_ro(
          "runners_up", [](const TimelineOf& self) { return list_of(self.timeline.runners_up); },
          nb::for_getter(nb::sig("def runners_up(self) -> list[dict[str, typing.Any]]")),
          "The next highest moments, like `peak`.")
      .def_prop_ro(
          "by_category", [](const TimelineOf& self) { return categories_to_python(self.timeline.peak_by_category); },
          nb::for_getter(nb::sig("def by_category(self) -> dict[str, int]")),
          "Bytes alive at the peak; they add up to `peak_bytes`.")
      .def_prop_ro("modules", &modules_to_python,
                   nb::for_getter(nb::sig("def modules(self) -> list[dict[str, typing.Any]]")),
                   "One dict per module: calls, its share of the peak, and the most alive during its calls and their\n"
                   "backward. The shares add up to `peak_bytes`.")
      .def_prop_ro(
          "alive_at_peak", [](const TimelineOf& self) { return list_of(self.timeline.alive_at_peak); },
          nb::for_getter(nb::sig("def alive_at_peak(self) -> list[dict[str, typing.Any]]")),
          "Everything alive at the peak, largest first.")
      .def_prop_ro(
          "alive_at_end", [](const TimelineOf& self) { return list_of(self.timeline.alive_at_end); },
          nb::for_getter(nb::sig("def alive_at_end(self) -> list[dict[str, typing.Any]]")),
          "What is alive after the last event, with the reason.")
      .def_prop_ro(
          "events", [](const TimelineOf& self) { return events_to_python(self.timeline); },
          nb::for_getter(nb::sig("def events(self) -> dict[str, list[typing.Any]]")),
          "Every change as columns of equal length: kind (\"alloc\" or \"free\"), bytes, total_bytes (alive after "
          "it),\n"
          "category, block (\"original\", \"copy\", \"rng_state\" or \"workspace\"), id (of the storage, unit or op),\n"
          "event (of the step), op and unit. Empty unless `simulate` was told events=True.")
      .def("reserved", &reserved_to_python, nb::kw_only(), "expandable_segments"_a = false,
           nb::sig("def reserved(self, *, expandable_segments: bool = False) -> dict[str, int]"),
           "What PyTorch's caching allocator would reserve on CUDA, by a model of it: peak_allocated_bytes,\n"
           "peak_reserved_bytes, fragmentation_bytes and segments. Needs `simulate` to keep events.")
      .def("__repr__", [](const TimelineOf& self) {
        return "<Timeline with a peak of " + std::to_string(self.timeline.peak.total_bytes) + " bytes>";
      });
}

TimelineOf simulate(nb::handle_t<Step> step, const PlanOf* plan, const WorkspaceTable* workspace, bool early_stop,
                    bool preserve_rng, bool events, std::int64_t round_to_bytes) {
  const Plan used = plan == nullptr ? Plan{} : plan->in(nb::cast<const Step&>(step));
  const ReplayOptions options{.workspace = workspace != nullptr ? workspace : workspace_of(step),
                              .round_to_bytes = round_to_bytes,
                              .early_stop = early_stop,
                              .preserve_rng = preserve_rng,
                              .keep_changes = events};
  return {nb::borrow(step), used, replay(nb::cast<const Step&>(step), used, options)};
}

using StepPair = std::pair<int, std::int64_t>;
using RowTuple = std::tuple<std::string, std::vector<StepPair>, bool>;

WorkspaceTable make_table(const std::vector<RowTuple>& rows, std::string device) {
  WorkspaceTable table{std::move(device), {}};
  for (const auto& [key, steps, estimated] : rows) {
    WorkspaceRow row{key, {}, estimated};
    for (const auto& [kind, value] : steps) row.steps.push_back(workspace_step(kind, value));
    table.rows.push_back(std::move(row));
  }
  workspace_text(table);  // refuses what could not be read back
  return table;
}

std::vector<RowTuple> rows_of(const WorkspaceTable& table) {
  std::vector<RowTuple> rows;
  for (const WorkspaceRow& row : table.rows) {
    std::vector<StepPair> steps;
    for (const WorkspaceStep& s : row.steps) steps.emplace_back(static_cast<int>(s.kind), s.value);
    rows.emplace_back(row.key, std::move(steps), row.estimated);
  }
  return rows;
}

void bind_workspace(nb::module_& m) {
  nb::class_<WorkspaceTable>(
      m, "WorkspaceTable",
      "The scratch memory of kernels, by op; docs/workspace_format.md says how.\n\n"
      "A row is (key, steps, estimated); steps are pairs: (0, k) the op's k-th allocation\n"
      "happens here, (1, n) n hidden bytes are allocated, (2, i) the i-th hidden ones are freed.")
      .def(
          "__init__",
          [](WorkspaceTable* self, const std::vector<RowTuple>& rows, std::string device) {
            new (self) WorkspaceTable(make_table(rows, std::move(device)));
          },
          "rows"_a = std::vector<RowTuple>(), nb::kw_only(), "device"_a = "",
          nb::sig("def __init__(self, rows: typing.Sequence[tuple[str, typing.Sequence[tuple[int, int]], bool]] = [], "
                  "*, device: str = '') -> None"))
      .def_ro("device", &WorkspaceTable::device)
      .def_prop_ro("rows", &rows_of,
                   nb::for_getter(nb::sig("def rows(self) -> list[tuple[str, list[tuple[int, int]], bool]]")))
      .def_static(
          "load", [](const std::filesystem::path& path) { return read_workspace(path.string()); }, "path"_a,
          nb::sig("def load(path: str | os.PathLike[str]) -> WorkspaceTable"))
      .def(
          "save",
          [](const WorkspaceTable& self, const std::filesystem::path& path) { write_workspace(self, path.string()); },
          "path"_a, nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
          "Writes the table, whole or not at all; compressed when the name ends in \".zst\".")
      .def("__len__", [](const WorkspaceTable& self) { return self.rows.size(); })
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const WorkspaceTable& self) { return self.rows.size(); });
  m.def("workspace_key", &workspace_key, "step"_a, "op"_a,
        "The key of an op in a workspace table: its name, the layouts of its inputs and its other arguments.");
}

}  // namespace

void bind_memory(nb::module_& m) {
  bind_timeline(m);
  bind_workspace(m);
  m.def(
      "reference_tracker", &reference_to_python, "step"_a, "device"_a = "", nb::kw_only(), "counts_stale"_a = false,
      nb::sig("def reference_tracker(step: Step, device: str = '', *, counts_stale: bool = False) -> "
              "dict[str, typing.Any]"),
      "The step as torch.distributed._tools.mem_tracker counts it: `current` and `peak`, bytes by its categories, and\n"
      "`modules`, each with the snapshots of its eight states. Only storages on `device`, unless it is empty.\n"
      "With `counts_stale`, what the program still holds from the step before counts as activation, as it does for\n"
      "a tracker that watched that step, too.");
  m.def("simulate", &simulate, "step"_a, "plan"_a = nb::none(), nb::kw_only(), "workspace"_a = nb::none(),
        "early_stop"_a = true, "preserve_rng"_a = true, "events"_a = false, "round_to_bytes"_a = 1,
        nb::sig("def simulate(step: Step, plan: Plan | None = None, *, workspace: WorkspaceTable | None = None, "
                "early_stop: bool = True, preserve_rng: bool = True, events: bool = False, "
                "round_to_bytes: int = 1) -> Timeline"),
        "Replays a step under a plan (None: plain training) and tells the bytes alive at every moment.\n\n"
        "`workspace` is by default the step's own, if it has one; an empty WorkspaceTable() stands for none.\n"
        "`early_stop` and `preserve_rng` set to False hold for all units; `events` keeps every change.");
}

}  // namespace tidemark::python
