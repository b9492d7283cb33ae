// How long a step takes on a device.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "bindings.h"
#include "casters.h"
#include "tidemark/base/duration.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/cost/work_text.h"
#include "tidemark/device/catalog.h"
#include "totals.h"

namespace nb = nanobind;
using namespace nb::literals;
using tidemark::step::OpId;
using tidemark::step::Step;

namespace tidemark::python {

namespace {

// A cost together with what it is of.
struct CostOf {
  nb::object step;
  device::Device device;
  cost::StepCost cost;
};

double ms(std::int64_t ps) { return static_cast<double>(ps) / static_cast<double>(kPsPerMs); }

}  // namespace

nb::dict to_python(const cost::Total& total) {
  nb::dict dict;
  dict["ms"] = ms(total.time_ps);
  dict["low_ms"] = ms(total.low_ps);
  dict["high_ms"] = ms(total.high_ps);
  dict["measured_ms"] = ms(total.measured_ps);
  dict["modelled_ms"] = ms(total.modelled_ps);
  dict["unpriced_ops"] = total.unpriced_ops;
  dict["unpriced_bytes"] = total.unpriced_bytes;
  return dict;
}

UnpricedRows unpriced_rows(const Step& step, const std::vector<cost::UnpricedOp>& ops) {
  UnpricedRows rows;
  for (const cost::UnpricedOp& op : ops) rows.emplace_back(step.text(op.name), op.count, op.bytes);
  return rows;
}

namespace {

nb::dict passes_to_python(const CostOf& self) {
  nb::dict dict;
  for (std::size_t kind = 0; kind < step::kPassKindNames.size(); ++kind) {
    nb::dict total = to_python(self.cost.passes[kind]);
    total["step_ms"] = ms(self.cost.pass_ps[kind]);
    total["step_low_ms"] = ms(self.cost.pass_interval[kind].low_ps);
    total["step_high_ms"] = ms(self.cost.pass_interval[kind].high_ps);
    dict[nb::cast(step::kPassKindNames[kind])] = total;
  }
  return dict;
}

// One list per column: much smaller than one object per op.
nb::dict ops_to_python(const CostOf& self) {
  nb::list times;
  nb::list spreads;
  nb::list sources;
  nb::list families;
  for (std::size_t i = 0; i < self.cost.ops.size(); ++i) {
    const cost::Time& time = self.cost.ops[i];
    times.append(ms(time.total_ps));
    spreads.append(ms(time.spread_ps));
    sources.append(cost::kTimeSourceNames[static_cast<std::size_t>(time.source)]);
    families.append(cost::kFamilyNames[static_cast<std::size_t>(self.cost.family[i])]);
  }
  nb::dict dict;
  dict["ms"] = times;
  dict["spread_ms"] = spreads;
  dict["source"] = sources;
  dict["family"] = families;
  return dict;
}

UnpricedRows unpriced_to_python(const CostOf& self) {
  return unpriced_rows(nb::cast<const Step&>(self.step), self.cost.unpriced);
}

void check_ops(std::size_t count, const std::vector<OpId>& ops) {
  for (const OpId op : ops) {
    if (op.has_value() && op.index() < count) continue;
    throw Error({.kind = ErrorKind::kInput,
                 .place = "ops",
                 .problem = "there is no such op",
                 .expected = fmt::format("numbers below {}", count),
                 .got = op.has_value() ? fmt::format("{}", op.value()) : "None",
                 .remedy = {}});
  }
}

nb::dict total_of(const CostOf& self, const std::vector<OpId>& ops) {
  check_ops(self.cost.ops.size(), ops);
  return to_python(cost::total_of(self.cost, ops));
}

std::vector<std::string> op_works(const Step& step, const std::vector<OpId>& ops) {
  check_ops(step.tables().ops.size(), ops);
  const auto facts = cost::facts_of(step);
  std::vector<std::string> texts;
  texts.reserve(ops.size());
  for (const OpId op : ops) texts.push_back(cost::work_text(cost::work_of(step, step[op], facts)));
  return texts;
}

CostOf price(nb::handle_t<Step> step, device::Device device, std::int64_t ranks, std::int64_t ranks_per_node) {
  cost::StepCost cost =
      cost::price_step(nb::cast<const Step&>(step), device, {.ranks = ranks, .ranks_per_node = ranks_per_node});
  return {nb::borrow(step), std::move(device), std::move(cost)};
}

CostOf price_by_name(nb::handle_t<Step> step, const std::filesystem::path& device, std::int64_t ranks,
                     std::int64_t ranks_per_node) {
  return price(step, device::find_device(device.string()), ranks, ranks_per_node);
}

}  // namespace

void bind_cost(nb::module_& m) {
  nb::class_<CostOf>(m, "StepCost", "How long one step takes on one device; docs/cost_model.md has the model.")
      .def_prop_ro(
          "step_ms", [](const CostOf& self) { return ms(self.cost.step_ps); },
          "The whole step: in each pass the slower of host and device decides.")
      .def_prop_ro(
          "step_interval_ms",
          [](const CostOf& self) { return std::pair(ms(self.cost.step.low_ps), ms(self.cost.step.high_ps)); },
          "From where to where `step_ms` may be.")
      .def_prop_ro(
          "host_ms", [](const CostOf& self) { return ms(self.cost.host_ps); }, "What the host needs to issue the ops.")
      .def_prop_ro(
          "sum", [](const CostOf& self) { return to_python(self.cost.all); },
          nb::for_getter(nb::sig("def sum(self) -> dict[str, float]")),
          "The sum of op times, which planners minimise: ms, the interval low_ms to high_ms, the parts measured_ms "
          "and\n"
          "modelled_ms, and how many unpriced_ops of how many unpriced_bytes are in none of them.")
      .def_prop_ro("passes", &passes_to_python,
                   nb::for_getter(nb::sig("def passes(self) -> dict[str, dict[str, float]]")),
                   "The same for each kind of pass, and its part of `step_ms` with step_low_ms and step_high_ms.")
      .def_prop_ro("ops", &ops_to_python, nb::for_getter(nb::sig("def ops(self) -> dict[str, list[typing.Any]]")),
                   "By op, as columns of equal length: ms, spread_ms (how far off that may be), source (\"modelled\",\n"
                   "\"measured\", \"free\" or \"unpriced\") and family.")
      .def("total_of", &total_of, "ops"_a, nb::sig("def total_of(self, ops: typing.Sequence[int]) -> dict[str, float]"),
           "The sum over some ops, like `sum`.")
      .def_prop_ro("unpriced", &unpriced_to_python,
                   "(name, count, bytes) of the ops that have no price and count as nothing.")
      .def_prop_ro(
          "checkpoint_region_ms", [](const CostOf& self) { return ms(self.cost.region_ps); },
          "What each checkpointed region costs beside the ops that run again.")
      .def_prop_ro(
          "checkpoint_save_ms", [](const CostOf& self) { return ms(self.cost.region_save_ps); },
          "And for each tensor that autograd saves in it.")
      .def_prop_ro(
          "checkpoint_rng_ms", [](const CostOf& self) { return ms(self.cost.region_rng_ps); },
          "And for keeping the random state.")
      .def_prop_ro(
          "mfu", [](const CostOf& self) { return cost::model_flops_utilisation(self.cost, self.device); },
          "The part of the device's listed peak that the model's FLOPs use, as PyTorch counts them and without what\n"
          "is run again. Causal attention and Winograd's convolutions, which do with fewer, can be above 1.")
      .def_prop_ro(
          "hfu", [](const CostOf& self) { return cost::hardware_flops_utilisation(self.cost, self.device); },
          "The same of the FLOPs that kernels carry out, again or not.")
      .def_prop_ro(
          "notes", [](const CostOf& self) { return self.cost.notes; }, "What had to be assumed, in words.")
      .def("__repr__", [](const CostOf& self) {
        return fmt::format("<StepCost of {} on {}>", format_duration(self.cost.step_ps), self.device.name);
      });
  m.def(
      "price", &price, "step"_a, "device"_a, nb::kw_only(), "ranks"_a = 1, "ranks_per_node"_a = 0,
      "How long the step takes on a device: one of `devices()`, or the name or file of one. `ranks` take part in its\n"
      "collectives, `ranks_per_node` of them in each node (0: all in one), joined by the device's network.");
  m.def("price", &price_by_name, "step"_a, "device"_a, nb::kw_only(), "ranks"_a = 1, "ranks_per_node"_a = 0);
  m.def("op_works", &op_works, "step"_a, "ops"_a,
        nb::sig("def op_works(step: Step, ops: typing.Sequence[int]) -> list[str]"),
        "What ops ask of a device, as the rows of a device file's table say it (docs/device_format.md).");
}

}  // namespace tidemark::python
