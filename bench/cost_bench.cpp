// How many ops a second are priced, in a large step, in one of a model and where no two ops are alike, beside a plain
// walk over the same ops that only adds their bytes up.
//
//   cost_bench            the figures
//   cost_bench --check    exit code 1 when one is below what the project promises

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "large_step.h"
#include "tidemark/cost/op_time.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/catalog.h"
#include "tidemark/zoo/catalog.h"
#include "tidemark/zoo/record.h"

namespace {

using namespace tidemark;

constexpr int kRounds = 9;
constexpr double kPromisedOpsPerSecond = 2e6;

// Of the process: the machine may be shared.
double seconds_since(std::clock_t start) {
  return static_cast<double>(std::max<std::clock_t>(1, std::clock() - start)) / CLOCKS_PER_SEC;
}

// The best of several turns: what disturbs a shared machine only ever adds time.
template <class Run>
double ops_per_second(const step::Step& step, const Run& run) {
  double best = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::clock_t start = std::clock();
    if (run(step) < 0) return 0;
    const double seconds = seconds_since(start);
    best = std::max(best, static_cast<double>(step.tables().ops.size()) / seconds);
  }
  return best;
}

// Products of different shapes: nothing that is known from one op helps with the next.
double measure_distinct(const device::Device& device) {
  constexpr std::int64_t kCount = 60'000;
  const cost::Machine machine = cost::make_machine(device);
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::clock_t start = std::clock();
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < kCount; ++i) {
      const cost::Work work = cost::product_work(cost::Family::kMatmul, 1, 16 + i % 4093, 16 + i % 1021, 16 + i % 2039,
                                                 device::Precision::kFloat32, 4);
      sum += cost::op_time(work, machine).total_ps;
    }
    const double seconds = seconds_since(start);
    if (sum > 0) best = std::max(best, static_cast<double>(kCount) / seconds);
  }
  fmt::print("{} products of different shapes on {}: {:.1f} million ops/s priced\n", kCount, device.name, best / 1e6);
  return best;
}

std::int64_t walk(const step::Step& step) {
  std::int64_t bytes = 0;
  for (const step::Op& op : step.tables().ops) {
    for (const step::TensorId tensor : step.inputs(op)) bytes += step[step[tensor].storage].bytes;
    for (const step::Output& output : step.outputs(op)) bytes += step[step[output.tensor].storage].bytes;
  }
  return bytes;
}

double measure(const char* name, const step::Step& step, const device::Device& device) {
  const double priced =
      ops_per_second(step, [&](const step::Step& s) { return cost::price_step(s, device).all.time_ps; });
  const double walked = ops_per_second(step, walk);
  fmt::print("{}, {} ops on {}: {:.1f} million ops/s priced; walking over them is {:.1f} times as fast\n", name,
             step.tables().ops.size(), device.name, priced / 1e6, walked / priced);
  return priced;
}

}  // namespace

int main(int argc, char** argv) {
  const step::Step large = bench::large_step(400000);
  const step::Step model = zoo::record(zoo::find_model("gpt2-xl")->config, {.batch = 8});
  double slowest = 1e300;
  for (const char* name : {"a100-40-pcie", "h100-sxm", "cpu"}) {
    const device::Device device = device::find_device(name);
    slowest = std::min(
        {slowest, measure("a large step", large, device), measure("gpt2-xl", model, device), measure_distinct(device)});
  }
  fmt::print("slowest {:.1f} million ops/s (promised {:.1f})\n", slowest / 1e6, kPromisedOpsPerSecond / 1e6);
  return argc > 1 && std::strcmp(argv[1], "--check") == 0 && slowest < kPromisedOpsPerSecond ? 1 : 0;
}
