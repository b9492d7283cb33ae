// What a frontier costs against one plan: 64 budgets from one preparation, in processor time.
//
//   frontier_bench            the figures
//   frontier_bench --check    exit code 1 when a frontier takes more than 64 plans

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "tidemark/device/catalog.h"
#include "tidemark/planner/frontier.h"
#include "tidemark/zoo/record.h"

namespace {

using namespace tidemark;

constexpr double kPromised = 64;

double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Model {
  const char* name;
  const char* device;
  std::int64_t batch;
  std::int64_t sequence;
};

// One plan is the median of those for five budgets, each with a preparation of its own.
double ratio_of(const Model& model) {
  zoo::StepOptions options;
  options.batch = model.batch;
  options.sequence = model.sequence;
  options.target = nn::Target::kCuda;
  zoo::set_precision(options, "bf16");
  const step::Step step = zoo::record(zoo::find_model(model.name)->config, options);
  const cost::StepCost cost = cost::price_step(step, device::find_device(model.device));
  planner::PlannerOptions wishes;
  wishes.against = planner::Against::kRounded;

  double start = seconds();
  const planner::PreparedStep prepared(step, cost, wishes);
  const planner::Frontier frontier = planner::find_frontier(prepared);
  const double all = seconds() - start;

  const std::int64_t least = frontier.smallest_peak_bytes;
  const std::int64_t range = frontier.unplanned_peak_bytes - least;
  std::vector<double> times;
  for (const std::int64_t percent : {2, 25, 50, 75, 98}) {
    wishes.budget_bytes = least + range / 100 * percent;
    start = seconds();
    planner::plan_step(step, cost, wishes);
    times.push_back(seconds() - start);
  }
  std::sort(times.begin(), times.end());
  const auto proved = std::count_if(frontier.points.begin(), frontier.points.end(),
                                    [](const planner::FrontierPoint& point) { return point.is_proved(); });
  const double ratio = all / times[2];
  fmt::print(
      "{:<14} {} of {} budgets proved, {} solved; {:.3f} s, one plan {:.3f} s ({:.3f} to {:.3f}): {:.1f} plans\n",
      model.name, proved, frontier.points.size(), frontier.solved, all, times[2], times.front(), times.back(), ratio);
  return ratio;
}

}  // namespace

int main(int argc, char** argv) {
  double worst = 0;
  for (const Model& model : {Model{"gpt2", "t4", 8, 1024}, Model{"bert-base", "t4", 16, 512},
                             Model{"resnet50", "t4", 32, 0}, Model{"llama3-8b", "h100-sxm", 1, 4096}})
    worst = std::max(worst, ratio_of(model));
  fmt::print("at most {:.1f} plans (promised {:.0f})\n", worst, kPromised);
  return argc > 1 && std::strcmp(argv[1], "--check") == 0 && worst > kPromised ? 1 : 0;
}
