#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tidemark::planner {

// The 0/1 knapsack, exactly: the most value whose weight stays within a capacity. All in integers; lists of choices
// that no other beats, cut by what the rest could add at most.

struct KnapsackItem {
  std::int64_t weight = 0;
  std::int64_t value = 0;
};

struct KnapsackOptions {
  std::size_t max_entries = 4'000'000;  // of the lists, in all
};

struct KnapsackResult {
  std::vector<std::uint32_t> chosen;  // ascending; items without value are never chosen
  std::int64_t weight = 0;
  std::int64_t value = 0;
  std::int64_t bound = 0;  // no choice has more value; `value` unless the limit was reached

  bool is_proved() const { return bound == value; }
};

// Equal choices: the one that takes the items with most value per weight first, then the earlier ones. Nothing is
// chosen when the capacity is negative. Throws: Error for a negative weight or value, or sums of 2^61 and more.
KnapsackResult solve_knapsack(std::span<const KnapsackItem> items, std::int64_t capacity,
                              const KnapsackOptions& options = {});

// The same for numbers as PyTorch's compiler hands them over. A double is a fraction with a power of two below it, so
// that the items are the same ones in integers; only when those had more than 52 bits are weights rounded up and the
// capacity down, so that a choice never weighs more than it may, and values to the nearest.
KnapsackResult solve_knapsack(std::span<const double> weights, std::span<const double> values, double capacity,
                              const KnapsackOptions& options = {});

}  // namespace tidemark::planner
