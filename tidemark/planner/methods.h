#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "tidemark/planner/exact.h"
#include "tidemark/planner/highs.h"
#include "tidemark/planner/module_model.h"
#include "tidemark/planner/problem.h"
#include "tidemark/planner/space.h"
#include "tidemark/step/step.h"

namespace tidemark::planner {

// Ways to choose a plan. All but the first are here to be compared with it: what others do, and a second engine. Each
// proposes plans from the same space, and the same replay judges them; docs/methods.md says what each of them is.
enum class Method : std::uint8_t {
  kExact,            // the search of exact.h
  kGreedy,           // every block, the same part of its bytes kept, in PyTorch's greedy order
  kMilp,             // PyTorch's program over modules, then a policy for each; needs HiGHS
  kExactMilp,        // the problem of the exact search as a program; needs HiGHS
  kReferencePolicy,  // every block, the same part of its bytes kept, by PyTorch's 0/1 program for a module
  kKnapsack,         // every block, what is kept chosen by one knapsack over all, as PyTorch's compiler does
};
inline constexpr std::array<std::string_view, 6> kMethodNames = {"exact",      "greedy",           "milp",
                                                                 "exact-milp", "reference-policy", "knapsack"};
inline constexpr std::string_view name_of(Method method) { return kMethodNames[static_cast<std::size_t>(method)]; }
constexpr bool needs_highs(Method method) { return method == Method::kMilp || method == Method::kExactMilp; }

struct MethodOptions {
  Method method = Method::kExact;
  const Highs* highs = nullptr;
  HighsOptions solver = {};
  // Of kMilp: parameters and gradients are divided by the world size, whatever the step says; what the program holds
  // of the step before counts as activation (see sac::ModuleInfoOptions).
  std::int64_t world_size = 1;
  bool counts_stale = false;
  // Of kMilp: the rules for its statistics, and the milliseconds of every op that go with them; empty: the planner's.
  sac::Rules rules = sac::Rules::kTidemark;
  std::vector<double> op_ms = {};
};

// What a method's own model says of the budget it was asked for, which a replay need not agree with.
struct MethodVerdict {
  SolveEnd end = SolveEnd::kInfeasible;
  std::int64_t peak_bytes = 0;
  std::int64_t recompute_ps = 0;
  std::vector<ModuleRatio> ratios;  // of kMilp
};

// The common ground.
struct MethodInput {
  const step::Step& step;
  const Space& space;
  const SpaceOptions& wishes;
  const Problem& problem;
  const Times& times;
  std::int64_t room_bytes = 0;                             // budget without reserve
  std::function<std::int64_t(const plan::Plan&)> peak_of;  // by replay
  const MethodOptions& options;
};

struct MethodOutcome {
  std::optional<plan::Plan> plan;  // one that fits by replay
  std::int64_t bound_ps = 0;       // no plan of the space takes less; 0 for a method that proves nothing
  bool reached_limit = false;
  std::optional<MethodVerdict> own;
  SolveStatistics statistics;
};

// Any method but kExact. Throws: Error when one that needs HiGHS has none.
MethodOutcome run_method(const MethodInput& input);

// The program that a method solves, to write to a file; nothing when its budget is hopeless already. Throws: Error for
// a method that solves none.
std::optional<LinearModel> model_of(const MethodInput& input);

}  // namespace tidemark::planner
