#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::test {

// What must hold of the planner's answers whatever the step, also of steps with too many plans to try them all.
enum class Law : std::uint8_t {
  kMoreBudgetNeverCostsMore,
  kPeakWithinBudget,
  kPeakFallsWithBudget,  // of the plans returned
  kBytesScale,           // all bytes and the budget times k: the same plan
  kTimesScale,           // all times times k: the same plan
  kNamesDoNotMatter,     // other module names: the same plan
  kNumbersDoNotMatter,   // other ids and orders of rows: the same plan file
  kFreeOpDoesNotMatter,  // an op without bytes and time: the same times and peaks
  kEnoughBudgetNoPlan,
  kBreakpoints,  // at each: its time; one byte less: that of the one before, or infeasible; one byte more: the same
};
inline constexpr std::array<const char*, 10> kLawNames = {"more budget never costs more time",
                                                          "the peak is within the budget",
                                                          "the peak never rises as budget falls",
                                                          "bytes and budget times k: same plan",
                                                          "times times k: same plan",
                                                          "other module names: same plan",
                                                          "other ids: same plan file",
                                                          "an op that takes nothing: same figures",
                                                          "enough budget: empty plan",
                                                          "one byte either side of breakpoints"};

struct LawCounts {
  std::array<std::int64_t, kLawNames.size()> instances = {};
  std::array<std::int64_t, kLawNames.size()> broken = {};
  std::int64_t steps = 0;
  std::int64_t unproved = 0;        // answers of budgets that are left out, since the search reached its limit
  std::int64_t unknown = 0;         // laws that were not tried, since an answer they are about is not proved
  std::vector<std::string> faults;  // the first of them, with their seeds

  void add(const LawCounts& other);
  bool is_clean() const;
  std::string line() const;  // so far, in one line
  std::string text() const;
};

// Tries all laws, once each, on the step of a seed; a law counts once per step, at all the budgets it is tried at.
void try_laws(std::uint64_t seed, LawCounts& counts);

}  // namespace tidemark::test
