#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "brute_force.h"
#include "tidemark/planner/prepared.h"

namespace tidemark::test {

// The whole planner against brute force: a small random step, every legal plan of it replayed, and what the planner
// says at every budget at which something changes, and one byte beside it.

// How often each value came.
class Histogram {
 public:
  void add(std::int64_t value, std::int64_t times = 1) { counts_[value] += times; }
  void add(const Histogram& other) {
    for (const auto& [value, count] : other.counts_) counts_[value] += count;
  }
  std::int64_t total() const;
  std::int64_t sum() const;
  // The smallest value that at least so much of all are not above.
  std::int64_t quantile(double part) const;
  // A line per bucket; buckets double from 1 on when `by_powers`.
  std::string text(bool by_powers) const;

 private:
  std::map<std::int64_t, std::int64_t> counts_;
};

// What a step has of the things that make planning hard.
enum class Feature : std::uint8_t {
  kSharedStorages,  // several module calls keep it
  kSkips,
  kTiedWeights,
  kInPlace,
  kRandom,
  kMustSave,
  kZeroBytes,
  kZeroTimes,
  kTies,  // plans that fit take the same time, the least
  kHugeBytes,
  kNested,
  kCalledTwice,
  kMicroBatches,
  kWorkspace,
  kRounded,
  kOdd,    // nodes that never run, saves that stay
  kCasts,  // of parameters, which the program holds until the forward ends
};
inline constexpr std::array<const char*, 17> kFeatureNames = {
    "shared storages", "skips",         "tied weights",     "in-place ops",
    "random ops",      "must-save ops", "zero bytes",       "zero times",
    "exact ties",      "2^53 bytes",    "nested modules",   "modules twice",
    "micro-batches",   "workspace",     "rounded to 512 B", "odd (unused branches, saves that stay)",
    "casts that stay"};

struct TrialCounts {
  std::int64_t steps = 0;
  std::int64_t passed_over = 0;  // too many plans to try, or too few, or too few units, or most where no unit helps
  std::int64_t exact = 0;        // steps whose model says what a replay says
  std::int64_t given = 0;        // steps with groups that the model saves for nothing
  Histogram plans, units, shared, budgets;
  std::array<std::int64_t, kFeatureNames.size()> features = {};
  std::array<std::int64_t, planner::kTerminationNames.size()> terminations = {};
  // What must not be.
  std::int64_t differing = 0;
  std::int64_t over_budget = 0;
  std::int64_t wrong_infeasible = 0;
  std::int64_t wrong_smallest = 0;
  std::int64_t unproved = 0;  // the best plan, but not known to be
  std::int64_t wrong_figures = 0;
  std::int64_t wrong_models = 0;    // of a plan: above a replay, or other than one where it is said to be exact
  std::int64_t wrong_ties = 0;      // another plan of the least time comes first
  std::vector<std::string> faults;  // the first of them, with their seeds

  void add(const TrialCounts& other);
  bool is_clean() const;
  std::string what_is_missing() const;  // of what a long campaign has to have tried; nothing for a short one
  std::string line() const;             // so far, in one line
  std::string text() const;
};

// What the planner says at budgets around the breakpoints of the plans tried, at most so many of these, compared with
// what they come to. The step's name is for faults.
struct ComparedStep {
  std::string name;
  std::uint64_t seed = 0;  // of budgets between
  std::size_t most_breakpoints = 1000;
};
void compare_with_all(const ComparedStep& compared, const planner::PreparedStep& prepared,
                      const std::vector<Tried>& tried, TrialCounts& counts);

// Tries the step of a seed, unless it has more than `most` plans, fewer than 20, or fewer than three candidate units.
void try_step(std::uint64_t seed, std::int64_t most, TrialCounts& counts);

}  // namespace tidemark::test
