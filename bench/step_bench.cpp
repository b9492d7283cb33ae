// Reading and validating a step of 200,000 ops against the JSON library's own accept() over the same bytes, turn by
// turn in one run, so that a slow moment of the machine hits both. Then the peak memory of a process that reads the
// file, against the file's size, and the usual table of single timings.
//
//   step_bench                 ratios, then google-benchmark's table
//   step_bench --ratios-only
//   step_bench --check             the ratios; exit code 1 when one is above what the project promises
//   step_bench --read-once OPS     only reads, for a profiler

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "large_step.h"
#include "tidemark/base/bytes.h"
#include "tidemark/step/fingerprint.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/write_step.h"

namespace {

using namespace tidemark;

constexpr std::size_t kDefaultOps = 200000;
constexpr int kRounds = 11;
constexpr double kPromisedTimeRatio = 1.5;
constexpr double kPromisedMemoryRatio = 4;

// The same work as a reader's first half: find the lines, check that each is JSON.
bool accept_lines(const std::string& text) {
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    const char* line_end = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    if (!nlohmann::json::accept(at, line_end)) return false;
    at = line_end + 1;
  }
  return true;
}

template <class Work>
double seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double print_time_ratio(const std::string& text) {
  std::vector<double> ratios, ours, theirs;
  for (int i = 0; i < kRounds; ++i) {
    theirs.push_back(seconds([&] { benchmark::DoNotOptimize(accept_lines(text)); }));
    ours.push_back(seconds([&] { benchmark::DoNotOptimize(step::parse_step(text)); }));
    ratios.push_back(ours.back() / theirs.back());
  }
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  fmt::print(
      "read and validate / nlohmann accept: median {:.2f} (from {:.2f} to {:.2f}, {} turns; {:.0f} ms and {:.0f} ms)\n",
      median(ratios), *low, *high, kRounds, 1e3 * median(ours), 1e3 * median(theirs));
  return median(ratios);
}

// Reads `path` in a process of its own, which has touched nothing else, and returns the growth of its peak memory.
std::int64_t peak_bytes_of_reading(const std::string& path) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string descriptor = std::to_string(pipe_ends[1]);
    ::execl("/proc/self/exe", "step_bench", "--read", path.c_str(), descriptor.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(pipe_ends[1]);
  std::int64_t bytes = -1;
  if (::read(pipe_ends[0], &bytes, sizeof bytes) != static_cast<ssize_t>(sizeof bytes)) bytes = -1;
  ::close(pipe_ends[0]);
  ::waitpid(child, nullptr, 0);
  return bytes;
}

// The kernel's high-water mark of this process since exec (getrusage would include the parent's).
std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  return -1;
}

int read_and_report(const char* path, int descriptor) {
  const std::int64_t before = peak_resident_bytes();
  const step::Step step = step::read_step(path);
  const std::int64_t growth = peak_resident_bytes() - before;
  return ::write(descriptor, &growth, sizeof growth) == static_cast<ssize_t>(sizeof growth) ? 0 : 1;
}

double print_memory_ratio(const std::string& text) {
  char path[] = "/tmp/step_bench_XXXXXX";
  const int descriptor = ::mkstemp(path);
  if (descriptor < 0) return -1;
  ::close(descriptor);
  std::ofstream(path, std::ios::binary) << text;
  const std::int64_t bytes = peak_bytes_of_reading(path);
  ::unlink(path);
  fmt::print("peak memory of reading / file: {:.2f} ({} for a file of {})\n",
             static_cast<double>(bytes) / static_cast<double>(text.size()), format_bytes(bytes),
             format_bytes(static_cast<std::int64_t>(text.size())));
  return static_cast<double>(bytes) / static_cast<double>(text.size());
}

void register_benchmarks(const std::string& text, const step::Step& step) {
  benchmark::RegisterBenchmark("accept", [&](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(accept_lines(text));
  })->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("read", [&](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(step::parse_step(text));
  })->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("write", [&](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(step::step_text(step));
  })->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("fingerprint", [&](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(step::fingerprint(step));
  })->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--read") == 0) return read_and_report(argv[2], std::atoi(argv[3]));
  if (argc == 3 && std::strcmp(argv[1], "--read-once") == 0) {
    const std::string small = step::step_text(bench::large_step(static_cast<std::size_t>(std::atoi(argv[2]))));
    benchmark::DoNotOptimize(accept_lines(small));
    benchmark::DoNotOptimize(step::parse_step(small));
    return 0;
  }
  const step::Step step = bench::large_step(kDefaultOps);
  const std::string text = step::step_text(step);
  fmt::print("a step of {} ops, {} events, {}\n", step.tables().ops.size(), step.tables().events.size(),
             format_bytes(static_cast<std::int64_t>(text.size())));
  const double memory_ratio = print_memory_ratio(text);
  const double time_ratio = print_time_ratio(text);
  if (argc == 2 && std::strcmp(argv[1], "--ratios-only") == 0) return 0;
  if (argc == 2 && std::strcmp(argv[1], "--check") == 0) {
    const bool holds = time_ratio <= kPromisedTimeRatio && memory_ratio >= 0 && memory_ratio <= kPromisedMemoryRatio;
    fmt::print("{}: at most {} and {} are promised\n", holds ? "holds" : "FAILS", kPromisedTimeRatio,
               kPromisedMemoryRatio);
    return holds ? 0 : 1;
  }
  register_benchmarks(text, step);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
