// How many events of a step a replay takes in a second, without a plan and with every layer checkpointed, and whether
// its cost grows in proportion to the step.
//
//   memory_bench            the figures
//   memory_bench --check    exit code 1 when one is below what the project promises

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "large_step.h"
#include "tidemark/memory/replay.h"

namespace {

using namespace tidemark;

constexpr std::size_t kSmallOps = 25000;
constexpr std::size_t kLargeOps = 400000;
constexpr int kRounds = 9;
constexpr double kPromisedEventsPerSecond = 5e6;
constexpr double kPromisedGrowth = 2.5;  // of the time per event, over 16 times the events: caches count, nothing else

// The layers of the stack: calls directly below the root.
plan::Plan checkpoint_layers(const step::Step& step) {
  plan::Plan plan;
  const auto& calls = step.tables().calls;
  for (std::uint32_t i = 0; i < calls.size(); ++i)
    if (calls[i].parent.has_value() && calls[calls[i].parent.index()].parent.is_none())
      plan.units.push_back({step::CallId(i), {}, true, true});
  return plan;
}

// The best of several turns: what disturbs a shared machine only ever adds time.
double events_per_second(const step::Step& step, const plan::Plan& plan) {
  double best = 0;
  for (int i = 0; i < kRounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const memory::Timeline timeline = memory::replay(step, plan, {.keep_alive_at_peak = false});
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (timeline.peak.total_bytes < 0) return 0;
    best = std::max(best, static_cast<double>(step.tables().events.size()) / time.count());
  }
  return best;
}

struct Rates {
  double plain = 0;
  double checkpointed = 0;
};

Rates measure(std::size_t ops) {
  const step::Step step = bench::large_step(ops);
  const plan::Plan plan = checkpoint_layers(step);
  const Rates rates{events_per_second(step, {}), events_per_second(step, plan)};
  fmt::print("{} ops, {} events, {} units: {:.1f} million events/s without a plan, {:.1f} checkpointed\n", ops,
             step.tables().events.size(), plan.units.size(), rates.plain / 1e6, rates.checkpointed / 1e6);
  return rates;
}

}  // namespace

int main(int argc, char** argv) {
  const Rates small = measure(kSmallOps);
  const Rates large = measure(kLargeOps);
  const double slowest = std::min({small.plain, small.checkpointed, large.plain, large.checkpointed});
  const double growth = std::max(small.plain / large.plain, small.checkpointed / large.checkpointed);
  fmt::print("slowest {:.1f} million events/s (promised {:.1f}); time per event grows by {:.2f} (at most {:.1f})\n",
             slowest / 1e6, kPromisedEventsPerSecond / 1e6, growth, kPromisedGrowth);
  const bool holds = slowest >= kPromisedEventsPerSecond && growth <= kPromisedGrowth;
  return argc > 1 && std::strcmp(argv[1], "--check") == 0 && !holds ? 1 : 0;
}
