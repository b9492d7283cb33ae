#include "tidemark/planner/space.h"

#include <algorithm>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/base/glob.h"
#include "tidemark/plan/overwrite.h"
#include "tidemark/planner/op_pattern.h"

namespace tidemark::planner {

namespace {

using namespace step;
using plan::EventIndex;

constexpr std::uint32_t kNever = EventIndex::kNever;

class Finder {
 public:
  Finder(const Step& step, const Times& times, const SpaceOptions& options)
      : step_(step), t_(step.tables()), times_(times), options_(options) {}

  Space run() {
    s_.index = plan::index_events(step_);
    look_at_saves();
    look_at_patterns();
    std::vector<std::pair<std::uint32_t, CallId>> order;
    for (std::uint32_t i = 0; i < t_.calls.size(); ++i) order.emplace_back(s_.index.regions[i].begin, CallId(i));
    std::sort(order.begin(), order.end());
    s_.exclusions.assign(t_.calls.size(), Exclusion::kNone);
    for (const auto& [begin, call] : order) add(call);
    return std::move(s_);
  }

 private:
  void look_at_saves() {
    released_.assign(t_.saves.size(), kNever);
    unpacked_.assign(t_.saves.size(), kNever);
    for (std::uint32_t at = 0; at < t_.events.size(); ++at) {
      const Event& event = t_.events[at];
      if (event.kind == EventKind::kRelease) released_[event.id] = at;
      if (event.kind == EventKind::kUnpack && unpacked_[event.id] == kNever) unpacked_[event.id] = at;
    }
  }

  void look_at_patterns() {
    may_be_unit_.assign(t_.modules.size(), options_.units.empty() ? 1 : 0);
    std::vector<std::string> names(t_.modules.size());
    for (std::uint32_t i = 0; i < names.size(); ++i) names[i] = step_.fqn(ModuleId(i));
    const auto mark = [&](const std::vector<std::string>& patterns, std::uint8_t value) {
      for (const std::string& pattern : patterns) {
        bool any = false;
        for (std::uint32_t i = 0; i < names.size(); ++i) {
          if (!matches_glob(names[i], pattern)) continue;
          any = true;
          may_be_unit_[i] = value;
        }
        if (!any) refuse(pattern, "a module's name such as layers.0 or layers.*");
      }
    };
    mark(options_.units, 1);
    mark(options_.not_units, 0);
    mark_ops(options_.never_save, Freedom::kNeverSave);
    mark_ops(options_.always_save, Freedom::kAlwaysSave);  // where both are said, the op is saved
  }

  void mark_ops(const std::vector<std::string>& patterns, Freedom freedom) {
    for (const std::string& text : patterns) {
      const OpPattern pattern(step_, text);
      bool any = false;
      wished_.resize(t_.ops.size(), Freedom::kFree);
      for (std::uint32_t i = 0; i < t_.ops.size(); ++i) {
        if (!pattern.matches(OpId(i))) continue;
        any = true;
        wished_[i] = freedom;
      }
      if (!any) refuse(text, "an op of the forward pass, as in layers.*.mlp::aten.mm");
    }
  }

  [[noreturn]] static void refuse(const std::string& pattern, std::string_view expected) {
    throw Error(
        {.kind = ErrorKind::kInput,
         .place = "pattern '" + pattern + "'",
         .problem = "it matches nothing in this step",
         .expected = std::string(expected),
         .got = {},
         .remedy = "`tidemark memory STEP --by module` lists modules, `tidemark inspect STEP --dump` every op"});
  }

  void add(CallId call) {
    Candidate candidate;
    const Exclusion reason = look_at(call, candidate);
    ++s_.excluded[static_cast<std::size_t>(reason)];
    s_.exclusions[call.index()] = reason;
    if (reason == Exclusion::kNone) s_.candidates.push_back(std::move(candidate));
  }

  Exclusion look_at(CallId call, Candidate& c) {
    const PassKind kind = step_[step_[call].pass].kind;
    if (kind != PassKind::kForward && kind != PassKind::kLoss) return Exclusion::kNotForward;
    c.call = call;
    c.region = s_.index.regions[call.index()];
    if (const Exclusion reason = look_at_region(c); reason != Exclusion::kNone) return reason;
    if (plan::has_several_backwards(step_, s_.index, call)) return Exclusion::kSeveralBackwards;
    if (plan::find_overwrite(step_, s_.index, call)) return Exclusion::kOverwritten;
    if (may_be_unit_[step_[call].module.index()] == 0) return Exclusion::kPattern;
    c.early_stop = options_.early_stop;
    c.stop = c.early_stop ? c.last_pack + 1 : c.region.end;
    c.preserve_rng = options_.rng == RngRule::kAlways || (options_.rng == RngRule::kWhenNeeded && has_random_);
    return add_choices(c);
  }

  // One walk over the region: what is in it that matters.
  Exclusion look_at_region(Candidate& c) {
    bool any_save = false;
    save_count_ = 0;
    bool all_released = true;
    std::uint32_t last_release = 0;
    c.trigger = kNever;
    has_random_ = false;
    for (std::uint32_t at = c.region.begin; at < c.region.end; ++at) {
      const Event& event = t_.events[at];
      switch (event.kind) {
        case EventKind::kNode:
        case EventKind::kDone:
        case EventKind::kUnpack:
        case EventKind::kDrop:
          return Exclusion::kBackwardInside;
        case EventKind::kBegin: {
          const Op& op = t_.ops[event.id];
          if (op.region.has_value() && step_[op.region].kind == RegionKind::kCheckpoint) return Exclusion::kNested;
          has_random_ = has_random_ || op.flags.has(OpFlag::kRandom);
          for (const Output& out : step_.outputs(op))
            if (out.alias == AliasKind::kMutates && step_[step_[out.tensor].storage].role == Role::kBuffer)
              c.changes_buffers = true;
          break;
        }
        case EventKind::kPack:
          if (!t_.saves[event.id].hooked) break;
          any_save = true;
          ++save_count_;
          c.last_pack = at;
          c.trigger = std::min(c.trigger, unpacked_[event.id]);
          all_released = all_released && released_[event.id] != kNever;
          if (released_[event.id] != kNever) last_release = std::max(last_release, released_[event.id]);
          break;
        default:
          break;
      }
    }
    if (!any_save) return Exclusion::kNoSaves;
    c.frame_end = all_released ? std::max(c.region.end, last_release) : kNever;
    return Exclusion::kNone;
  }

  Exclusion add_choices(Candidate& c) {
    const bool is_recomputed = c.trigger != kNever;
    c.base_ps = times_.region_ps + save_count_ * times_.region_save_ps + (c.preserve_rng ? times_.region_rng_ps : 0);
    for (plan::Group& group : plan::find_groups(step_, s_.index, c.call)) {
      Choice choice;
      choice.is_reached = false;
      choice.freedom = freedom_of(group, c);
      if (choice.freedom == Freedom::kAlwaysSave && !group.can_save()) return Exclusion::kCannotSave;
      std::int64_t group_ps = 0;  // what runs again when nothing is saved
      for (const OpId op : group.ops)
        if (is_recomputed && s_.index.begins[op.index()] < c.stop) group_ps += times_.op_ps[op.index()];
      for (const OpId op : group.savers) {
        if (!is_recomputed || s_.index.begins[op.index()] >= c.stop) continue;
        choice.is_reached = true;
        choice.time_ps += times_.op_ps[op.index()];
      }
      if (choice.freedom == Freedom::kFree && !choice.is_reached) choice.freedom = Freedom::kNeverSave;
      c.base_ps += group_ps - (choice.freedom == Freedom::kNeverSave ? 0 : choice.time_ps);
      if (!group.can_save()) continue;
      choice.savers = std::move(group.savers);
      c.choices.push_back(std::move(choice));
    }
    return Exclusion::kNone;
  }

  Freedom freedom_of(const plan::Group& group, const Candidate& c) const {
    if (group.must_save || (group.is_random && !c.preserve_rng)) return Freedom::kAlwaysSave;
    if (!group.can_save()) return Freedom::kNeverSave;
    Freedom wish = Freedom::kFree;
    if (!wished_.empty())
      for (const OpId op : group.ops)
        if (wished_[op.index()] != Freedom::kFree && wish != Freedom::kAlwaysSave) wish = wished_[op.index()];
    return wish;
  }

  const Step& step_;
  const StepTables& t_;
  const Times& times_;
  const SpaceOptions& options_;
  Space s_;
  std::vector<std::uint32_t> released_;  // by save
  std::vector<std::uint32_t> unpacked_;  // by save: first
  std::vector<std::uint8_t> may_be_unit_;
  std::vector<Freedom> wished_;  // by op; empty without patterns
  bool has_random_ = false;
  std::int64_t save_count_ = 0;
};

}  // namespace

Space find_space(const Step& step, const Times& times, const SpaceOptions& options) {
  return Finder(step, times, options).run();
}

plan::Unit make_unit(const Candidate& candidate, std::span<const std::uint8_t> saved) {
  plan::Unit unit{.call = candidate.call,
                  .saved_ops = {},
                  .preserve_rng = candidate.preserve_rng,
                  .early_stop = candidate.early_stop};
  for (std::size_t i = 0; i < candidate.choices.size(); ++i)
    if (saved[i] != 0)
      unit.saved_ops.insert(unit.saved_ops.end(), candidate.choices[i].savers.begin(),
                            candidate.choices[i].savers.end());
  std::sort(unit.saved_ops.begin(), unit.saved_ops.end());
  return unit;
}

Rerun rerun_of(const Step& step, const EventIndex& index, const plan::Plan& plan) {
  const StepTables& t = step.tables();
  std::vector<std::uint8_t> is_unpacked(t.saves.size(), 0);
  for (const Event& event : t.events)
    if (event.kind == EventKind::kUnpack) is_unpacked[event.id] = 1;
  Rerun rerun;
  for (const plan::Unit& unit : plan.units) {
    ++rerun.regions.regions;
    if (unit.preserve_rng) ++rerun.regions.random_states;
    const plan::EventRange region = index.regions[unit.call.index()];
    std::uint32_t stop = region.end;
    bool is_recomputed = false;
    for (std::uint32_t at = region.begin; at < region.end; ++at) {
      const Event& event = t.events[at];
      if (event.kind != EventKind::kPack || !t.saves[event.id].hooked) continue;
      if (unit.early_stop) stop = at + 1;
      ++rerun.regions.saves;
      is_recomputed = is_recomputed || is_unpacked[event.id] != 0;
    }
    if (!is_recomputed) continue;
    for (std::uint32_t at = region.begin; at < stop; ++at)
      if (t.events[at].kind == EventKind::kBegin && unit.decision(OpId(t.events[at].id)) == plan::Decision::kRecompute)
        rerun.ops.emplace_back(t.events[at].id);
  }
  return rerun;
}

std::int64_t recompute_ps(const Step& step, const EventIndex& index, const Times& times, const plan::Plan& plan) {
  const Rerun rerun = rerun_of(step, index, plan);
  std::int64_t sum = rerun.regions.regions * times.region_ps + rerun.regions.saves * times.region_save_ps +
                     rerun.regions.random_states * times.region_rng_ps;
  for (const OpId op : rerun.ops) sum += times.op_ps[op.index()];
  return sum;
}

}  // namespace tidemark::planner
