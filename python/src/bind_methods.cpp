// Planners: PyTorch's module-level program on HiGHS, its policies per module, and the compiler's knapsack.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "bindings.h"
#include "tidemark/base/error.h"
#include "tidemark/planner/knapsack.h"
#include "tidemark/planner/module_model.h"
#include "tidemark/planner/module_policy.h"
#include "tidemark/sac/module_graph.h"
#include "tidemark/sac/module_info_file.h"
#include "words.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tidemark::python {

namespace {

using Names = std::vector<std::string>;

constexpr std::array<std::string_view, 3> kLinearEndNames = {"optimal", "infeasible", "limit"};

nb::dict solve_modules(const std::string& info, std::int64_t budget_bytes, const Names& highs, std::int64_t world_size,
                       const std::optional<Names>& units, const Names& fsdp_units, const std::string& rules,
                       std::int64_t optimizer_bytes) {
  const planner::ModuleModelOptions options{.budget_bytes = budget_bytes,
                                            .world_size = world_size,
                                            .units = units,
                                            .fsdp_units = fsdp_units,
                                            .rules = from_word<sac::Rules>(rules, sac::kRulesNames, "rules"),
                                            .optimizer_bytes = optimizer_bytes};
  const sac::ModuleGraph graph = sac::build_module_graph(sac::parse_module_info(info));
  const planner::Highs solver(highs);
  planner::ModuleChoice choice;
  {
    const nb::gil_scoped_release release;
    choice = planner::solve_module_model(graph, options, solver);
  }
  nb::dict ratios;
  for (const planner::ModuleRatio& ratio : choice.ratios) ratios[ratio.fqn.c_str()] = ratio.given_up;
  nb::dict result;
  result["termination"] = kLinearEndNames[static_cast<std::size_t>(choice.end)].data();
  result["ratios"] = ratios;
  result["recompute_ms"] = choice.recompute_ms;
  result["bound_ms"] = choice.bound_ms;
  result["peak_bytes"] = choice.peak_bytes;
  return result;
}

sac::ModuleOperators make_operators(const std::vector<double>& ms, const std::vector<std::int64_t>& bytes,
                                    const std::vector<std::uint32_t>& views, const std::vector<std::uint32_t>& random,
                                    const std::vector<std::pair<std::uint32_t, std::uint32_t>>& in_place,
                                    bool must_store_random) {
  const auto refuse = [](std::string problem, std::string expected, std::string got) {
    throw Error({.kind = ErrorKind::kInput,
                 .place = "operators",
                 .problem = std::move(problem),
                 .expected = std::move(expected),
                 .got = std::move(got),
                 .remedy = {}});
  };
  if (ms.size() != bytes.size())
    refuse("there is not one time for every operator", fmt::format("{} times", bytes.size()),
           fmt::format("{}", ms.size()));
  sac::ModuleOperators operators;
  operators.must_store_random = must_store_random;
  operators.operators.resize(ms.size());
  const auto at = [&](std::uint32_t i) -> sac::Operator& {
    if (i >= ms.size())
      refuse("there is no operator of this number", fmt::format("below {}", ms.size()), fmt::format("{}", i));
    return operators.operators[i];
  };
  for (std::size_t i = 0; i < ms.size(); ++i) {
    if (bytes[i] < 0) refuse("an operator has a negative size", "bytes from 0", fmt::format("{}", bytes[i]));
    operators.operators[i].ms = ms[i];
    operators.operators[i].bytes = bytes[i];
    operators.total_ms += ms[i];
    operators.total_bytes += bytes[i];
  }
  for (const std::uint32_t i : views) at(i).is_view_like = true;
  for (const std::uint32_t i : random) at(i).is_random = true;
  for (const auto& [op, head] : in_place) {
    at(head);
    at(op).changes = head;
  }
  return operators;
}

nb::dict module_policy(const std::vector<double>& ms, const std::vector<std::int64_t>& bytes, double part,
                       const std::vector<std::uint32_t>& views, const std::vector<std::uint32_t>& random,
                       const std::vector<std::pair<std::uint32_t, std::uint32_t>>& in_place, bool must_store_random,
                       const std::string& method) {
  enum class Way : std::uint8_t { kOptimal, kGreedy };
  constexpr std::array<std::string_view, 2> kWays = {"optimal", "greedy"};
  const sac::ModuleOperators operators = make_operators(ms, bytes, views, random, in_place, must_store_random);
  const planner::ModulePolicy policy = from_word<Way>(method, kWays, "method") == Way::kOptimal
                                           ? planner::optimal_policy(operators, part)
                                           : planner::greedy_policy(operators, part);
  nb::list saved;
  for (const std::uint8_t flag : policy.saved) saved.append(static_cast<int>(flag));
  nb::dict result;
  result["feasible"] = policy.is_feasible;
  result["saved"] = saved;
  result["bytes"] = policy.bytes;
  result["recompute_ms"] = policy.recompute_ms;
  return result;
}

}  // namespace

void bind_methods(nb::module_& m) {
  m.def(
      "solve_modules", &solve_modules, "module_info"_a, "budget_bytes"_a, "highs"_a, nb::kw_only(), "world_size"_a = 1,
      "units"_a = nb::none(), "fsdp_units"_a = Names(), "rules"_a = "reference-m", "optimizer_bytes"_a = 0,
      nb::sig("def solve_modules(module_info: str, budget_bytes: int, highs: typing.Sequence[str], *, world_size: int "
              "= 1, units: typing.Sequence[str] | None = None, fsdp_units: typing.Sequence[str] = [], rules: str = "
              "'reference-m', optimizer_bytes: int = 0) -> dict[str, typing.Any]"),
      "PyTorch's module-level program (sac_milp) on a ModuleInfo as JSON, solved to the end with HiGHS: a dict of\n"
      "termination (\"optimal\", \"infeasible\", \"limit\"), ratios by module, recompute_ms, bound_ms and peak_bytes.\n"
      "`highs` are the places to look for the solver's library (see tidemark._highs). By the rules \"reference-b\"\n"
      "parameters and `optimizer_bytes` count whole, or by world size when `fsdp_units` says that the root is "
      "sharded.");
  m.def(
      "module_policy", &module_policy, "ms"_a, "bytes"_a, "part"_a, nb::kw_only(),
      "views"_a = std::vector<std::uint32_t>(), "random"_a = std::vector<std::uint32_t>(),
      "in_place"_a = std::vector<std::pair<std::uint32_t, std::uint32_t>>(), "must_store_random"_a = false,
      "method"_a = "optimal",
      nb::sig("def module_policy(ms: typing.Sequence[float], bytes: typing.Sequence[int], part: float, *, views: "
              "typing.Sequence[int] = [], random: typing.Sequence[int] = [], in_place: "
              "typing.Sequence[tuple[int, int]] = [], must_store_random: bool = False, method: str = \"optimal\") -> "
              "dict[str, typing.Any]"),
      "Which operators of a module are saved when `part` of its bytes may be kept, by PyTorch's rules, solved exactly\n"
      "(\"optimal\") or in greedy order (\"greedy\"): a dict of feasible, saved (0 or 1 by operator), bytes and\n"
      "recompute_ms.");
  m.def(
      "knapsack",
      [](const std::vector<double>& weights, const std::vector<double>& values, double capacity) {
        return planner::solve_knapsack(weights, values, capacity).chosen;
      },
      "weights"_a, "values"_a, "capacity"_a,
      nb::sig("def knapsack(weights: typing.Sequence[float], values: typing.Sequence[float], capacity: float) -> "
              "list[int]"),
      "The items with the most value whose weight stays within the capacity, exactly.");
}

}  // namespace tidemark::python
