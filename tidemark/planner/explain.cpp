#include "tidemark/planner/explain.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "tidemark/memory/replay.h"
#include "tidemark/planner/convex.h"
#include "tidemark/step/folded_name.h"
#include "tidemark/step/numbered_names.h"
#include "tidemark/step/op_name.h"

namespace tidemark::planner {

namespace {

using namespace step;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

memory::Timeline replay_for(const PreparedStep& prepared, const plan::Plan& plan) {
  const PlannerOptions& options = prepared.options();
  return memory::replay(prepared.step(), plan,
                        {.workspace = options.workspace,
                         .round_to_bytes = rounding_of(options),
                         .keep_alive_at_peak = false,
                         .runner_up_count = 64});
}

// Whether a call, or one around it, is of one of these modules.
bool is_inside(const Step& step, CallId call, const std::set<ModuleId>& modules) {
  for (CallId at = call; at.has_value(); at = step[at].parent)
    if (modules.contains(step[at].module)) return true;
  return false;
}

bool makes_a_loss(std::string_view op) {
  for (const std::string_view part : {"nll_loss", "log_softmax", "cross_entropy", "mse_loss", "_loss"})
    if (op.find(part) != std::string_view::npos) return true;
  return false;
}

// The last event of a block in the forward pass.
std::uint32_t end_of_blocks(const Step& step, const std::set<ModuleId>& blocks) {
  const StepTables& t = step.tables();
  std::uint32_t end = 0;
  for (std::uint32_t at = 0; at < t.events.size(); ++at)
    if (t.events[at].kind == EventKind::kExit && blocks.contains(t.calls[t.events[at].id].module)) end = at;
  return end;
}

std::vector<BindingMoment> highest_moments(const PreparedStep& prepared, const memory::Timeline& timeline,
                                           std::int64_t room_bytes, std::size_t most) {
  const Step& step = prepared.step();
  std::vector<memory::Moment> all = {timeline.peak};
  all.insert(all.end(), timeline.runners_up.begin(), timeline.runners_up.end());
  std::vector<BindingMoment> found;
  std::map<std::tuple<std::string, std::string_view, std::uint32_t, bool>, std::size_t> row_of;
  for (const memory::Moment& moment : all) {
    const std::string module =
        moment.call.has_value() ? fold_name(step.fqn(step[moment.call].module)).pattern : std::string();
    const std::string_view op = moment.op.has_value() ? step.text(step[moment.op].name) : std::string_view();
    const std::uint32_t pass = moment.pass.has_value() ? static_cast<std::uint32_t>(step[moment.pass].kind) : 0xFFu;
    const auto [at, is_new] =
        row_of.emplace(std::tuple(module, op, pass, moment.unit != memory::kNoUnit), found.size());
    if (is_new)
      found.push_back({moment, place_of(step, moment), room_bytes - moment.total_bytes, 1});
    else
      ++found[at->second].count;
  }
  if (found.size() > most) found.resize(most);
  return found;
}

Price find_price(const PreparedStep& prepared, const PlanResult& result, const ExplainOptions& options) {
  const auto is_proved = [](const PlanResult& r) {
    return r.termination == Termination::kOptimal || r.termination == Termination::kFits;
  };
  // Between the best plans: what another method's plan loses at this budget is no price of memory.
  PlanResult here;
  if (!options.is_searched) here = prepared.plan(options.room_bytes, options.max_work);
  const PlanResult& best = options.is_searched ? result : here;
  const std::int64_t range = prepared.none().peak_bytes - prepared.smallest().peak_bytes;
  Price price;
  price.step_bytes = kGiB;
  while (price.step_bytes > range && price.step_bytes > 1) price.step_bytes >>= 10;
  const PlanResult more = prepared.plan(options.room_bytes + price.step_bytes, options.max_work);
  price.more_spares_ps = std::max<std::int64_t>(0, best.recompute_ps - more.recompute_ps);
  price.is_more_proved = is_proved(best) && is_proved(more);
  const std::int64_t less_room = options.room_bytes - price.step_bytes;
  price.can_be_less = less_room >= prepared.smallest().peak_bytes;
  if (!price.can_be_less) return price;
  const PlanResult less = prepared.plan(less_room, options.max_work);
  price.less_costs_ps = std::max<std::int64_t>(0, less.recompute_ps - best.recompute_ps);
  price.is_less_proved = is_proved(best) && is_proved(less);
  return price;
}

// "mm", "native_dropout, mul": each name once.
std::string ops_text(const Step& step, const std::vector<OpId>& ops) {
  std::string text;
  std::set<std::string_view> seen;
  for (const OpId op : ops) {
    const std::string_view name = op_family(step.text(step[op].name));
    if (seen.insert(name).second) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

std::string inner_name(const Step& step, CallId unit, OpId op) {
  if (!step[op].call.has_value()) return "";
  const std::string outer = step.fqn(step[unit].module);
  const std::string inner = step.fqn(step[step[op].call].module);
  if (inner.size() <= outer.size() || !inner.starts_with(outer)) return "";
  return inner.substr(outer.empty() ? 0 : outer.size() + 1);
}

// Between a unit's name and that of a module in it, where no name has it: a part of its own.
constexpr std::string_view kInside = ".\x1f.";

std::vector<GroupRow> find_groups_of(const PreparedStep& prepared, const plan::Plan& plan) {
  const Step& step = prepared.step();
  struct Equal {
    std::string pattern;  // of the unit's name and the name in it
    GroupRow each;
    std::vector<std::vector<std::int64_t>> numbers;
    std::vector<std::size_t> places;  // among all groups
  };
  std::vector<Equal> rows;
  std::map<std::tuple<std::string, std::string, bool, GroupReason, std::int64_t, std::int64_t>, std::size_t> row_of;
  std::size_t place = 0;
  for (const plan::Unit& unit : plan.units) {
    const std::string outer = step.fqn(step[unit.call].module) + std::string(kInside);
    for (const GroupFacts& group : facts_of_groups(prepared, unit)) {
      const std::vector<OpId>& told = group.savers.empty() ? group.ops : group.savers;
      NumberedName name = split_numbers(outer + inner_name(step, unit.call, told.front()));
      GroupRow row{{}, {}, ops_text(step, told), group.is_saved, group.reason, 0, group.bytes, group.time_ps};
      const auto [at, is_new] = row_of.emplace(
          std::tuple(name.pattern, row.ops, row.is_saved, row.reason, row.bytes_each, row.ps_each), rows.size());
      if (is_new) rows.push_back({std::move(name.pattern), std::move(row), {}, {}});
      rows[at->second].numbers.push_back(std::move(name.numbers));
      rows[at->second].places.push_back(place++);
    }
  }
  std::vector<std::pair<std::size_t, GroupRow>> told;
  for (const Equal& equal : rows)
    for (const NamesTogether& names : fold_names(equal.pattern, equal.numbers)) {
      GroupRow row = equal.each;
      const std::size_t inside = names.text.find(kInside);
      row.units = names.text.substr(0, inside);
      row.module = names.text.substr(inside + kInside.size());
      row.count = static_cast<std::int64_t>(names.members.size());
      told.emplace_back(equal.places[names.members.front()], std::move(row));
    }
  std::sort(told.begin(), told.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<GroupRow> result;
  for (auto& [at, row] : told) result.push_back(std::move(row));
  std::stable_sort(result.begin(), result.end(), [](const GroupRow& a, const GroupRow& b) {
    if (a.is_saved != b.is_saved) return a.is_saved;
    return a.ps_per_gib() > b.ps_per_gib();
  });
  return result;
}

std::vector<ExcludedCalls> find_excluded(const PreparedStep& prepared) {
  constexpr std::size_t kMostExamples = 3;
  const Step& step = prepared.step();
  const Space& space = prepared.space();
  std::vector<ExcludedCalls> excluded;
  for (std::size_t reason = 1; reason < kExclusionNames.size(); ++reason) {
    ExcludedCalls calls{static_cast<Exclusion>(reason), space.excluded[reason], {}};
    if (calls.count == 0) continue;
    for (std::uint32_t i = 0; i < space.exclusions.size() && calls.examples.size() < kMostExamples; ++i) {
      if (space.exclusions[i] != calls.reason) continue;
      const std::string name = fold_name(step.fqn(step[CallId(i)].module)).pattern;
      if (std::find(calls.examples.begin(), calls.examples.end(), name) == calls.examples.end())
        calls.examples.push_back(name);
    }
    excluded.push_back(std::move(calls));
  }
  return excluded;
}

}  // namespace

PeakPlace place_of(const Step& step, const memory::Moment& moment) {
  if (moment.event == memory::kNoEvent) return PeakPlace::kStart;
  if (moment.unit != memory::kNoUnit) return PeakPlace::kRecompute;
  if (!moment.pass.has_value()) return PeakPlace::kOther;
  const PassKind kind = step[moment.pass].kind;
  if (kind == PassKind::kOptimizer) return PeakPlace::kOptimizer;
  if (kind == PassKind::kLoss) return PeakPlace::kHead;
  if (moment.op.has_value() && makes_a_loss(step.text(step[moment.op].name))) return PeakPlace::kHead;
  const std::vector<ModuleId> found = plan::find_blocks(step);
  const std::set<ModuleId> blocks(found.begin(), found.end());
  if (blocks.empty()) return PeakPlace::kOther;
  if (moment.call.has_value() && is_inside(step, moment.call, blocks)) return PeakPlace::kBlock;
  const std::uint32_t end = end_of_blocks(step, blocks);
  if (kind == PassKind::kForward) return moment.event > end ? PeakPlace::kHead : PeakPlace::kOther;
  // A module's backward is where its forward was.
  if (kind == PassKind::kBackward && moment.call.has_value() && step[moment.call].parent.has_value()) {
    const plan::EventIndex index = plan::index_events(step);
    return index.regions[moment.call.index()].begin > end ? PeakPlace::kHead : PeakPlace::kOther;
  }
  return PeakPlace::kOther;
}

std::vector<GroupFacts> facts_of_groups(const PreparedStep& prepared, const plan::Unit& unit) {
  const Step& step = prepared.step();
  const Space& space = prepared.space();
  const Candidate* candidate = nullptr;
  for (const Candidate& c : space.candidates)
    if (c.call == unit.call) candidate = &c;
  std::vector<GroupFacts> facts;
  for (plan::Group& group : plan::find_groups(step, space.index, unit.call)) {
    GroupFacts one;
    one.is_saved = group.can_save() && unit.decision(group.savers.front()) == plan::Decision::kSave;
    one.bytes = group.saved_bytes;
    const Choice* choice = nullptr;
    if (candidate != nullptr && group.can_save())
      for (const Choice& c : candidate->choices)
        if (!c.savers.empty() && c.savers.front() == group.savers.front()) choice = &c;
    bool is_reached = false;
    for (const OpId op : group.can_save() ? group.savers : group.ops) {
      if (candidate != nullptr &&
          (candidate->trigger == plan::EventIndex::kNever || space.index.begins[op.index()] >= candidate->stop))
        continue;
      is_reached = true;
      one.time_ps += prepared.times().op_ps[op.index()];
    }
    if (group.must_save || (group.is_random && !unit.preserve_rng)) {
      one.reason = GroupReason::kMustSave;
    } else if (!is_reached && !one.is_saved) {
      one.reason = GroupReason::kNotReached;
    } else if (!group.can_save()) {
      one.reason = group.obstacle == plan::SaveObstacle::kChanged ? GroupReason::kChanged : GroupReason::kView;
      one.bytes = 0;
    } else if (choice != nullptr && choice->freedom != Freedom::kFree) {
      one.reason = GroupReason::kAskedFor;
    }
    one.ops = std::move(group.ops);
    one.savers = std::move(group.savers);
    facts.push_back(std::move(one));
  }
  return facts;
}

std::int64_t GroupRow::ps_per_gib() const {
  if (bytes_each <= 0) return 0;
  const Int128 ps = static_cast<Int128>(ps_each) * kGiB / bytes_each;
  return ps < Convex::kNotEnough ? static_cast<std::int64_t>(ps) : Convex::kNotEnough - 1;
}

Explanation explain(const PreparedStep& prepared, const PlanResult& result, const ExplainOptions& options) {
  Explanation explanation;
  explanation.moments =
      highest_moments(prepared, replay_for(prepared, result.plan), options.room_bytes, options.moment_count);
  if (result.termination == Termination::kOptimal || result.termination == Termination::kFeasible) {
    explanation.price = find_price(prepared, result, options);
    explanation.has_price = true;
  }
  explanation.groups = find_groups_of(prepared, result.plan);
  explanation.excluded = find_excluded(prepared);
  const memory::Timeline smallest = replay_for(prepared, prepared.smallest().plan);
  explanation.floor_bytes = prepared.smallest().peak_bytes;
  explanation.floor = highest_moments(prepared, smallest, options.room_bytes, 1).front();
  explanation.floor_by_category = smallest.peak_by_category;
  return explanation;
}

}  // namespace tidemark::planner
