#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "laws.h"
#include "step_trial.h"

// The long runs of step_trial.h and laws.h, in several threads; what they print does not depend on how many.

namespace {

using namespace tidemark::test;

constexpr const char* kUsage =
    "usage: planner_campaign [--steps N] [--laws N] [--jobs N] [--first SEED] [--most PLANS]\n"
    "  --steps N     small random steps whose plans are all tried (1000000)\n"
    "  --laws N      random steps on which the laws are tried (22000)\n"
    "  --jobs N      threads (1)\n"
    "  --first SEED  the first step's (1)\n"
    "  --most PLANS  of a step that is tried (600)\n";

struct Arguments {
  std::int64_t steps = 1'000'000;
  std::int64_t laws = 22'000;
  std::int64_t jobs = 1;
  std::int64_t first = 1;
  std::int64_t most = 600;
};

bool read(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    char* end = nullptr;
    const std::int64_t value = std::strtoll(argv[i + 1], &end, 10);
    if (value < 0 || end == argv[i + 1] || *end != 0) return false;
    if (name == "--steps")
      arguments.steps = value;
    else if (name == "--laws")
      arguments.laws = value;
    else if (name == "--jobs" && value > 0)
      arguments.jobs = value;
    else if (name == "--first")
      arguments.first = value;
    else if (name == "--most")
      arguments.most = value;
    else
      return false;
  }
  return argc % 2 == 1;
}

// Seeds are dealt out in blocks that depend on nothing but their number.
template <class Counts, class Try>
Counts run(std::int64_t count, std::int64_t jobs, const Try& one) {
  constexpr std::int64_t kBlock = 256;
  std::vector<Counts> parts(static_cast<std::size_t>((count + kBlock - 1) / kBlock));
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> threads;
    for (std::int64_t i = 0; i < jobs; ++i)
      threads.emplace_back([&] {
        for (std::size_t part = next++; part < parts.size(); part = next++) {
          const std::int64_t begin = static_cast<std::int64_t>(part) * kBlock;
          const std::int64_t steps = std::min(kBlock, count - begin);
          // A block has more seeds than it may need: some steps are passed over.
          std::uint64_t seed = static_cast<std::uint64_t>(part) << 20;
          while (parts[part].steps < steps) one(seed++, parts[part]);
        }
      });
  }
  Counts all;
  for (const Counts& part : parts) all.add(part);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!read(argc, argv, arguments)) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  const auto first = static_cast<std::uint64_t>(arguments.first);
  bool is_clean = true;
  if (arguments.steps > 0) {
    const auto counts = run<TrialCounts>(arguments.steps, arguments.jobs, [&](std::uint64_t seed, TrialCounts& c) {
      try_step(first + seed, arguments.most, c);
    });
    fmt::print("{}", counts.text());
    is_clean = counts.is_clean();
  }
  if (arguments.laws > 0) {
    const auto counts = run<LawCounts>(arguments.laws, arguments.jobs,
                                       [&](std::uint64_t seed, LawCounts& c) { try_laws(first + seed, c); });
    fmt::print("{}", counts.text());
    is_clean = is_clean && counts.is_clean();
  }
  return is_clean ? 0 : 1;
}
