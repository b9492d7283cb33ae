#include "tidemark/planner/knapsack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "tidemark/base/error.h"

namespace tidemark::planner {

namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kMost = std::int64_t{1} << 61;

[[noreturn]] void refuse(std::string problem, std::string expected, std::string got) {
  throw Error({.kind = ErrorKind::kInput,
               .place = "knapsack",
               .problem = std::move(problem),
               .expected = std::move(expected),
               .got = std::move(got),
               .remedy = {}});
}

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

struct Entry {
  std::int64_t weight = 0;
  std::int64_t value = 0;
  std::uint32_t before = kNone;  // the entry without its last item
  std::uint32_t item = kNone;
};

class Search {
 public:
  Search(std::span<const KnapsackItem> items, std::int64_t capacity, const KnapsackOptions& options)
      : items_(items), capacity_(capacity), options_(options) {
    std::int64_t weights = 0;
    std::int64_t values = 0;
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      const KnapsackItem& item = items[i];
      if (item.weight < 0 || item.value < 0)
        refuse("an item has a negative weight or value", "numbers from 0",
               fmt::format("{} and {} of item {}", item.weight, item.value, i));
      if (item.weight >= kMost - weights || item.value >= kMost - values)
        refuse("the items are too heavy", "sums below 2^61", fmt::format("more up to item {}", i));
      weights += item.weight;
      values += item.value;
      if (item.value == 0 || item.weight > capacity) continue;
      order_.push_back(i);
    }
    // Items without value are left out, so that this is an order also with weights of 0, which come first.
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return static_cast<Wide>(items[a].value) * items[b].weight > static_cast<Wide>(items[b].value) * items[a].weight;
    });
    weight_before_.assign(1, 0);
    value_before_.assign(1, 0);
    for (const std::uint32_t i : order_) {
      weight_before_.push_back(weight_before_.back() + items[i].weight);
      value_before_.push_back(value_before_.back() + items[i].value);
    }
  }

  KnapsackResult run() {
    KnapsackResult result;
    if (capacity_ < 0) return result;
    take_greedily();
    entries_.push_back({});
    std::vector<std::uint32_t> list = {0};
    for (std::size_t k = 0; k < order_.size() && !list.empty(); ++k) {
      if (entries_.size() + list.size() > options_.max_entries) {
        for (const std::uint32_t e : list)
          result.bound = std::max(result.bound, bound_of(entries_[e].weight, entries_[e].value, k));
        break;
      }
      list = extended(list, k);
    }
    for (std::uint32_t e = best_entry_; e != kNone && e != 0; e = entries_[e].before) best_.push_back(entries_[e].item);
    std::sort(best_.begin(), best_.end());
    result.chosen = std::move(best_);
    for (const std::uint32_t i : result.chosen) {
      result.weight += items_[i].weight;
      result.value += items_[i].value;
    }
    result.bound = std::max(result.bound, result.value);
    return result;
  }

 private:
  // The first answer, and what the search has to beat.
  void take_greedily() {
    std::int64_t weight = 0;
    for (const std::uint32_t i : order_) {
      if (items_[i].weight > capacity_ - weight) continue;
      weight += items_[i].weight;
      best_value_ += items_[i].value;
      best_.push_back(i);
    }
  }

  // With the k-th item in this order and later ones, if the last could be taken in part.
  std::int64_t bound_of(std::int64_t weight, std::int64_t value, std::size_t k) const {
    const std::int64_t limit = capacity_ - weight + weight_before_[k];
    const auto from = weight_before_.begin() + static_cast<std::ptrdiff_t>(k);
    const auto end = std::upper_bound(from, weight_before_.end(), limit) - 1;
    const auto last = static_cast<std::size_t>(end - weight_before_.begin());
    std::int64_t bound = value + value_before_[last] - value_before_[k];
    if (last < order_.size()) {
      const KnapsackItem& item = items_[order_[last]];
      bound += static_cast<std::int64_t>(static_cast<Wide>(limit - weight_before_[last]) * item.value / item.weight);
    }
    return bound;
  }

  // Both lists ascend in weight and value; of equal entries the one without the item stays.
  std::vector<std::uint32_t> extended(const std::vector<std::uint32_t>& list, std::size_t k) {
    const KnapsackItem& item = items_[order_[k]];
    std::vector<std::uint32_t> next;
    std::int64_t top = -1;
    const auto keep = [&](std::uint32_t e) {
      if (entries_[e].value <= top) return;
      top = entries_[e].value;
      if (bound_of(entries_[e].weight, entries_[e].value, k + 1) > best_value_) next.push_back(e);
    };
    std::size_t without = 0;
    for (const std::uint32_t e : list) {
      const Entry with = {entries_[e].weight + item.weight, entries_[e].value + item.value, e, order_[k]};
      if (with.weight > capacity_) break;
      while (without < list.size() && comes_before(entries_[list[without]], with)) keep(list[without++]);
      if (with.value <= top) continue;
      entries_.push_back(with);
      if (with.value > best_value_) {
        best_value_ = with.value;
        best_entry_ = static_cast<std::uint32_t>(entries_.size() - 1);
        best_.clear();
      }
      keep(static_cast<std::uint32_t>(entries_.size() - 1));
    }
    while (without < list.size()) keep(list[without++]);
    return next;
  }

  static bool comes_before(const Entry& a, const Entry& b) {
    return a.weight != b.weight ? a.weight < b.weight : a.value >= b.value;
  }

  std::span<const KnapsackItem> items_;
  std::int64_t capacity_;
  KnapsackOptions options_;
  std::vector<std::uint32_t> order_;         // by value per weight
  std::vector<std::int64_t> weight_before_;  // of the first k of them
  std::vector<std::int64_t> value_before_;
  std::vector<Entry> entries_;
  std::int64_t best_value_ = 0;
  std::vector<std::uint32_t> best_;  // while no entry is better
  std::uint32_t best_entry_ = kNone;
};

// How often all numbers must be doubled to be whole, or as often as they may be.
int doublings(std::span<const double> numbers, double more, double sum) {
  constexpr int kBits = 52;
  int needed = 0;
  const auto look = [&](double x) {
    if (x == 0) return;
    int exponent = 0;
    double mantissa = std::frexp(x, &exponent);
    int bits = 0;
    for (; mantissa != std::floor(mantissa); mantissa *= 2) ++bits;
    needed = std::max(needed, bits - exponent);
  };
  for (const double x : numbers) look(x);
  look(more);
  int of_sum = 0;
  std::frexp(std::max(sum, more), &of_sum);
  return std::min(needed, kBits - of_sum);
}

void require_number(double x, const char* what) {
  if (!(x >= 0) || !std::isfinite(x))
    refuse(fmt::format("a {} is no size", what), "a number from 0", fmt::format("{}", x));
}

}  // namespace

KnapsackResult solve_knapsack(std::span<const KnapsackItem> items, std::int64_t capacity,
                              const KnapsackOptions& options) {
  return Search(items, capacity, options).run();
}

KnapsackResult solve_knapsack(std::span<const double> weights, std::span<const double> values, double capacity,
                              const KnapsackOptions& options) {
  if (weights.size() != values.size())
    refuse("there is not one value for every weight", fmt::format("{} values", weights.size()),
           fmt::format("{}", values.size()));
  for (const double x : weights) require_number(x, "weight");
  for (const double x : values) require_number(x, "value");
  if (std::isnan(capacity)) refuse("the capacity is no number", "a number", "nan");
  if (capacity < 0) return {};
  // More than everything is everything.
  capacity = std::min(capacity, std::accumulate(weights.begin(), weights.end(), 0.0) + 1);
  const int weight_bits = doublings(weights, capacity, std::accumulate(weights.begin(), weights.end(), 0.0));
  const int value_bits = doublings(values, 0, std::accumulate(values.begin(), values.end(), 0.0));
  std::vector<KnapsackItem> items;
  for (std::size_t i = 0; i < weights.size(); ++i)
    items.push_back({static_cast<std::int64_t>(std::ceil(std::ldexp(weights[i], weight_bits))),
                     std::llround(std::ldexp(values[i], value_bits))});
  return solve_knapsack(items, static_cast<std::int64_t>(std::floor(std::ldexp(capacity, weight_bits))), options);
}

}  // namespace tidemark::planner
