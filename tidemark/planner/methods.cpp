#include "tidemark/planner/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tidemark/base/duration.h"
#include "tidemark/base/error.h"
#include "tidemark/planner/block_items.h"
#include "tidemark/planner/exact_milp.h"
#include "tidemark/planner/knapsack.h"

namespace tidemark::planner {

namespace {

constexpr int kParts = 4096;  // how finely the part of bytes to keep is told
constexpr int kTries = 8;     // with smaller and smaller budgets of a model that says less than a replay

// With the largest part for which the plan fits, if the peak rises with it; a plan that fits in any case.
MethodOutcome largest_part(const MethodInput& input, const std::function<std::optional<plan::Plan>(double)>& plan_of) {
  MethodOutcome outcome;
  const auto fits = [&](int part) {
    std::optional<plan::Plan> plan = plan_of(static_cast<double>(part) / kParts);
    if (!plan || input.peak_of(*plan) > input.room_bytes) return false;
    outcome.plan = std::move(plan);
    return true;
  };
  if (!fits(0) || fits(kParts)) return outcome;
  int low = 0;
  int high = kParts;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return outcome;
}

std::vector<double> milliseconds(const Times& times) {
  std::vector<double> op_ms;
  op_ms.reserve(times.op_ps.size());
  for (const std::int64_t ps : times.op_ps) op_ms.push_back(static_cast<double>(ps) / static_cast<double>(kPsPerMs));
  return op_ms;
}

// What the program over modules thinks that ops take.
std::vector<double> program_ms(const MethodInput& input) {
  return input.options.op_ms.empty() ? milliseconds(input.times) : input.options.op_ms;
}

std::vector<UnitItems> items_of_blocks(const MethodInput& input) {
  const sac::StepIndex index(input.step);
  const std::vector<double> op_ms = milliseconds(input.times);
  std::vector<UnitItems> units;
  for (const std::uint32_t c : block_candidates(input.step, input.space, input.wishes))
    units.push_back(unit_items(index, input.space, c, op_ms));
  return units;
}

// Every block keeps the same part of its bytes.
MethodOutcome run_by_part(const MethodInput& input, bool is_greedy) {
  const std::vector<UnitItems> units = items_of_blocks(input);
  return largest_part(input, [&](double part) {
    std::optional<plan::Plan> plan = plan::Plan();
    for (const UnitItems& unit : units) {
      const double budget = part * static_cast<double>(unit.total_bytes);
      const auto kept = is_greedy
                            ? keep_greedily(unit.items, unit.fixed_bytes, budget)
                            : keep_best(unit.items, unit.fixed_bytes, static_cast<std::int64_t>(std::ceil(budget)));
      // What must be saved may be more than the part: then it is all that is.
      plan->units.push_back(
          unit_with(input.space, unit, kept ? *kept : std::vector<std::uint8_t>(unit.items.size(), 0)));
    }
    return plan;
  });
}

// One knapsack over what all blocks may keep.
MethodOutcome run_knapsack(const MethodInput& input) {
  const std::vector<UnitItems> units = items_of_blocks(input);
  std::vector<KnapsackItem> items;
  std::int64_t total_bytes = 0;
  for (const UnitItems& unit : units)
    for (const PolicyItem& item : unit.items) {
      items.push_back({item.bytes, item.time_ps});
      total_bytes += item.bytes;
    }
  return largest_part(input, [&](double part) {
    const auto capacity = static_cast<std::int64_t>(std::floor(part * static_cast<double>(total_bytes)));
    const KnapsackResult result = solve_knapsack(items, capacity, {.max_entries = 1'000'000});
    std::vector<std::uint8_t> is_chosen(items.size(), 0);
    for (const std::uint32_t i : result.chosen) is_chosen[i] = 1;
    std::optional<plan::Plan> plan = plan::Plan();
    auto from = is_chosen.begin();
    for (const UnitItems& unit : units) {
      const auto to = from + static_cast<std::ptrdiff_t>(unit.items.size());
      plan->units.push_back(unit_with(input.space, unit, {from, to}));
      from = to;
    }
    return plan;
  });
}

// The name that PyTorch's statistics have for a module: with the class of the root first.
std::string qualified_name(const step::Step& step, step::ModuleId module) {
  step::ModuleId root = module;
  while (step[root].parent.has_value()) root = step[root].parent;
  const std::string fqn = step.fqn(module);
  return std::string(step.text(step[root].type)) + (fqn.empty() ? "" : "." + fqn);
}

struct ModuleProblem {
  sac::ModuleGraph graph;
  ModuleModelOptions options;
};

ModuleProblem module_problem(const MethodInput& input) {
  ModuleProblem problem;
  problem.graph = sac::build_module_graph(
      sac::module_info(input.step, program_ms(input),
                       {.rules = input.options.rules, .device = {}, .counts_stale = input.options.counts_stale}));
  std::vector<std::string> names;
  for (const sac::ModuleNode& node : problem.graph.nodes) names.push_back(node.stats.fqn);
  std::sort(names.begin(), names.end());
  problem.options.budget_bytes = input.room_bytes;
  problem.options.world_size = input.options.world_size;
  problem.options.units.emplace();
  for (const Candidate& c : input.space.candidates) {
    std::string name = qualified_name(input.step, input.step[c.call].module);
    if (std::binary_search(names.begin(), names.end(), name)) problem.options.units->push_back(std::move(name));
  }
  return problem;
}

SolveEnd end_of(LinearEnd end) {
  if (end == LinearEnd::kOptimal) return SolveEnd::kOptimal;
  return end == LinearEnd::kInfeasible ? SolveEnd::kInfeasible : SolveEnd::kLimit;
}

// Every call of a chosen module keeps what is left of its bytes, by the 0/1 program.
plan::Plan plan_of_ratios(const MethodInput& input, const sac::StepIndex& index,
                          const std::vector<ModuleRatio>& ratios) {
  const std::vector<double> op_ms = program_ms(input);
  plan::Plan plan;
  for (std::uint32_t c = 0; c < input.space.candidates.size(); ++c) {
    const std::string name = qualified_name(input.step, input.step[input.space.candidates[c].call].module);
    const auto ratio = std::find_if(ratios.begin(), ratios.end(), [&](const ModuleRatio& r) { return r.fqn == name; });
    if (ratio == ratios.end()) continue;
    const UnitItems unit = unit_items(index, input.space, c, op_ms);
    const auto budget =
        static_cast<std::int64_t>(std::ceil((1 - ratio->given_up) * static_cast<double>(unit.total_bytes)));
    const auto kept = keep_best(unit.items, unit.fixed_bytes, budget);
    plan.units.push_back(unit_with(input.space, unit, kept ? *kept : std::vector<std::uint8_t>(unit.items.size(), 0)));
  }
  return plan;
}

MethodOutcome run_milp(const MethodInput& input) {
  ModuleProblem problem = module_problem(input);
  const sac::StepIndex index(input.step);
  MethodOutcome outcome;
  for (int i = 0; i < kTries && problem.options.budget_bytes >= 0; ++i) {
    const ModuleChoice choice =
        solve_module_model(problem.graph, problem.options, *input.options.highs, input.options.solver);
    ++outcome.statistics.passes;
    if (!outcome.own)
      outcome.own = MethodVerdict{.end = end_of(choice.end),
                                  .peak_bytes = choice.peak_bytes,
                                  .recompute_ps = std::llround(choice.recompute_ms * static_cast<double>(kPsPerMs)),
                                  .ratios = choice.ratios};
    outcome.reached_limit = outcome.reached_limit || choice.end == LinearEnd::kLimit;
    if (choice.end == LinearEnd::kInfeasible) break;
    plan::Plan plan = plan_of_ratios(input, index, choice.ratios);
    const std::int64_t peak = input.peak_of(plan);
    if (peak <= input.room_bytes) {
      outcome.plan = std::move(plan);
      break;
    }
    // By what the replay has more than the budget, or than the model that thinks it needs less.
    problem.options.budget_bytes =
        std::min(problem.options.budget_bytes, choice.peak_bytes) - (peak - input.room_bytes);
  }
  return outcome;
}

MethodOutcome run_exact_milp(const MethodInput& input) {
  MethodOutcome outcome;
  std::int64_t budget = input.room_bytes;
  for (int i = 0; i < kTries; ++i) {
    const Solution solution = solve_exact_milp(input.problem, budget, *input.options.highs, input.options.solver);
    ++outcome.statistics.passes;
    outcome.statistics.work += solution.statistics.work;
    if (!outcome.own) {
      outcome.own = MethodVerdict{
          .end = solution.end, .peak_bytes = solution.peak_bytes, .recompute_ps = solution.time_ps, .ratios = {}};
      outcome.bound_ps = solution.bound_ps;
    }
    outcome.reached_limit = outcome.reached_limit || solution.end == SolveEnd::kLimit;
    if (solution.paths.empty()) break;
    plan::Plan plan = plan_of(input.space, input.problem, solution.paths);
    const std::int64_t peak = input.peak_of(plan);
    if (peak <= input.room_bytes) {
      outcome.plan = std::move(plan);
      break;
    }
    budget -= peak - input.room_bytes;
  }
  return outcome;
}

[[noreturn]] void refuse_method(Method method, std::string problem, std::string remedy) {
  throw Error({.kind = ErrorKind::kInput,
               .place = fmt::format("method {}", name_of(method)),
               .problem = std::move(problem),
               .expected = {},
               .got = {},
               .remedy = std::move(remedy)});
}

}  // namespace

MethodOutcome run_method(const MethodInput& input) {
  const Method method = input.options.method;
  if (!input.options.op_ms.empty() && input.options.op_ms.size() != input.times.op_ps.size())
    refuse_method(method, "the times that it is given are not those of the step's ops", "one for each op, or none");
  if (needs_highs(method) && input.options.highs == nullptr)
    refuse_method(method, "it needs the solver HiGHS", "load one (planner::Highs), or take another method");
  switch (method) {
    case Method::kGreedy:
      return run_by_part(input, true);
    case Method::kReferencePolicy:
      return run_by_part(input, false);
    case Method::kKnapsack:
      return run_knapsack(input);
    case Method::kMilp:
      return run_milp(input);
    case Method::kExactMilp:
      return run_exact_milp(input);
    case Method::kExact:
      break;
  }
  refuse_method(method, "it is the planner's own", {});
}

std::optional<LinearModel> model_of(const MethodInput& input) {
  if (input.options.method == Method::kExactMilp) {
    if (input.problem.ground_bytes > input.room_bytes) return std::nullopt;
    return exact_milp(input.problem, input.room_bytes).linear;
  }
  if (input.options.method != Method::kMilp)
    refuse_method(input.options.method, "it solves no linear program", "milp and exact-milp do");
  const ModuleProblem problem = module_problem(input);
  return module_model(problem.graph, problem.options);
}

}  // namespace tidemark::planner
