#include <nanobind/operators.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "casters.h"
#include "plan_of.h"
#include "tidemark/base/atomic_file.h"
#include "tidemark/base/duration.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/catalog.h"
#include "tidemark/plan/groups.h"
#include "tidemark/plan/legality.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/plan/policies.h"
#include "tidemark/planner/facts.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tidemark::plan;
using tidemark::step::CallId;
using tidemark::step::OpId;
using tidemark::step::Step;

namespace tidemark::python {

namespace {

using UnitPair = std::pair<CallId, std::vector<OpId>>;

Plan make_plan_of(const std::vector<UnitPair>& units, bool preserve_rng, bool early_stop) {
  Plan plan;
  for (const auto& [call, ops] : units) {
    Unit unit{call, ops, preserve_rng, early_stop};
    std::sort(unit.saved_ops.begin(), unit.saved_ops.end());
    plan.units.push_back(std::move(unit));
  }
  return plan;
}

const Plan& ids_of(const PlanOf& self) {
  if (self.plan) return *self.plan;
  throw Error({.kind = ErrorKind::kInput,
               .place = "plan",
               .problem = "a loaded plan has no ids of calls and ops",
               .expected = "its step",
               .got = {},
               .remedy = "Plan.load(path, step)"});
}

const PortablePlan& words_of(PlanOf& self) {
  if (self.words) return *self.words;
  if (self.step.is_none())
    throw Error({.kind = ErrorKind::kInput,
                 .place = "plan",
                 .problem = "the plan does not know its step",
                 .expected = "one of tidemark.plan() or Plan.load()",
                 .got = "a plan of ids",
                 .remedy = "Plan(units, step=step)"});
  const Step& step = nb::cast<const Step&>(self.step);
  const device::Device device = device::find_device("cpu");
  const planner::PlannerOptions options{.workspace = workspace_of(self.step)};
  self.words = describe(
      step, *self.plan,
      planner::facts_of_given(step, cost::price_step(step, device, self.ranks), *self.plan, device.name, options));
  self.step = nb::none();
  return *self.words;
}

std::vector<UnitPair> units_of(const PlanOf& self) {
  std::vector<UnitPair> units;
  for (const Unit& unit : ids_of(self).units) units.emplace_back(unit.call, unit.saved_ops);
  return units;
}

std::size_t unit_count(const PlanOf& self) { return self.plan ? self.plan->units.size() : self.words->units.size(); }

PlanOf load_plan(const std::filesystem::path& path, const Step* step) {
  PortablePlan words = read_portable_plan(path.string());
  std::optional<Plan> plan;
  if (step != nullptr) plan = find_in(*step, words, path.string());
  return {std::move(plan), std::move(words), nb::none()};
}

bool are_equal(PlanOf& a, PlanOf& b) {
  if (a.plan && b.plan) return *a.plan == *b.plan;
  return words_of(a) == words_of(b);
}

nb::list check_to_python(const Step& step, const Plan& plan) {
  nb::list list;
  for (const Violation& violation : check(step, plan)) {
    nb::dict dict;
    dict["kind"] = name_of(violation.kind);
    dict["unit"] = violation.unit;
    dict["op"] = optional(violation.op).has_value() ? nb::cast(violation.op.value()) : nb::none();
    dict["text"] = violation.text;
    list.append(dict);
  }
  return list;
}

double ms(std::int64_t ps) { return static_cast<double>(ps) / static_cast<double>(kPsPerMs); }

void bind_plan_class(nb::module_& m) {
  nb::class_<PlanOf>(m, "Plan",
                     "What to checkpoint in a step: units, each a module call and the ops in it that are saved rather\n"
                     "than recomputed. A plan without units is plain training.")
      .def(
          "__init__",
          [](PlanOf* self, const std::vector<UnitPair>& units, bool preserve_rng, bool early_stop, nb::object step,
             std::int64_t ranks, std::int64_t ranks_per_node) {
            new (self) PlanOf{make_plan_of(units, preserve_rng, early_stop),
                              {},
                              std::move(step),
                              {.ranks = ranks, .ranks_per_node = ranks_per_node}};
          },
          "units"_a = std::vector<UnitPair>(), nb::kw_only(), "preserve_rng"_a = true, "early_stop"_a = true,
          "step"_a = nb::none(), "ranks"_a = 1, "ranks_per_node"_a = 0,
          nb::sig("def __init__(self, units: typing.Sequence[tuple[int, typing.Sequence[int]]] = [], *, "
                  "preserve_rng: bool = True, early_stop: bool = True, step: Step | None = None, ranks: int = 1, "
                  "ranks_per_node: int = 0) -> None"),
          "`units` are pairs of a call's id and the ids of its saved ops. A plan that knows its step can be saved and\n"
          "applied. `recompute_ms` is by the times of \"cpu\", with so many `ranks` in the step's collectives.")
      .def_static(
          "policy",
          [](nb::handle_t<Step> step, std::string_view policy, bool preserve_rng, bool early_stop, std::int64_t ranks,
             std::int64_t ranks_per_node) {
            return PlanOf{make_plan(nb::cast<const Step&>(step), parse_policy(policy), {preserve_rng, early_stop}),
                          {},
                          nb::borrow(step),
                          {.ranks = ranks, .ranks_per_node = ranks_per_node}};
          },
          "step"_a, "policy"_a, nb::kw_only(), "preserve_rng"_a = true, "early_stop"_a = true, "ranks"_a = 1,
          "ranks_per_node"_a = 0, "The plan that \"none\", \"full\", \"every:K\" or \"selective\" means for a step.")
      .def_static("load", &load_plan, "path"_a, "step"_a = nb::none(),
                  nb::sig("def load(path: str | os.PathLike[str], step: Step | None = None) -> Plan"),
                  "Reads a plan file. Without its step a plan can be applied and saved; with it, its units have ids.")
      .def(
          "save",
          [](PlanOf& self, const std::filesystem::path& path) {
            write_file_atomically(path.string(), write_plan(words_of(self)));
          },
          "path"_a, nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
          "Writes the plan file, whole or not at all; docs/plan_format.md is the format.")
      .def(
          "to_json", [](PlanOf& self) { return write_plan(words_of(self)); }, "The text of the plan file.")
      .def(
          "apply",
          [](nb::object self, nb::object model, bool check_ranks) {
            nb::module_::import_("tidemark._apply.apply").attr("apply")(self, model, check_ranks);
          },
          "model"_a, nb::kw_only(), "check_ranks"_a = true,
          nb::sig("def apply(self, model: typing.Any, *, check_ranks: bool = True) -> None"),
          "Makes the model's module calls run under checkpoints as the plan says, from the next forward on.\n"
          "`tidemark.remove(model)` takes it back. With torch.distributed, all ranks have to apply the same plan, "
          "unless\n"
          "`check_ranks` is False. docs/apply.md has the rules.")
      .def_prop_ro(
          "hash", [](PlanOf& self) { return hash_of(words_of(self)).hex(); },
          "32 digits, the same for the same plan on every rank: a key for caches.")
      .def_prop_ro(
          "fingerprint", [](PlanOf& self) { return words_of(self).fingerprint.hex(); }, "Of the step it is for.")
      .def_prop_ro("device", [](PlanOf& self) { return words_of(self).facts.device; })
      .def_prop_ro("budget_bytes", [](PlanOf& self) { return words_of(self).facts.budget_bytes; })
      .def_prop_ro("reserve_bytes", [](PlanOf& self) { return words_of(self).facts.reserve_bytes; })
      .def_prop_ro(
          "peak_bytes", [](PlanOf& self) { return words_of(self).facts.peak_bytes; }, "Of the step, predicted.")
      .def_prop_ro(
          "recompute_ms", [](PlanOf& self) { return ms(words_of(self).facts.recompute_ps); }, "Predicted.")
      .def_prop_ro("units", &units_of, nb::for_getter(nb::sig("def units(self) -> list[tuple[int, list[int]]]")),
                   "Pairs of a call's id and the ids of its saved ops; a copy.")
      .def(
          "check", [](const PlanOf& self, const Step& step) { return check_to_python(step, self.in(step)); }, "step"_a,
          nb::sig("def check(self, step: Step) -> list[dict[str, typing.Any]]"),
          "What is wrong with the plan for this step, as dicts of kind, unit, op and text; empty when it is legal.")
      .def(
          "__getstate__", [](PlanOf& self) { return write_plan(words_of(self)); },
          "The text of the plan file: a plan that is pickled or copied comes back as a loaded one.")
      .def("__setstate__",
           [](PlanOf& self, const std::string& text) {
             new (&self) PlanOf{std::nullopt, read_portable_plan_text(text, "the pickled plan"), nb::none()};
           })
      .def("__len__", &unit_count, "How many units it has.")
      .def("__bool__", [](const PlanOf&) { return true; })
      .def(
          "__eq__", [](PlanOf& self, PlanOf& other) { return are_equal(self, other); }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const PlanOf& self) { return unit_count(self); })
      .def("__repr__", [](const PlanOf& self) { return "<Plan of " + std::to_string(unit_count(self)) + " units>"; });
}

void bind_groups(nb::module_& m) {
  nb::class_<Group>(m, "Group", "Ops of a unit that are saved or recomputed together.")
      .def_ro("ops", &Group::ops, nb::for_getter(nb::sig("def ops(self) -> list[int]")))
      .def_ro("savers", &Group::savers, nb::for_getter(nb::sig("def savers(self) -> list[int]")),
              "The ops to name in a plan when the group is saved.")
      .def_prop_ro("can_save", &Group::can_save)
      .def_prop_ro(
          "obstacle", [](const Group& self) { return name_of(self.obstacle); },
          "Why it cannot be saved: \"nothing_fresh\", \"changed\", \"view\", or \"none\".")
      .def_ro("must_save", &Group::must_save)
      .def_ro("is_random", &Group::is_random)
      .def_ro("saved_bytes", &Group::saved_bytes, "What the checkpoint holds when the group is saved.");
  m.def(
      "groups", [](const Step& step, CallId call) { return find_groups(step, call); }, "step"_a, "call"_a,
      "The groups of a module call, in the order of their first ops.");
}

}  // namespace

void bind_plan(nb::module_& m) {
  bind_plan_class(m);
  bind_groups(m);
}

}  // namespace tidemark::python
