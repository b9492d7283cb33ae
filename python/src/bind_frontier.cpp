// Options of searches, and what recomputing costs at least for every budget.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "casters.h"
#include "search_options.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/device.h"
#include "tidemark/planner/frontier.h"
#include "tidemark/report/text_layout.h"
#include "totals.h"
#include "words.h"

namespace nb = nanobind;
using namespace nb::literals;
using tidemark::step::Step;

namespace tidemark::python {

namespace {

using report::ms;

SearchOptions make_options(std::int64_t reserve_bytes, std::string_view against, nb::object workspace, bool early_stop,
                           std::string_view rng, std::vector<std::string> units, std::vector<std::string> not_units,
                           std::vector<std::string> always_save, std::vector<std::string> never_save,
                           std::int64_t ranks, std::int64_t ranks_per_node) {
  return {.reserve_bytes = reserve_bytes,
          .against = from_word<planner::Against>(against, planner::kAgainstNames, "against"),
          .workspace = std::move(workspace),
          .space = {.early_stop = early_stop,
                    .rng = from_word<planner::RngRule>(rng, planner::kRngNames, "rng"),
                    .units = std::move(units),
                    .not_units = std::move(not_units),
                    .always_save = std::move(always_save),
                    .never_save = std::move(never_save)},
          .ranks = ranks,
          .ranks_per_node = ranks_per_node};
}

// A frontier together with what it is of.
struct FrontierOf {
  planner::Frontier frontier;
  std::int64_t reserve_bytes = 0;
  cost::Total ops;
  UnpricedRows unpriced;
  std::vector<std::string> notes;
  std::string device;
};

FrontierOf find_frontier(const Step& step, const device::Device& device, const SearchOptions& wishes,
                         std::int64_t budgets, bool full, std::int64_t max_work) {
  const cost::StepCost cost =
      cost::price_step(step, device, {.ranks = wishes.ranks, .ranks_per_node = wishes.ranks_per_node});
  planner::FrontierOptions options = planner::default_frontier_options(full);
  options.budget_count = budgets;
  if (max_work > 0) options.max_work = max_work;
  return {planner::find_frontier(planner::PreparedStep(step, cost, wishes.options(device)), options),
          wishes.reserve_bytes,
          cost.all,
          unpriced_rows(step, cost.unpriced),
          cost.notes,
          device.name};
}

nb::list points_to_python(const FrontierOf& self) {
  nb::list list;
  for (const planner::FrontierPoint& point : self.frontier.points) {
    nb::dict dict;
    dict["budget_bytes"] = point.budget_bytes + self.reserve_bytes;
    dict["peak_bytes"] = point.peak_bytes;
    dict["recompute_ms"] = ms(point.recompute_ps);
    dict["recompute_low_ms"] = ms(point.interval.low_ps);
    dict["recompute_high_ms"] = ms(point.interval.high_ps);
    dict["bound_ms"] = ms(point.bound_ps);
    dict["proved"] = point.is_proved();
    dict["termination"] = planner::name_of(point.termination());
    dict["units"] = point.unit_count;
    list.append(dict);
  }
  return list;
}

nb::list missing_to_python(const FrontierOf& self) {
  nb::list list;
  for (const planner::BudgetRange& range : self.frontier.missing)
    list.append(nb::make_tuple(range.first_bytes + self.reserve_bytes, range.last_bytes + self.reserve_bytes));
  return list;
}

}  // namespace

planner::PlannerOptions SearchOptions::options(const device::Device& device) const {
  return {.reserve_bytes = reserve_bytes,
          .against = against,
          .rounding_bytes = device.allocator_rounding_bytes.value,
          .workspace = workspace.is_none() ? nullptr : &nb::cast<const memory::WorkspaceTable&>(workspace),
          .space = space};
}

void bind_frontier(nb::module_& m) {
  nb::class_<SearchOptions>(m, "SearchOptions", "What `tidemark.plan` and `tidemark.frontier` have in common.")
      .def(
          "__init__",
          [](SearchOptions* self, std::int64_t reserve_bytes, std::string_view against, nb::object workspace,
             bool early_stop, std::string_view rng, std::vector<std::string> units, std::vector<std::string> not_units,
             std::vector<std::string> always_save, std::vector<std::string> never_save, std::int64_t ranks,
             std::int64_t ranks_per_node) {
            new (self) SearchOptions(make_options(reserve_bytes, against, std::move(workspace), early_stop, rng,
                                                  std::move(units), std::move(not_units), std::move(always_save),
                                                  std::move(never_save), ranks, ranks_per_node));
          },
          nb::kw_only(), "reserve_bytes"_a, "against"_a, "workspace"_a.none(), "early_stop"_a, "rng"_a, "units"_a,
          "not_units"_a, "always_save"_a, "never_save"_a, "ranks"_a, "ranks_per_node"_a = 0,
          nb::sig("def __init__(self, *, reserve_bytes: int, against: str, workspace: WorkspaceTable | None, "
                  "early_stop: bool, rng: str, units: typing.Sequence[str], not_units: typing.Sequence[str], "
                  "always_save: typing.Sequence[str], never_save: typing.Sequence[str], ranks: int, ranks_per_node: "
                  "int = 0) -> None"));
  nb::class_<FrontierOf>(m, "Frontier", "What recomputing costs at least, budget by budget.")
      .def_prop_ro("points", &points_to_python,
                   nb::for_getter(nb::sig("def points(self) -> list[dict[str, typing.Any]]")),
                   "Dicts of budget_bytes (with the reserve), peak_bytes, recompute_ms with recompute_low_ms and\n"
                   "recompute_high_ms, bound_ms, proved and units, by budget.")
      .def_prop_ro("missing", &missing_to_python, nb::for_getter(nb::sig("def missing(self) -> list[tuple[int, int]]")),
                   "With full=True: the first and last of budgets that the limit left without an answer.")
      .def_prop_ro(
          "policies", [](const FrontierOf& self) { return policies_to_python(self.frontier.policies); },
          nb::for_getter(nb::sig("def policies(self) -> list[dict[str, typing.Any]]")),
          "What the plans that people write by hand come to.")
      .def_prop_ro("smallest_peak_bytes", [](const FrontierOf& self) { return self.frontier.smallest_peak_bytes; })
      .def_prop_ro("is_smallest_proved", [](const FrontierOf& self) { return self.frontier.is_smallest_proved; })
      .def_prop_ro("unplanned_peak_bytes", [](const FrontierOf& self) { return self.frontier.unplanned_peak_bytes; })
      .def_prop_ro("is_full", [](const FrontierOf& self) { return self.frontier.is_full; })
      .def_prop_ro("reserve_bytes", [](const FrontierOf& self) { return self.reserve_bytes; })
      .def_prop_ro(
          "step_ms", [](const FrontierOf& self) { return ms(self.ops.time_ps); }, "The sum of the step's op times.")
      .def_prop_ro(
          "step_ops", [](const FrontierOf& self) { return to_python(self.ops); },
          nb::for_getter(nb::sig("def step_ops(self) -> dict[str, float]")),
          "The same as `StepCost.sum` has it: with its interval, and where it comes from.")
      .def_prop_ro(
          "unpriced", [](const FrontierOf& self) { return self.unpriced; },
          "(name, count, bytes) of the step's ops that have no price and count as nothing.")
      .def_prop_ro(
          "notes", [](const FrontierOf& self) { return self.notes; }, "What the times assume, in words.")
      .def_prop_ro("device", [](const FrontierOf& self) { return self.device; })
      .def("__repr__", [](const FrontierOf& self) {
        return fmt::format("<Frontier: {} points from {} to {} bytes>", self.frontier.points.size(),
                           self.frontier.smallest_peak_bytes, self.frontier.unplanned_peak_bytes);
      });
  m.def("find_frontier", &find_frontier, "step"_a, "device"_a, "options"_a, nb::kw_only(), "budgets"_a, "full"_a,
        "max_work"_a, "What `tidemark.frontier` calls.");
}

}  // namespace tidemark::python
