// The cheapest plan under a budget, why it is so, and its files.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "bindings.h"
#include "casters.h"
#include "plan_of.h"
#include "search_options.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/device.h"
#include "tidemark/planner/facts.h"
#include "tidemark/planner/highs.h"
#include "tidemark/planner/planner.h"
#include "tidemark/report/explain_report.h"
#include "tidemark/report/plan_files.h"
#include "tidemark/report/plan_report.h"
#include "totals.h"
#include "words.h"

namespace nb = nanobind;
using namespace nb::literals;
using tidemark::step::Step;

namespace tidemark::python {

namespace {

using report::ms;

// A result together with what was asked for, all of which it keeps alive.
struct ResultOf {
  nb::object step;
  nb::object workspace;
  device::Device device;
  cost::StepCost cost;
  planner::PlannerOptions options;
  planner::PlanResult result;
  plan::PlanFacts facts;
  nb::object plan;  // a PlanOf, or none
};

struct ExplanationOf {
  std::string text;
  nb::object data;
};

ResultOf plan_step(nb::handle_t<Step> step, std::int64_t budget_bytes, const device::Device& device,
                   const SearchOptions& wishes, std::int64_t max_work, std::string_view method,
                   const std::vector<std::string>& highs) {
  const Step& of = nb::cast<const Step&>(step);
  ResultOf made{.step = nb::borrow(step),
                .workspace = wishes.workspace,
                .device = device,
                .cost = cost::price_step(of, device, {.ranks = wishes.ranks, .ranks_per_node = wishes.ranks_per_node}),
                .options = wishes.options(device),
                .result = {},
                .facts = {},
                .plan = nb::none()};
  made.options.budget_bytes = budget_bytes;
  made.options.max_work = max_work;
  made.options.method.method = from_word<planner::Method>(method, planner::kMethodNames, "method");
  std::optional<planner::Highs> solver;
  if (planner::needs_highs(made.options.method.method)) solver.emplace(highs);
  made.options.method.highs = solver ? &*solver : nullptr;
  made.result = planner::plan_step(of, made.cost, made.options);
  made.options.method.highs = nullptr;
  made.facts = planner::facts_of(of, made.result, device.name, made.options);
  if (planner::has_plan(made.result.termination))
    made.plan = nb::cast(
        PlanOf{made.result.plan, report::checked_plan(of, made.result, device.name, made.options), nb::none()});
  return made;
}

// The step stays where it is: the report lives no longer than the call.
report::PlanReport report_of(const ResultOf& self, const std::string& name) {
  const std::shared_ptr<const Step> step(std::shared_ptr<const Step>(), &nb::cast<const Step&>(self.step));
  return report::make_report(name, step, self.device, self.cost, self.options, self.result);
}

using Patterns = std::variant<std::string, std::vector<std::string>>;

ExplanationOf explain(const ResultOf& self, const Patterns& patterns, const std::string& name) {
  const auto* one = std::get_if<std::string>(&patterns);
  const std::vector<std::string> why =
      one != nullptr ? std::vector<std::string>{*one} : std::get<std::vector<std::string>>(patterns);
  report::PlanReport report = report_of(self, name);
  report.is_short = true;
  const report::ExplainReport explained = report::explain_plan(report, self.options, why);
  return {report::plan_text(report, {}) + report::explain_text(report, explained.explanation, {}) +
              report::why_text(report, explained.answers, {}),
          nb::module_::import_("json").attr("loads")(report::explain_json_text(report, explained))};
}

report::PlanFiles save(const ResultOf& self, const std::filesystem::path& path, bool has_certificate) {
  return report::write_plan_files(
      {nb::cast<const Step&>(self.step), self.cost, self.options, self.result, self.device.name},
      {.path = path.string(), .has_certificate = has_certificate});
}

nb::object word_or_none(const std::string& word) { return word.empty() ? nb::none() : nb::cast(word); }

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

nb::object own_to_python(const ResultOf& self) {
  if (!self.result.own) return nb::none();
  constexpr std::array<std::string_view, 3> kEnds = {"optimal", "infeasible", "limit"};
  const planner::MethodVerdict& own = *self.result.own;
  nb::dict ratios;
  for (const planner::ModuleRatio& ratio : own.ratios) ratios[ratio.fqn.c_str()] = ratio.given_up;
  nb::dict dict;
  dict["termination"] = kEnds[static_cast<std::size_t>(own.end)];
  dict["peak_bytes"] = own.peak_bytes;
  dict["recompute_ms"] = ms(own.recompute_ps);
  dict["ratios"] = ratios;
  return dict;
}

void bind_result(nb::module_& m) {
  nb::class_<ResultOf>(m, "PlanResult", "What a search for a plan found.")
      .def_prop_ro(
          "termination", [](const ResultOf& self) { return planner::name_of(self.result.termination); },
          "\"fits\" (nothing needs to be recomputed), \"optimal\", \"feasible\" (`bound_ms` says how much cheaper\n"
          "another plan could be), \"infeasible\", \"limit\" (no plan was found in the work allowed), or "
          "\"not_found\"\n"
          "(another method than \"exact\" found none, and there may be one).")
      .def_prop_ro(
          "plan", [](const ResultOf& self) { return self.plan; },
          nb::for_getter(nb::sig("def plan(self) -> Plan | None")),
          "None when \"infeasible\", \"limit\" or \"not_found\".")
      .def_prop_ro(
          "peak_bytes", [](const ResultOf& self) { return self.result.peak_bytes; },
          "Of the plan; when there is none, of the plan with the smallest peak that is known.")
      .def_prop_ro(
          "recompute_ms", [](const ResultOf& self) { return ms(self.result.recompute_ps); },
          "What the plan costs beyond plain training.")
      .def_prop_ro(
          "recompute", [](const ResultOf& self) { return to_python(self.result.recompute); },
          nb::for_getter(nb::sig("def recompute(self) -> dict[str, float]")),
          "The same as `StepCost.sum` has it: with its interval, and the ops without a price that run again.")
      .def_prop_ro(
          "step_ops", [](const ResultOf& self) { return to_python(self.cost.all); },
          nb::for_getter(nb::sig("def step_ops(self) -> dict[str, float]")), "And of the step's ops.")
      .def_prop_ro(
          "unpriced",
          [](const ResultOf& self) { return unpriced_rows(nb::cast<const Step&>(self.step), self.cost.unpriced); },
          "(name, count, bytes) of the step's ops that have no price and count as nothing.")
      .def_prop_ro(
          "notes", [](const ResultOf& self) { return self.cost.notes; }, "What the times assume, in words.")
      .def_prop_ro(
          "bound_ms", [](const ResultOf& self) { return ms(self.result.bound_ps); }, "No plan that fits takes less.")
      .def_prop_ro(
          "step_ms", [](const ResultOf& self) { return ms(self.cost.all.time_ps); }, "The sum of the step's op times.")
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
          "policies", [](const ResultOf& self) { return policies_to_python(self.result.policies); },
          nb::for_getter(nb::sig("def policies(self) -> list[dict[str, typing.Any]]")),
          "What the plans that people write by hand come to, as dicts of policy, peak_bytes, recompute_ms,\n"
          "recompute_low_ms, recompute_high_ms and fits.")
      .def_prop_ro("excluded", &excluded_to_python, nb::for_getter(nb::sig("def excluded(self) -> dict[str, int]")),
                   "How many module calls cannot be units, by reason.")
      .def_prop_ro("candidate_count", [](const ResultOf& self) { return self.result.candidate_count; })
      .def_prop_ro("statistics", &statistics_to_python,
                   nb::for_getter(nb::sig("def statistics(self) -> dict[str, int]")), "About the search.")
      .def_prop_ro("device", [](const ResultOf& self) { return self.facts.device; })
      .def_prop_ro("against", [](const ResultOf& self) { return self.facts.against; })
      .def_prop_ro("method", [](const ResultOf& self) { return planner::name_of(self.options.method.method); })
      .def_prop_ro(
          "own_model", &own_to_python, nb::for_getter(nb::sig("def own_model(self) -> dict[str, typing.Any] | None")),
          "What the model of \"milp\" or \"exact-milp\" says itself: termination, peak_bytes, recompute_ms and\n"
          "ratios, by module.")
      .def("explain", &explain, nb::kw_only(), "why"_a = Patterns(std::vector<std::string>()), "name"_a = "step",
           nb::sig("def explain(self, *, why: str | typing.Sequence[str] = [], name: str = 'step') -> Explanation"),
           "Why the plan is as it is: where memory is highest, what a GiB is worth, what is kept and recomputed.\n"
           "`why` are questions: patterns over modules (\"layers.*.mlp\") or ops (\"layers.*.mlp::mm\"). "
           "docs/explain.md\n"
           "has the words. Searches at two more budgets.")
      .def("save", &save, "path"_a, nb::kw_only(), "certificate"_a = true,
           nb::sig("def save(self, path: str | os.PathLike[str], *, certificate: bool = True) -> PlanFiles"),
           "Writes the plan file, if there is a plan, and beside it the certificate that `tidemark verify` checks:\n"
           "that no plan is cheaper, or that none fits.")
      .def("__repr__", [](const ResultOf& self) {
        return fmt::format("<PlanResult: {}, peak of {} bytes>", planner::name_of(self.result.termination),
                           self.result.peak_bytes);
      });
}

}  // namespace

nb::list policies_to_python(const std::vector<planner::PolicyFigures>& policies) {
  nb::list list;
  for (const planner::PolicyFigures& figures : policies) {
    nb::dict dict;
    dict["policy"] = plan::policy_text(figures.policy);
    dict["peak_bytes"] = figures.peak_bytes;
    dict["recompute_ms"] = ms(figures.recompute_ps);
    dict["recompute_low_ms"] = ms(figures.interval.low_ps);
    dict["recompute_high_ms"] = ms(figures.interval.high_ps);
    dict["fits"] = figures.fits;
    list.append(dict);
  }
  return list;
}

void bind_planner(nb::module_& m) {
  nb::class_<ExplanationOf>(m, "Explanation", "Why a plan is as it is.")
      .def_ro("text", &ExplanationOf::text, "As `tidemark plan --explain` prints it.")
      .def_prop_ro(
          "data", [](const ExplanationOf& self) { return self.data; },
          nb::for_getter(nb::sig("def data(self) -> dict[str, typing.Any]")),
          "The same as figures, in the keys of docs/explain.md.")
      .def("__str__", [](const ExplanationOf& self) { return self.text; });
  nb::class_<report::PlanFiles>(m, "PlanFiles", "What was written.")
      .def_prop_ro(
          "plan", [](const report::PlanFiles& self) { return word_or_none(self.plan); },
          nb::for_getter(nb::sig("def plan(self) -> str | None")), "The plan file's path.")
      .def_prop_ro(
          "certificate", [](const report::PlanFiles& self) { return word_or_none(self.certificate); },
          nb::for_getter(nb::sig("def certificate(self) -> str | None")), "The certificate's path.")
      .def_prop_ro(
          "no_certificate", [](const report::PlanFiles& self) { return word_or_none(self.no_certificate); },
          nb::for_getter(nb::sig("def no_certificate(self) -> str | None")), "Why there is none, if it was asked for.")
      .def_prop_ro(
          "removed", [](const report::PlanFiles& self) { return word_or_none(self.removed); },
          nb::for_getter(nb::sig("def removed(self) -> str | None")),
          "A plan file of before, which is no answer to a question that has none.");
  bind_result(m);
  m.def("plan_step", &plan_step, "step"_a, "budget_bytes"_a, "device"_a, "options"_a, nb::kw_only(), "max_work"_a,
        "method"_a, "highs"_a, "What `tidemark.plan` calls.");
}

}  // namespace tidemark::python
