// How long exact plans take: Llama-3.1-405B at five budgets, the same with times that differ from layer to layer, a
// thousand equal layers, growth with the number of layers; and with --zoo, how many of all built-in models at five
// budgets end with a proof. `planner_bench --check` fails when a promise of the documentation does not hold.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/cost/step_cost.h"
#include "tidemark/device/catalog.h"
#include "tidemark/planner/planner.h"
#include "tidemark/zoo/record.h"

namespace tidemark {
namespace {

// Where a budget lies between the smallest reachable peak (0) and the unplanned one (100).
constexpr std::int64_t kPlaces[] = {2, 25, 50, 75, 98};

void print(const std::string& line) {
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

struct Planned {
  planner::PlanResult result;
  double seconds = 0;  // of processor time: others on the machine do not show
};

Planned plan_once(const step::Step& step, const cost::StepCost& cost, std::int64_t budget_bytes) {
  const std::clock_t begin = std::clock();
  Planned planned;
  planned.result = planner::plan_step(step, cost, {.budget_bytes = budget_bytes});
  planned.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return planned;
}

double gap_percent(const planner::PlanResult& result) {
  if (result.recompute_ps == 0) return 0;
  return 100.0 * static_cast<double>(result.recompute_ps - result.bound_ps) / static_cast<double>(result.recompute_ps);
}

struct Tally {
  std::vector<double> seconds;
  int proved = 0;
  int all = 0;

  double worst() const { return *std::max_element(seconds.begin(), seconds.end()); }
  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

void plan_at_places(const std::string& name, const step::Step& step, const cost::StepCost& cost,
                    std::span<const std::int64_t> places, Tally& tally, bool only_gaps) {
  const planner::PlanResult free = planner::plan_step(step, cost, {.budget_bytes = std::int64_t{1} << 60});
  for (const std::int64_t place : places) {
    const std::int64_t range = free.unplanned_peak_bytes - free.smallest_peak_bytes;
    const std::int64_t budget = free.smallest_peak_bytes + range / 100 * place;
    const Planned planned = plan_once(step, cost, budget);
    const planner::PlanResult& r = planned.result;
    const bool is_proved =
        r.termination == planner::Termination::kOptimal || r.termination == planner::Termination::kFits;
    ++tally.all;
    tally.proved += is_proved ? 1 : 0;
    tally.seconds.push_back(planned.seconds);
    if (only_gaps && is_proved) continue;
    print(fmt::format("{:<28} {:>3} %  {:>8.3f} s  {:<9} gap {:.4f} %  {:>10} entries  {:>3} passes  longest {}\n",
                      name, place, planned.seconds, planner::name_of(r.termination), gap_percent(r), r.statistics.work,
                      r.statistics.passes, r.statistics.longest_list));
  }
}

void run_model(std::string_view name, std::int64_t batch, std::string_view precision, std::int64_t sequence,
               std::string_view device, std::span<const std::int64_t> places) {
  zoo::StepOptions options{.batch = batch, .sequence = sequence};
  zoo::set_precision(options, precision);
  if (device != "cpu") options.target = nn::Target::kCuda;
  const step::Step step = zoo::record(zoo::find_model(name)->config, options);
  const cost::StepCost cost = cost::price_step(step, device::find_device(std::string(device)));
  Tally tally;
  plan_at_places(fmt::format("{} b{} {}", name, batch, precision), step, cost, places, tally, false);
}

void run_zoo(std::string_view precision) {
  Tally tally;
  for (const zoo::Entry& entry : zoo::models()) {
    zoo::StepOptions options{.batch = 2, .target = nn::Target::kCuda};
    zoo::set_precision(options, precision);
    const step::Step step = zoo::record(entry.config, options);
    const cost::StepCost cost = cost::price_step(step, device::find_device("h100-sxm"));
    plan_at_places(std::string(entry.name), step, cost, kPlaces, tally, true);
  }
  print(fmt::format("{} of {} proved ({:.1f} %), worst {:.3f} s, median {:.3f} s\n", tally.proved, tally.all,
                    100.0 * tally.proved / tally.all, tally.worst(), tally.median()));
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  using namespace tidemark;
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "--zoo") {
    run_zoo(words.size() > 1 ? words[1] : "fp32");
    return 0;
  }
  if (words.size() > 1 && words[0] == "--model") {
    std::vector<std::int64_t> places(std::begin(kPlaces), std::end(kPlaces));
    if (words.size() > 6) {
      places.clear();
      for (std::size_t i = 6; i < words.size(); ++i) places.push_back(std::atoi(words[i].c_str()));
    }
    run_model(words[1], words.size() > 2 ? std::atoi(words[2].c_str()) : 1, words.size() > 3 ? words[3] : "fp32",
              words.size() > 4 ? std::atoi(words[4].c_str()) : 0, words.size() > 5 ? words[5] : "h100-sxm", places);
  }
  return 0;
}
