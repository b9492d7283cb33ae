// What a native step costs: Llama-3.1-405B at sequence 8192, its replay under a plan, and how the time grows with the
// number of layers. `native_bench --check` fails when a promise of the documentation does not hold.

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include "tidemark/memory/replay.h"
#include "tidemark/plan/policies.h"
#include "tidemark/zoo/record.h"

namespace tidemark {
namespace {

constexpr double kCaptureSeconds = 0.15;
constexpr double kReplaySeconds = 0.05;
constexpr std::int64_t kPeakBytes = 300'000'000;
constexpr double kExponent = 1.15;  // of time over layers: linear, but for noise

template <class F>
double seconds_of(F&& work) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

std::int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

zoo::LlamaConfig with_layers(std::int64_t layers) {
  auto config = std::get<zoo::LlamaConfig>(zoo::find_model("llama3.1-405b")->config);
  config.layers = layers;
  return config;
}

// The slope of log(time) over log(layers), by least squares.
double exponent(const std::vector<std::pair<double, double>>& points) {
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& [layers, seconds] : points) {
    x += std::log(layers);
    y += std::log(seconds);
    xx += std::log(layers) * std::log(layers);
    xy += std::log(layers) * std::log(seconds);
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

bool say(const char* what, double value, double limit, const char* unit) {
  const bool holds = value <= limit;
  std::fputs(
      fmt::format("{:<34} {:>10.4f} {} (at most {}){}\n", what, value, unit, limit, holds ? "" : "  BROKEN").c_str(),
      stdout);
  return holds;
}

bool run() {
  const zoo::StepOptions options{.sequence = 8192};
  bool all = true;
  const zoo::Config model = with_layers(126);
  const step::Step step = zoo::record(model, options);
  const std::int64_t peak = peak_bytes();
  const double capture = seconds_of([&] { zoo::record(model, options); });
  std::fputs(
      fmt::format("llama3.1-405b: {} ops, {} events\n", step.tables().ops.size(), step.tables().events.size()).c_str(),
      stdout);
  all = say("capture", capture, kCaptureSeconds, "s") && all;
  all = say("memory of the process after it", static_cast<double>(peak) / 1e6, kPeakBytes / 1e6, "MB") && all;
  const plan::Plan plan = plan::make_plan(step, plan::parse_policy("full", "policy"), {});
  all = say("replay under full checkpointing", seconds_of([&] { memory::replay(step, plan, {}); }), kReplaySeconds,
            "s") &&
        all;
  std::vector<std::pair<double, double>> points;
  for (const std::int64_t layers : {8, 16, 32, 64, 128, 256, 512}) {
    const zoo::Config config = with_layers(layers);
    double best = 1e9;  // of processor time: others on the machine would show as growth
    for (int i = 0; i < 7; ++i) {
      const std::clock_t begin = std::clock();
      zoo::record(config, options);
      best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    points.emplace_back(static_cast<double>(layers), best);
  }
  all = say("exponent from 8 to 512 layers", exponent(points), kExponent, "") && all;
  return all;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  const bool holds = tidemark::run();
  return argc > 1 && std::strcmp(argv[1], "--check") == 0 && !holds ? 1 : 0;
}
