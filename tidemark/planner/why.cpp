#include "tidemark/planner/why.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/base/glob.h"
#include "tidemark/planner/op_pattern.h"
#include "tidemark/step/folded_name.h"
#include "tidemark/step/op_name.h"

namespace tidemark::planner {

namespace {

using namespace step;

bool is_forward(const Step& step, PassId pass) {
  const PassKind kind = step[pass].kind;
  return kind == PassKind::kForward || kind == PassKind::kLoss;
}

// An answer for one call or op, before equal ones are folded.
struct Answer {
  FoldedName name;
  std::string op;  // empty: about a call
  WhyRow row;
  std::function<void(plan::Plan&)> opposite;  // makes the opposite decision in a plan
};

class Asking {
 public:
  Asking(const PreparedStep& prepared, const PlanResult& result)
      : p_(prepared), step_(prepared.step()), result_(result) {
    for (const Candidate& candidate : p_.space().candidates) candidate_of_.emplace(candidate.call, &candidate);
    for (std::size_t i = 0; i < result.plan.units.size(); ++i) unit_of_.emplace(result.plan.units[i].call, i);
  }

  void ask_about_modules(std::string_view pattern) {
    for (std::uint32_t i = 0; i < step_.tables().calls.size(); ++i) {
      const CallId call(i);
      if (!is_forward(step_, step_[call].pass) || !matches_glob(name_of_call(call), pattern)) continue;
      answer_call(call);
    }
  }

  void ask_about_ops(std::string_view text) {
    const OpPattern pattern(step_, text);
    for (std::uint32_t i = 0; i < step_.tables().ops.size(); ++i) {
      const OpId op(i);
      if (!pattern.matches(op)) continue;
      answer_op(op, step_[op].call.has_value() ? name_of_call(step_[op].call) : std::string());
    }
  }

  std::vector<WhyRow> fold(std::int64_t room_bytes) {
    struct Folded {
      WhyRow row;
      std::string pattern;
      std::string op;
      std::vector<std::int64_t> numbers;
      plan::Plan changed;
      bool is_changed = false;
    };
    std::vector<Folded> rows;
    std::map<std::tuple<std::string, std::string, WhyKind, Exclusion, GroupReason, std::string, std::string,
                        std::int64_t, std::int64_t>,
             std::size_t>
        row_of;
    for (const Answer& answer : answers_) {
      const WhyRow& row = answer.row;
      const auto [at, is_new] = row_of.emplace(std::tuple(answer.name.pattern, answer.op, row.kind, row.exclusion,
                                                          row.reason, row.units, row.with, row.bytes_each, row.ps_each),
                                               rows.size());
      if (is_new) rows.push_back({row, answer.name.pattern, answer.op, {}, result_.plan, false});
      Folded& folded = rows[at->second];
      ++folded.row.count;
      if (answer.name.number >= 0) folded.numbers.push_back(answer.name.number);
      if (!answer.opposite) continue;
      answer.opposite(folded.changed);
      folded.is_changed = true;
    }
    std::vector<WhyRow> result;
    for (Folded& folded : rows) {
      folded.row.subject = unfold_names(folded.pattern, folded.numbers);
      if (folded.row.subject.empty()) folded.row.subject = "(the whole model)";
      if (!folded.op.empty()) folded.row.subject += "::" + folded.op;
      if (folded.is_changed) {
        const Judged judged = p_.judge(std::move(folded.changed));
        folded.row.opposite = WhatIf{judged.peak_bytes, judged.recompute_ps, judged.peak_bytes <= room_bytes};
      }
      result.push_back(std::move(folded.row));
    }
    return result;
  }

  bool has_answers() const { return !answers_.empty(); }

 private:
  std::string name_of_call(CallId call) const { return step_.fqn(step_[call].module); }
  std::string folded_name_of(CallId call) const { return fold_name(name_of_call(call)).pattern; }

  const plan::Unit* unit_around(CallId call) const {
    for (CallId at = call; at.has_value(); at = step_[at].parent)
      if (const auto unit = unit_of_.find(at); unit != unit_of_.end()) return &result_.plan.units[unit->second];
    return nullptr;
  }

  std::vector<CallId> units_inside(CallId call) const {
    std::vector<CallId> inside;
    for (const plan::Unit& unit : result_.plan.units)
      for (CallId at = step_[unit.call].parent; at.has_value(); at = step_[at].parent)
        if (at == call) inside.push_back(unit.call);
    return inside;
  }

  // The unit with everything recomputed that may be.
  static plan::Unit plainest(const Candidate& candidate) {
    std::vector<std::uint8_t> saved;
    for (const Choice& choice : candidate.choices) saved.push_back(choice.freedom == Freedom::kAlwaysSave ? 1 : 0);
    return make_unit(candidate, saved);
  }

  static void remove_units(plan::Plan& plan, const std::vector<CallId>& calls) {
    std::erase_if(plan.units, [&](const plan::Unit& unit) {
      return std::find(calls.begin(), calls.end(), unit.call) != calls.end();
    });
  }

  void add_unit(plan::Plan& plan, const Candidate& candidate) const {
    const auto begin = [&](CallId call) { return p_.space().index.regions[call.index()].begin; };
    const auto at = std::find_if(plan.units.begin(), plan.units.end(),
                                 [&](const plan::Unit& unit) { return begin(unit.call) > begin(candidate.call); });
    plan.units.insert(at, plainest(candidate));
  }

  void answer_call(CallId call) {
    Answer answer{fold_name(name_of_call(call)), {}, {}, {}};
    WhyRow& row = answer.row;
    const plan::Unit* around = unit_around(call);
    const std::vector<CallId> inside = units_inside(call);
    const auto candidate = candidate_of_.find(call);
    if (around != nullptr && around->call == call) {
      row.kind = WhyKind::kUnit;
      for (const GroupFacts& group : groups_of(*around)) {
        if (group.is_saved)
          row.bytes_each += group.bytes;
        else
          row.ps_each += group.time_ps;
      }
      answer.opposite = [call](plan::Plan& plan) { remove_units(plan, {call}); };
    } else if (around != nullptr) {
      row.kind = WhyKind::kInsideUnit;
      row.units = folded_name_of(around->call);
    } else if (candidate == candidate_of_.end()) {
      row.kind = WhyKind::kExcluded;
      row.exclusion = p_.space().exclusions[call.index()];
    } else {
      row.kind = inside.empty() ? WhyKind::kNotNeeded : WhyKind::kHoldsUnits;
      if (!inside.empty()) row.units = folded_name_of(inside.front());
      answer.opposite = [this, inside, c = candidate->second](plan::Plan& plan) {
        remove_units(plan, inside);
        add_unit(plan, *c);
      };
    }
    answers_.push_back(std::move(answer));
  }

  void answer_op(OpId op, const std::string& module) {
    Answer answer{fold_name(module), std::string(step_.text(step_[op].name)), {}, {}};
    WhyRow& row = answer.row;
    const plan::Unit* unit = unit_around(step_[op].call);
    if (unit == nullptr) {
      row.kind = WhyKind::kNoUnit;
      row.ps_each = p_.times().op_ps[op.index()];
      answers_.push_back(std::move(answer));
      return;
    }
    row.units = folded_name_of(unit->call);
    for (const GroupFacts& group : groups_of(*unit)) {
      if (std::find(group.ops.begin(), group.ops.end(), op) == group.ops.end()) continue;
      // Decided once, told once.
      if (!told_.insert({group.ops.front(), step_[op].call, step_[op].name}).second) return;
      row.kind = group.is_saved ? WhyKind::kSaved : WhyKind::kRecomputed;
      row.reason = group.reason;
      row.bytes_each = group.bytes;
      row.ps_each = group.time_ps;
      for (const OpId saver : group.savers)
        if (saver != op && group.savers.size() > 1)
          row.with += (row.with.empty() ? "" : ", ") + std::string(op_family(step_.text(step_[saver].name)));
      if (group.reason == GroupReason::kChosen || group.reason == GroupReason::kAskedFor)
        answer.opposite = [call = unit->call, savers = group.savers, is_saved = group.is_saved](plan::Plan& plan) {
          set_saved(plan, call, savers, !is_saved);
        };
      break;
    }
    answers_.push_back(std::move(answer));
  }

  const std::vector<GroupFacts>& groups_of(const plan::Unit& unit) {
    auto at = groups_.find(unit.call);
    if (at == groups_.end()) at = groups_.emplace(unit.call, facts_of_groups(p_, unit)).first;
    return at->second;
  }

  static void set_saved(plan::Plan& plan, CallId call, const std::vector<OpId>& savers, bool is_saved) {
    for (plan::Unit& unit : plan.units) {
      if (unit.call != call) continue;
      std::set<OpId> saved(unit.saved_ops.begin(), unit.saved_ops.end());
      for (const OpId op : savers)
        if (is_saved)
          saved.insert(op);
        else
          saved.erase(op);
      unit.saved_ops.assign(saved.begin(), saved.end());
    }
  }

  const PreparedStep& p_;
  const Step& step_;
  const PlanResult& result_;
  std::map<CallId, const Candidate*> candidate_of_;
  std::map<CallId, std::size_t> unit_of_;
  std::map<CallId, std::vector<GroupFacts>> groups_;
  std::set<std::tuple<OpId, CallId, StringId>> told_;  // a group's first op, and what was asked about
  std::vector<Answer> answers_;
};

}  // namespace

std::vector<WhyRow> why(const PreparedStep& prepared, const PlanResult& result, const std::string& pattern,
                        std::int64_t room_bytes) {
  Asking asking(prepared, result);
  const bool is_of_ops = pattern.find("::") != std::string::npos;
  if (!is_of_ops) asking.ask_about_modules(pattern);
  if (!asking.has_answers()) asking.ask_about_ops(pattern);
  if (!asking.has_answers())
    throw Error(
        {.kind = ErrorKind::kInput,
         .place = "pattern '" + pattern + "'",
         .problem = "it matches nothing in the forward pass of this step",
         .expected = "a module's name such as layers.0 or layers.*, or an op's, as in layers.*.mlp::aten.mm",
         .got = {},
         .remedy = "`tidemark memory STEP --by module` lists modules, `tidemark inspect STEP --dump` every op"});
  return asking.fold(room_bytes);
}

}  // namespace tidemark::planner
