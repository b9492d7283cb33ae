#include "laws.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "../support/permute_step.h"
#include "../support/random.h"
#include "../support/random_training.h"
#include "step_cost.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/plan/portable_plan.h"
#include "tidemark/planner/facts.h"
#include "tidemark/planner/frontier.h"
#include "tidemark/planner/prepared.h"

namespace tidemark::test {

namespace {

using namespace step;
using planner::PlannerOptions;
using planner::PlanResult;
using planner::PreparedStep;
using planner::Termination;

constexpr std::size_t kMostFaults = 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 62;  // of all storages of a step

bool is_proved(const PlanResult& result) {
  return result.termination == Termination::kOptimal || result.termination == Termination::kFits ||
         result.termination == Termination::kInfeasible;
}

// The ops that a permutation has moved: events keep their order, so the ops of begin events are the same ones.
std::vector<std::int64_t> moved_times(const Step& from, const Step& to, const std::vector<std::int64_t>& times) {
  std::vector<std::int64_t> moved(times.size());
  const auto& a = from.tables().events;
  const auto& b = to.tables().events;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].kind == EventKind::kBegin) moved[b[i].id] = times[a[i].id];
  return moved;
}

class Laws {
 public:
  Laws(std::uint64_t seed, LawCounts& counts) : seed_(seed), counts_(counts), random_(seed * 77 + 5) {
    wishes_.max_children = static_cast<int>(random_.between(2, 5));
    wishes_.max_ops = static_cast<int>(random_.between(2, 5));
    wishes_.is_random = random_.chance(25);
  }

  void run() {
    const RandomTraining t = random_training(seed_, wishes_);
    const cost::StepCost cost = cost_of(t.times);
    const PreparedStep prepared(t.step, cost, {});
    choose_budgets(prepared);
    for (const std::int64_t budget : budgets_) {
      results_.push_back(prepared.plan(budget, PlannerOptions().max_work));
      if (!is_proved(results_.back())) {
        ++counts_.unproved;
        return;
      }
    }
    ++counts_.steps;
    check_order();
    check_scales(t);
    check_names();
    check_numbers(t);
    check_free_op();
    check_breakpoints(prepared);
  }

 private:
  // The ends, a byte on either side of them, and some between.
  void choose_budgets(const PreparedStep& prepared) {
    const std::int64_t least = prepared.smallest().peak_bytes;
    const std::int64_t most = prepared.none().peak_bytes;
    std::set<std::int64_t> list = {std::max<std::int64_t>(0, least - 1), least, least + 1, most, most + 1};
    if (most > 0) list.insert(most - 1);
    for (int i = 0; i < 5; ++i) list.insert(random_.between(least, most));
    budgets_.assign(list.begin(), list.end());
  }

  void check_order() {
    bool is_cheaper = true;
    bool is_within = true;
    bool is_lower = true;
    bool is_empty = true;
    const PlanResult* before = nullptr;  // of the next smaller budget that some plan fits
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const PlanResult& result = results_[i];
      if (result.unplanned_peak_bytes <= budgets_[i])
        is_empty = is_empty && result.termination == Termination::kFits && result.plan.units.empty();
      if (result.termination == Termination::kInfeasible) {
        is_cheaper = is_cheaper && before == nullptr;
        continue;
      }
      is_within = is_within && result.peak_bytes <= budgets_[i];
      if (before != nullptr) {
        is_cheaper = is_cheaper && result.recompute_ps <= before->recompute_ps;
        is_lower = is_lower && before->peak_bytes <= result.peak_bytes;
      }
      before = &result;
    }
    note(Law::kMoreBudgetNeverCostsMore, is_cheaper);
    note(Law::kPeakWithinBudget, is_within);
    note(Law::kPeakFallsWithBudget, is_lower);
    note(Law::kEnoughBudgetNoPlan, is_empty);
  }

  // The state of the random generator has a size of its own.
  void check_scales(const RandomTraining& t) {
    const std::int64_t k = random_.between(2, 7);
    std::int64_t all_bytes = 1;
    for (const Storage& storage : t.step.tables().storages) all_bytes += storage.bytes;
    if (!wishes_.is_random && all_bytes < kMostBytes / k) {
      RandomTrainingOptions larger = wishes_;
      larger.bytes_factor = k;
      const RandomTraining other = random_training(seed_, larger);
      note(Law::kBytesScale, same_plans(other, k, 1));
    }
    RandomTraining slower{t.step, t.times};
    for (std::int64_t& ps : slower.times.op_ps) ps *= k;
    slower.times.region_ps *= k;
    slower.times.region_save_ps *= k;
    slower.times.region_rng_ps *= k;
    note(Law::kTimesScale, same_plans(slower, 1, k));
  }

  bool same_plans(const RandomTraining& other, std::int64_t bytes_factor, std::int64_t times_factor) {
    const cost::StepCost cost = cost_of(other.times);
    const PreparedStep prepared(other.step, cost, {});
    for (std::size_t i = 0; i < budgets_.size(); ++i) {
      const PlanResult result = prepared.plan(budgets_[i] * bytes_factor, PlannerOptions().max_work);
      if (result.plan != results_[i].plan || result.termination != results_[i].termination ||
          result.peak_bytes != results_[i].peak_bytes * bytes_factor ||
          result.recompute_ps != results_[i].recompute_ps * times_factor ||
          result.bound_ps != results_[i].bound_ps * times_factor)
        return false;
    }
    return true;
  }

  void check_names() {
    RandomTrainingOptions renamed = wishes_;
    renamed.name = "layers_";
    note(Law::kNamesDoNotMatter, same_plans(random_training(seed_, renamed), 1, 1));
  }

  void check_numbers(const RandomTraining& t) {
    const Step permuted = permute_ids(t.step, seed_);
    planner::Times times = t.times;
    times.op_ps = moved_times(t.step, permuted, t.times.op_ps);
    const cost::StepCost cost = cost_of(times);
    const PreparedStep prepared(permuted, cost, {});
    bool is_same = true;
    for (std::size_t i = 0; i < budgets_.size(); ++i) {
      const PlanResult result = prepared.plan(budgets_[i], PlannerOptions().max_work);
      is_same = is_same && text_of(permuted, result, budgets_[i]) == text_of(t.step, results_[i], budgets_[i]);
    }
    note(Law::kNumbersDoNotMatter, is_same);
  }

  // Modules and parameters are listed in the order of their ids, which is the model's; here by name. The plan itself
  // does not depend on it.
  static std::string text_of(const Step& step, const PlanResult& result, std::int64_t budget) {
    PlannerOptions options;
    options.budget_bytes = budget;
    plan::PortablePlan words = plan::describe(step, result.plan, planner::facts_of(step, result, "cpu", options));
    const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
    std::stable_sort(words.modules.begin(), words.modules.end(), by_name);
    std::stable_sort(words.parameters.begin(), words.parameters.end(), by_name);
    return plan::write_plan(words);
  }

  void check_free_op() {
    RandomTrainingOptions more = wishes_;
    more.free_op = static_cast<int>(random_.between(0, 5));
    const RandomTraining other = random_training(seed_, more);
    const cost::StepCost cost = cost_of(other.times);
    const PreparedStep prepared(other.step, cost, {});
    bool is_same = true;
    for (std::size_t i = 0; i < budgets_.size(); ++i) {
      const PlanResult result = prepared.plan(budgets_[i], PlannerOptions().max_work);
      // a little more work may be too much
      if (!is_proved(result) || !result.is_smallest_proved || !results_[i].is_smallest_proved) {
        ++counts_.unknown;
        return;
      }
      is_same = is_same && result.termination == results_[i].termination &&
                (result.termination == Termination::kInfeasible || result.recompute_ps == results_[i].recompute_ps) &&
                result.bound_ps == results_[i].bound_ps &&
                result.smallest_peak_bytes == results_[i].smallest_peak_bytes &&
                result.unplanned_peak_bytes == results_[i].unplanned_peak_bytes;
    }
    note(Law::kFreeOpDoesNotMatter, is_same);
  }

  void check_breakpoints(const PreparedStep& prepared) {
    // As much work for a budget as planning for it has: with less, some of its points are not proved.
    planner::FrontierOptions options = planner::default_frontier_options(true);
    options.max_work_each = PlannerOptions().max_work;
    options.max_work = 100 * options.max_work_each;
    const planner::Frontier frontier = planner::find_frontier(prepared, options);
    const bool is_known = frontier.missing.empty() && frontier.is_smallest_proved &&
                          std::all_of(frontier.points.begin(), frontier.points.end(),
                                      [](const planner::FrontierPoint& point) { return point.is_proved(); });
    if (!is_known) {
      ++counts_.unknown;
      return;
    }
    bool holds = true;
    const auto is = [&](std::int64_t budget, const planner::FrontierPoint* point) {
      if (budget < 0) return true;
      const PlanResult result = prepared.plan(budget, PlannerOptions().max_work);
      if (point == nullptr) return result.termination == Termination::kInfeasible;
      return is_proved(result) && result.recompute_ps == point->recompute_ps;
    };
    for (std::size_t i = 0; i < frontier.points.size() && i < 20; ++i) {
      const planner::FrontierPoint& point = frontier.points[i];
      const bool is_beside =
          i + 1 < frontier.points.size() && frontier.points[i + 1].budget_bytes == point.budget_bytes + 1;
      holds = holds && is(point.budget_bytes, &point) &&
              is(point.budget_bytes - 1, i == 0 ? nullptr : &frontier.points[i - 1]) &&
              is(point.budget_bytes + 1, &frontier.points[is_beside ? i + 1 : i]);
    }
    note(Law::kBreakpoints, holds);
  }

  void note(Law law, bool holds) {
    const auto i = static_cast<std::size_t>(law);
    ++counts_.instances[i];
    if (holds) return;
    ++counts_.broken[i];
    if (counts_.faults.size() < kMostFaults) counts_.faults.push_back(fmt::format("seed {}: {}", seed_, kLawNames[i]));
  }

  std::uint64_t seed_;
  LawCounts& counts_;
  Random random_;
  RandomTrainingOptions wishes_;
  std::vector<std::int64_t> budgets_;
  std::vector<PlanResult> results_;
};

}  // namespace

void LawCounts::add(const LawCounts& other) {
  for (std::size_t i = 0; i < instances.size(); ++i) {
    instances[i] += other.instances[i];
    broken[i] += other.broken[i];
  }
  steps += other.steps;
  unproved += other.unproved;
  unknown += other.unknown;
  for (const std::string& one : other.faults)
    if (faults.size() < kMostFaults) faults.push_back(one);
}

bool LawCounts::is_clean() const {
  return std::all_of(broken.begin(), broken.end(), [](std::int64_t count) { return count == 0; });
}

std::string LawCounts::line() const {
  std::int64_t all = 0;
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    all += instances[i];
    wrong += broken[i];
  }
  return fmt::format("{} steps, {} left out: {} instances of laws, {} broken", steps, unproved, all, wrong);
}

std::string LawCounts::text() const {
  std::string text = fmt::format(
      "{} steps; {} more left out, since a search reached its limit or the model leaves choices out; {} times a law "
      "was "
      "not tried, since an answer it is about was not proved\n",
      steps, unproved, unknown);
  for (std::size_t i = 0; i < instances.size(); ++i)
    text += fmt::format("  {:<40} {:>8} instances, {} broken\n", kLawNames[i], instances[i], broken[i]);
  for (const std::string& one : faults) text += one + "\n";
  return text;
}

void try_laws(std::uint64_t seed, LawCounts& counts) { Laws(seed, counts).run(); }

}  // namespace tidemark::test
