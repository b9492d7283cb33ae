// How long the parts of planning take on a recorded step: called by bench/methods_bench.py.
//
//   build/bench/plan_parts STEP DEVICE BUDGET_BYTES [REPEAT]
//
// Prints JSON: median seconds of the processor for the search alone (space, graph and search, from a step with its
// prices: what PyTorch's sac_milp does from its statistics), and for all of plan_step, which also replays.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "tidemark/base/error.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/catalog.h"
#include "tidemark/planner/build_problem.h"
#include "tidemark/planner/planner.h"
#include "tidemark/step/read_step.h"

namespace tidemark {
namespace {

double median_seconds(int repeat, const std::function<void()>& call) {
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) {
    const std::clock_t start = std::clock();
    call();
    seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

int run(const std::string& path, const std::string& device_name, std::int64_t budget, int repeat) {
  const step::Step step = step::read_step(path);
  const cost::StepCost cost = cost::price_step(step, device::find_device(device_name));
  const planner::Times times = planner::times_of(cost);
  planner::Solution solution;
  const double search = median_seconds(repeat, [&] {
    const planner::Space space = planner::find_space(step, times);
    const planner::ExactSolver solver(planner::build_problem(step, space, {.round_to_bytes = 512}));
    solution = solver.solve({.budget_bytes = budget});
  });
  const double all = median_seconds(
      repeat, [&] { planner::plan_step(step, cost, {.budget_bytes = budget, .against = planner::Against::kRounded}); });
  fmt::print("{{\"search_seconds\": {}, \"plan_seconds\": {}, \"is_optimal\": {}}}\n", search, all,
             solution.end == planner::SolveEnd::kOptimal);
  return 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  try {
    if (argc < 4) {
      fmt::print(stderr, "usage: plan_parts STEP DEVICE BUDGET_BYTES [REPEAT]\n");
      return 2;
    }
    return tidemark::run(argv[1], argv[2], std::atoll(argv[3]), argc > 4 ? std::atoi(argv[4]) : 5);
  } catch (const tidemark::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
