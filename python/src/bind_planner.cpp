// The cheapest plan under a budget.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "casters.h"
#include "plan_of.h"
#include "tidemark/base/duration.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/device.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/planner/facts.h"
#include "tidemark/planner/planner.h"
#include "tidemark/verify/verify_plan.h"

namespace nb = nanobind;
using namespace nb::literals;
using tidemark::step::Step;

namespace tidemark::python {

namespace {

// A result together with what was asked for.
struct ResultOf {
  planner::PlanResult result;
  plan::PlanFacts facts;
  nb::object plan;  // a PlanOf, or none
  std::int64_t step_ps = 0;
};

double ms(std::int64_t ps) { return static_cast<double>(ps) / static_cast<double>(kPsPerMs); }

template <class Names>
std::size_t word_in(const Names& names, std::string_view word, const char* place) {
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == word) return i;
    all += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", names[i]);
  }
  throw Error({.kind = ErrorKind::kInput,
               .place = place,
               .problem = "this is none of the words",
               .expected = all,
               .got = fmt::format("\"{}\"", word),
               .remedy = {}});
}

constexpr std::array<std::string_view, 3> kRngNames = {"when_needed", "always", "never"};

// The plan is checked by code that does not trust the planner before anyone gets it.
void check(const Step& step, const plan::PortablePlan& words, const plan::Plan& plan,
           const memory::WorkspaceTable* workspace) {
  const verify::Verdict verdict =
      verify::verify_plan(step, {.plan = plan, .facts = words.facts, .fingerprint = words.fingerprint}, workspace);
  if (verdict.holds && verdict.wrong_figures.empty()) return;
  std::string problem = "the plan does not hold";
  if (!verdict.violations.empty()) problem += ": " + verdict.violations.front();
  if (!verdict.first_over.empty()) problem += ": " + verdict.first_over;
  if (!verdict.wrong_figures.empty()) problem += ": " + verdict.wrong_figures.front();
  throw Error({.kind = ErrorKind::kInternal,
               .place = "verify",
               .problem = std::move(problem),
               .expected = "a plan that does",
               .got = {},
               .remedy = "please report this with the step"});
}

ResultOf plan_step(nb::handle_t<Step> step, std::int64_t budget_bytes, const device::Device& device,
                   std::int64_t reserve_bytes, std::string_view against, const memory::WorkspaceTable* workspace,
                   bool early_stop, std::string_view rng, std::vector<std::string> units,
                   std::vector<std::string> not_units, std::vector<std::string> always_save,
                   std::vector<std::string> never_save, std::int64_t max_work, std::int64_t ranks) {
  const Step& of = nb::cast<const Step&>(step);
  const planner::PlannerOptions options{
      .budget_bytes = budget_bytes,
      .reserve_bytes = reserve_bytes,
      .against = static_cast<planner::Against>(word_in(planner::kAgainstNames, against, "against")),
      .workspace = workspace,
      .space = {.early_stop = early_stop,
                .rng = static_cast<planner::RngRule>(word_in(kRngNames, rng, "rng")),
                .units = std::move(units),
                .not_units = std::move(not_units),
                .always_save = std::move(always_save),
                .never_save = std::move(never_save)},
      .max_work = max_work};
  const cost::StepCost cost = cost::price_step(of, device, {.ranks = ranks});
  ResultOf made{planner::plan_step(of, cost, options), {}, nb::none(), cost.all.time_ps};
  made.facts = planner::facts_of(of, made.result, device.name, options);
  if (made.result.termination != planner::Termination::kInfeasible &&
      made.result.termination != planner::Termination::kLimit) {
    plan::PortablePlan words = plan::describe(of, made.result.plan, made.facts);
    check(of, words, made.result.plan, workspace);
    made.plan = nb::cast(PlanOf{made.result.plan, std::move(words), nb::none()});
  }
  return made;
}

nb::list policies_to_python(const ResultOf& self) {
  nb::list list;
  for (const planner::PolicyFigures& figures : self.result.policies) {
    nb::dict dict;
    dict["policy"] = plan::policy_text(figures.policy);
    dict["peak_bytes"] = figures.peak_bytes;
    dict["recompute_ms"] = ms(figures.recompute_ps);
    dict["fits"] = figures.fits;
    list.append(dict);
  }
  return list;
}

nb::dict excluded_to_python(const ResultOf& self) {
  nb::dict dict;
  for (std::size_t i = 1; i < planner::kExclusionNames.size(); ++i)
    dict[nb::cast(planner::kExclusionNames[i])] = self.result.excluded[i];
  return dict;
}

nb::dict statistics_to_python(const ResultOf& self) {
  nb::dict dict;
  dict["work"] = self.result.statistics.work;
  dict["passes"] = self.result.statistics.passes;
  dict["longest_list"] = self.result.statistics.longest_list;
  return dict;
}

}  // namespace

void bind_planner(nb::module_& m) {
  nb::class_<ResultOf>(m, "PlanResult", "What a search for a plan found.")
      .def_prop_ro(
          "termination", [](const ResultOf& self) { return planner::name_of(self.result.termination); },
          "\"fits\" (nothing needs to be recomputed), \"optimal\", \"feasible\" (`bound_ms` says how much cheaper\n"
          "another plan could be), \"infeasible\", or \"limit\" (no plan was found in the work allowed).")
      .def_prop_ro(
          "plan", [](const ResultOf& self) { return self.plan; },
          nb::for_getter(nb::sig("def plan(self) -> Plan | None")), "None when \"infeasible\" or \"limit\".")
      .def_prop_ro(
          "peak_bytes", [](const ResultOf& self) { return self.result.peak_bytes; },
          "Of the plan; when there is none, of the plan with the smallest peak that is known.")
      .def_prop_ro(
          "recompute_ms", [](const ResultOf& self) { return ms(self.result.recompute_ps); },
          "What the plan costs beyond plain training.")
      .def_prop_ro(
          "bound_ms", [](const ResultOf& self) { return ms(self.result.bound_ps); }, "No plan that fits takes less.")
      .def_prop_ro(
          "step_ms", [](const ResultOf& self) { return ms(self.step_ps); }, "The sum of the step's op times.")
      .def_prop_ro("budget_bytes", [](const ResultOf& self) { return self.facts.budget_bytes; })
      .def_prop_ro("reserve_bytes", [](const ResultOf& self) { return self.facts.reserve_bytes; })
      .def_prop_ro("start_bytes", [](const ResultOf& self) { return self.facts.start_bytes; })
      .def_prop_ro(
          "unplanned_peak_bytes", [](const ResultOf& self) { return self.result.unplanned_peak_bytes; },
          "Of plain training.")
      .def_prop_ro(
          "smallest_peak_bytes", [](const ResultOf& self) { return self.result.smallest_peak_bytes; }, "Of any plan.")
      .def_prop_ro(
          "is_smallest_proved", [](const ResultOf& self) { return self.result.is_smallest_proved; },
          "False: no plan with a smaller peak is known, but there may be one.")
      .def_prop_ro(
          "policies", &policies_to_python, nb::for_getter(nb::sig("def policies(self) -> list[dict[str, typing.Any]]")),
          "What the plans that people write by hand come to, as dicts of policy, peak_bytes, recompute_ms and\n"
          "fits.")
      .def_prop_ro("excluded", &excluded_to_python, nb::for_getter(nb::sig("def excluded(self) -> dict[str, int]")),
                   "How many module calls cannot be units, by reason.")
      .def_prop_ro("candidate_count", [](const ResultOf& self) { return self.result.candidate_count; })
      .def_prop_ro("statistics", &statistics_to_python,
                   nb::for_getter(nb::sig("def statistics(self) -> dict[str, int]")), "About the search.")
      .def_prop_ro("device", [](const ResultOf& self) { return self.facts.device; })
      .def_prop_ro("against", [](const ResultOf& self) { return self.facts.against; })
      .def("__repr__", [](const ResultOf& self) {
        return fmt::format("<PlanResult: {}, peak of {} bytes>", planner::name_of(self.result.termination),
                           self.result.peak_bytes);
      });
  m.def("plan_step", &plan_step, "step"_a, "budget_bytes"_a, "device"_a, nb::kw_only(), "reserve_bytes"_a, "against"_a,
        "workspace"_a.none(), "early_stop"_a, "rng"_a, "units"_a, "not_units"_a, "always_save"_a, "never_save"_a,
        "max_work"_a, "ranks"_a, "What `tidemark.plan` calls.");
}

}  // namespace tidemark::python
