#include <nanobind/operators.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "casters.h"
#include "tidemark/plan/groups.h"
#include "tidemark/plan/legality.h"
#include "tidemark/plan/plan.h"
#include "tidemark/plan/policies.h"

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

std::vector<UnitPair> units_of(const Plan& plan) {
  std::vector<UnitPair> units;
  for (const Unit& unit : plan.units) units.emplace_back(unit.call, unit.saved_ops);
  return units;
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

void bind_plan_class(nb::module_& m) {
  nb::class_<Plan>(m, "Plan",
                   "What to checkpoint in a step: units, each a module call and the ops in it that are saved rather\n"
                   "than recomputed. A plan without units is plain training.")
      .def(
          "__init__",
          [](Plan* self, const std::vector<UnitPair>& units, bool preserve_rng, bool early_stop) {
            new (self) Plan(make_plan_of(units, preserve_rng, early_stop));
          },
          "units"_a = std::vector<UnitPair>(), nb::kw_only(), "preserve_rng"_a = true, "early_stop"_a = true,
          nb::sig("def __init__(self, units: typing.Sequence[tuple[int, typing.Sequence[int]]] = [], *, "
                  "preserve_rng: bool = True, early_stop: bool = True) -> None"),
          "`units` are pairs of a call's id and the ids of its saved ops.")
      .def_static(
          "policy",
          [](const Step& step, std::string_view policy, bool preserve_rng, bool early_stop) {
            return make_plan(step, parse_policy(policy), {preserve_rng, early_stop});
          },
          "step"_a, "policy"_a, nb::kw_only(), "preserve_rng"_a = true, "early_stop"_a = true,
          "The plan that \"none\", \"full\", \"every:K\" or \"selective\" means for a step.")
      .def_prop_ro("units", &units_of, nb::for_getter(nb::sig("def units(self) -> list[tuple[int, list[int]]]")),
                   "Pairs of a call's id and the ids of its saved ops; a copy.")
      .def(
          "check", [](const Plan& self, const Step& step) { return check_to_python(step, self); }, "step"_a,
          nb::sig("def check(self, step: Step) -> list[dict[str, typing.Any]]"),
          "What is wrong with the plan for this step, as dicts of kind, unit, op and text; empty when it is legal.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Plan& self) { return self.units.size(); })
      .def("__repr__", [](const Plan& self) { return "<Plan of " + std::to_string(self.units.size()) + " units>"; });
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
