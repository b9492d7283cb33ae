#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "laws.h"
#include "real_trial.h"
#include "step_trial.h"
#include "tidemark/step/read_step.h"

// The long runs of step_trial.h and laws.h, in several threads; what they print does not depend on how many.

namespace {

using namespace tidemark::test;

constexpr const char* kUsage =
    "usage: planner_campaign [--steps N] [--laws N] [--real N] [--jobs N] [--first SEED] [--most PLANS] [STEP "
    "FILE...]\n"
    "  --steps N     small random steps whose plans are all tried (1000000)\n"
    "  --laws N      random steps on which the laws are tried (22000)\n"
    "  --real N      steps of real models: at most so many plans of each; of the files, or of small built-in models "
    "(0)\n"
    "  --jobs N      threads (1)\n"
    "  --first SEED  the first step's (1)\n"
    "  --most PLANS  of a step that is tried (600)\n";

struct Arguments {
  std::int64_t steps = 1'000'000;
  std::int64_t laws = 22'000;
  std::int64_t real = 0;
  std::int64_t jobs = 1;
  std::int64_t first = 1;
  std::int64_t most = 600;
  std::vector<std::string> files;
};

bool read(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (!name.starts_with("-")) {
      arguments.files.emplace_back(name);
      --i;
      continue;
    }
    if (i + 1 == argc) return false;
    char* end = nullptr;
    const std::int64_t value = std::strtoll(argv[i + 1], &end, 10);
    if (value < 0 || end == argv[i + 1] || *end != 0) return false;
    if (name == "--steps")
      arguments.steps = value;
    else if (name == "--laws")
      arguments.laws = value;
    else if (name == "--real")
      arguments.real = value;
    else if (name == "--jobs" && value > 0)
      arguments.jobs = value;
    else if (name == "--first")
      arguments.first = value;
    else if (name == "--most")
      arguments.most = value;
    else
      return false;
  }
  return true;
}

// The counts of blocks as they are finished, in the order of the blocks: what is printed does not depend on threads,
// and a run that is stopped has said what it had.
template <class Counts>
class Tally {
 public:
  Tally(std::size_t blocks, std::int64_t print_every) : parts_(blocks), print_every_(print_every) {}

  void finish(std::size_t block, Counts counts) {
    const std::lock_guard lock(mutex_);
    parts_[block] = std::move(counts);
    for (; next_ < parts_.size() && parts_[next_]; ++next_) {
      const std::int64_t before = all_.steps;
      const std::size_t faults = all_.faults.size();
      all_.add(*parts_[next_]);
      parts_[next_].reset();
      for (std::size_t i = faults; i < all_.faults.size(); ++i) fmt::print("{}\n", all_.faults[i]);
      if (all_.steps / print_every_ == before / print_every_) continue;
      fmt::print("{}\n", all_.line());
      std::fflush(stdout);
    }
  }

  const Counts& all() const { return all_; }

 private:
  std::mutex mutex_;
  std::vector<std::optional<Counts>> parts_;  // finished ones that follow an unfinished one
  std::int64_t print_every_;
  std::size_t next_ = 0;
  Counts all_;
};

// Seeds are dealt out in blocks that depend on nothing but their number.
template <class Counts, class Try>
Counts run(std::int64_t count, std::int64_t jobs, std::int64_t print_every, const Try& one) {
  constexpr std::int64_t kBlock = 256;
  const auto blocks = static_cast<std::size_t>((count + kBlock - 1) / kBlock);
  Tally<Counts> tally(blocks, print_every);
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> threads;
    for (std::int64_t i = 0; i < jobs; ++i)
      threads.emplace_back([&] {
        for (std::size_t block = next++; block < blocks; block = next++) {
          const std::int64_t steps = std::min(kBlock, count - static_cast<std::int64_t>(block) * kBlock);
          // A block has more seeds than it may need: some steps are passed over.
          std::uint64_t seed = static_cast<std::uint64_t>(block) << 20;
          Counts counts;
          while (counts.steps < steps) one(seed++, counts);
          tally.finish(block, std::move(counts));
        }
      });
  }
  return tally.all();
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
    const auto counts =
        run<TrialCounts>(arguments.steps, arguments.jobs, 10'000,
                         [&](std::uint64_t seed, TrialCounts& c) { try_step(first + seed, arguments.most, c); });
    const std::string missing = counts.what_is_missing();
    fmt::print("{}{}", counts.text(), missing);
    is_clean = counts.is_clean() && missing.empty();
  }
  if (arguments.laws > 0) {
    const auto counts = run<LawCounts>(arguments.laws, arguments.jobs, 1'000,
                                       [&](std::uint64_t seed, LawCounts& c) { try_laws(first + seed, c); });
    fmt::print("{}", counts.text());
    is_clean = is_clean && counts.is_clean();
  }
  if (arguments.real > 0) {
    TrialCounts counts;
    std::vector<RealStep> steps;
    for (const std::string& file : arguments.files) steps.push_back({file, tidemark::step::read_step(file)});
    if (steps.empty()) steps = small_native_steps(3);
    for (const RealStep& real : steps) {
      const TrialCounts before = counts;
      try_real_step(real, arguments.real, counts);
      fmt::print("{}: {} plans, {} budgets\n", real.name, counts.plans.sum() - before.plans.sum(),
                 counts.budgets.sum() - before.budgets.sum());
      std::fflush(stdout);
    }
    fmt::print("{}\n", counts.line());
    for (const std::string& one : counts.faults) fmt::print("{}\n", one);
    is_clean = is_clean && counts.is_clean() && counts.passed_over == 0;
  }
  return is_clean ? 0 : 1;
}
