#include "tidemark/planner/module_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tidemark/base/duration.h"
#include "tidemark/base/error.h"
#include "tidemark/planner/knapsack.h"
#include "tidemark/sac/greedy_order.h"

namespace tidemark::planner {

namespace {

using sac::ModuleOperators;

double budget_of(const ModuleOperators& operators, double part) {
  if (!(part >= 0 && part <= 1))
    throw Error({.kind = ErrorKind::kInput,
                 .place = "memory budget",
                 .problem = "this is no part of a module's bytes",
                 .expected = "a number from 0 to 1",
                 .got = fmt::format("{}", part),
                 .remedy = {}});
  std::int64_t bytes = 0;
  for (const sac::Operator& o : operators.operators) bytes += o.bytes;
  return part * static_cast<double>(bytes);
}

ModulePolicy finished(const ModuleOperators& operators, std::vector<std::uint8_t> saved, bool is_feasible) {
  ModulePolicy policy{.is_feasible = is_feasible, .saved = std::move(saved)};
  for (std::size_t i = 0; i < operators.operators.size(); ++i) {
    if (policy.saved[i] != 0)
      policy.bytes += operators.operators[i].bytes;
    else
      policy.recompute_ms += operators.operators[i].ms;
  }
  return policy;
}

// Operators that are decided together, by a representative.
class Groups {
 public:
  explicit Groups(std::size_t count) : above_(count) { std::iota(above_.begin(), above_.end(), 0U); }
  std::uint32_t find(std::uint32_t i) {
    while (above_[i] != i) i = above_[i] = above_[above_[i]];
    return i;
  }
  void join(std::uint32_t a, std::uint32_t b) { above_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

 private:
  std::vector<std::uint32_t> above_;
};

}  // namespace

std::optional<std::vector<std::uint8_t>> keep_greedily(std::span<const PolicyItem> items, std::int64_t fixed_bytes,
                                                       double budget_bytes) {
  std::int64_t left = fixed_bytes;
  for (const PolicyItem& item : items) left += item.bytes;
  std::vector<std::uint8_t> kept(items.size(), 1);
  std::size_t next = 0;
  while (static_cast<double>(left) > budget_bytes) {
    if (next == items.size()) return std::nullopt;
    left -= items[next].bytes;
    kept[next++] = 0;
  }
  return kept;
}

std::optional<std::vector<std::uint8_t>> keep_best(std::span<const PolicyItem> items, std::int64_t fixed_bytes,
                                                   std::int64_t budget_bytes) {
  if (fixed_bytes > budget_bytes) return std::nullopt;
  std::vector<KnapsackItem> knapsack;
  for (const PolicyItem& item : items) knapsack.push_back({item.bytes, item.time_ps});
  std::vector<std::uint8_t> kept(items.size(), 0);
  for (const std::uint32_t i : solve_knapsack(knapsack, budget_bytes - fixed_bytes).chosen) kept[i] = 1;
  return kept;
}

ModulePolicy greedy_policy(const ModuleOperators& operators, double part) {
  const double budget = budget_of(operators, part);
  const sac::GreedyOrder order = sac::reference_greedy_order(operators, sac::Rules::kReferenceM);
  std::vector<std::uint8_t> saved(operators.operators.size(), 1);
  for (const std::uint32_t i : order.recomputed) saved[i] = 0;
  for (const std::uint32_t i : order.stored) saved[i] = 1;
  // Candidates may share operators: each is given up once.
  std::vector<std::uint8_t> is_fixed = saved;
  std::vector<PolicyItem> items;
  for (const sac::Candidate& candidate : order.candidates) {
    items.emplace_back();
    for (const std::uint32_t i : candidate.members) {
      items.back().bytes += is_fixed[i] != 0 ? operators.operators[i].bytes : 0;
      is_fixed[i] = 0;
    }
  }
  std::int64_t fixed_bytes = 0;
  for (std::size_t i = 0; i < is_fixed.size(); ++i) fixed_bytes += is_fixed[i] != 0 ? operators.operators[i].bytes : 0;
  const auto kept = keep_greedily(items, fixed_bytes, budget);
  for (std::size_t c = 0; c < items.size(); ++c)
    if (!kept || (*kept)[c] == 0)
      for (const std::uint32_t i : order.candidates[c].members) saved[i] = 0;
  for (const std::uint32_t i : order.stored) saved[i] = 1;
  return finished(operators, std::move(saved), kept.has_value());
}

ModulePolicy optimal_policy(const ModuleOperators& operators, double part) {
  const double budget = budget_of(operators, part);
  const auto count = static_cast<std::uint32_t>(operators.operators.size());
  Groups groups(count);
  std::optional<std::uint32_t> first_random;
  for (std::uint32_t i = 0; i < count; ++i) {
    const sac::Operator& o = operators.operators[i];
    if (o.is_random && !first_random) first_random = i;
    if (o.is_random) groups.join(i, *first_random);
    if (o.changes) groups.join(i, *o.changes);
  }
  enum Fate : std::uint8_t { kFree = 0, kSaved = 1, kAgain = 2 };
  std::vector<std::uint8_t> fate(count, kFree);
  for (std::uint32_t i = 0; i < count; ++i) {
    const sac::Operator& o = operators.operators[i];
    const std::uint32_t group = groups.find(i);
    if ((o.is_random && operators.must_store_random) || o.changes == i) fate[group] |= kSaved;
    if (o.is_view_like) fate[group] |= kAgain;
  }
  std::vector<PolicyItem> items;
  std::vector<std::uint32_t> number(count, 0);
  std::int64_t fixed_bytes = 0;
  bool is_consistent = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    const sac::Operator& o = operators.operators[i];
    const std::uint32_t group = groups.find(i);
    if (fate[group] == kSaved) fixed_bytes += o.bytes;
    if (fate[group] == (kSaved | kAgain)) is_consistent = false;
    if (fate[group] != kFree) continue;
    if (group == i) {
      number[i] = static_cast<std::uint32_t>(items.size());
      items.emplace_back();
    }
    items[number[group]].bytes += o.bytes;
    items[number[group]].time_ps += ps_from_ms(o.ms, "operator");
  }
  const auto kept = is_consistent ? keep_best(items, fixed_bytes, static_cast<std::int64_t>(std::ceil(budget)))
                                  : std::optional<std::vector<std::uint8_t>>();
  std::vector<std::uint8_t> saved(count, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t group = groups.find(i);
    saved[i] = fate[group] == kSaved || (fate[group] == kFree && kept && (*kept)[number[group]] != 0) ? 1 : 0;
  }
  return finished(operators, std::move(saved), kept.has_value());
}

}  // namespace tidemark::planner
