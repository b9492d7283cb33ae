#include "tidemark/plan/legality.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tidemark/base/error.h"
#include "tidemark/plan/groups.h"
#include "tidemark/plan/overwrite.h"

namespace tidemark::plan {

namespace {

using namespace step;

class Checker {
 public:
  Checker(const Step& step, const EventIndex& index, const Plan& plan) : step_(step), index_(index), plan_(plan) {}

  std::vector<Violation> structure() {
    for (unit_ = 0; unit_ < plan_.units.size(); ++unit_) check_structure(plan_.units[unit_]);
    if (violations_.empty()) check_overlap();
    return std::move(violations_);
  }

  // Requires: the structure is sound.
  std::vector<Violation> meaning() {
    for (unit_ = 0; unit_ < plan_.units.size(); ++unit_) check_meaning(plan_.units[unit_]);
    return std::move(violations_);
  }

 private:
  void found(ViolationKind kind, OpId op, std::string text) {
    violations_.push_back({kind, unit_, op, std::move(text)});
  }

  std::string name(CallId call) const {
    const std::string fqn = step_.fqn(step_[call].module);
    return fmt::format("call {} of {}", call.value(), fqn.empty() ? "the root" : fqn);
  }

  std::string name(OpId op) const { return fmt::format("op {}, {},", op.value(), step_.text(step_[op].name)); }

  void check_structure(const Unit& unit) {
    if (unit.call.index() >= index_.regions.size())
      return found(ViolationKind::kNoSuchCall, {}, "the step has no such call");
    const PassKind kind = step_[step_[unit.call].pass].kind;
    if (kind != PassKind::kForward && kind != PassKind::kLoss)
      return found(ViolationKind::kNotForward, {},
                   fmt::format("{} is in a {} pass, and only forward and loss passes are checkpointed", name(unit.call),
                               name_of(kind)));
    const EventRange region = index_.regions[unit.call.index()];
    check_saved_ops(unit, region);
    for (std::uint32_t at = region.begin; at < region.end; ++at) {
      const EventKind event = step_.tables().events[at].kind;
      if (event != EventKind::kNode && event != EventKind::kDone && event != EventKind::kUnpack &&
          event != EventKind::kDrop)
        continue;
      return found(ViolationKind::kBackwardInside, {},
                   fmt::format("a backward runs inside {}, at event {}", name(unit.call), at));
    }
  }

  void check_saved_ops(const Unit& unit, EventRange region) {
    for (std::size_t i = 0; i < unit.saved_ops.size(); ++i) {
      const OpId op = unit.saved_ops[i];
      if (op.index() >= index_.begins.size() || !region.contains(index_.begins[op.index()]))
        return found(ViolationKind::kNoSuchOp, op,
                     fmt::format("op {} does not run in {}", op.value(), name(unit.call)));
      if (i > 0 && op <= unit.saved_ops[i - 1])
        return found(ViolationKind::kOrder, op,
                     fmt::format("op {} follows op {}: saved ops are listed in ascending order, each once", op.value(),
                                 unit.saved_ops[i - 1].value()));
    }
  }

  void check_overlap() {
    std::vector<std::size_t> order(plan_.units.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto region = [&](std::size_t unit) { return index_.regions[plan_.units[unit].call.index()]; };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(region(a).begin, a) < std::pair(region(b).begin, b);
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (region(order[i]).begin > region(order[i - 1]).end) continue;
      unit_ = order[i];
      const CallId outer = plan_.units[order[i - 1]].call;
      const CallId inner = plan_.units[unit_].call;
      found(ViolationKind::kOverlap, {},
            outer == inner ? fmt::format("{} is a unit twice", name(inner))
                           : fmt::format("{} lies inside {}, which is a unit too", name(inner), name(outer)));
      return;
    }
  }

  void check_meaning(const Unit& unit) {
    check_region(unit);
    for (const Group& group : find_groups(step_, index_, unit.call)) check_group(unit, group);
  }

  void check_region(const Unit& unit) {
    const EventRange region = index_.regions[unit.call.index()];
    bool any_save = false;
    for (std::uint32_t at = region.begin; at < region.end; ++at) {
      const Event& event = step_.tables().events[at];
      if (event.kind == EventKind::kPack) any_save = any_save || step_[SaveId(event.id)].hooked;
      if (event.kind != EventKind::kBegin) continue;
      const RegionId inner = step_[OpId(event.id)].region;
      if (inner.is_none() || step_[inner].kind != RegionKind::kCheckpoint) continue;
      return found(ViolationKind::kNested, OpId(event.id),
                   fmt::format("{} runs in a checkpoint of the model's own", name(OpId(event.id))));
    }
    if (!any_save) found(ViolationKind::kNoSaves, {}, fmt::format("autograd keeps nothing for {}", name(unit.call)));
    if (has_several_backwards(step_, index_, unit.call))
      found(ViolationKind::kSeveralBackwards, {},
            fmt::format("more than one backward needs {}, and each would recompute it", name(unit.call)));
    if (const auto overwrite = find_overwrite(step_, index_, unit.call))
      found(ViolationKind::kOverwritten, overwrite->op,
            fmt::format("{} writes in place into what {} reads, {}", name(overwrite->op), name(unit.call),
                        overwrite->is_inside ? "inside it" : "before it is recomputed"));
  }

  void check_group(const Unit& unit, const Group& group) {
    const auto is_saved = [&](OpId op) { return unit.decision(op) == Decision::kSave; };
    const std::size_t saved = static_cast<std::size_t>(std::count_if(group.ops.begin(), group.ops.end(), is_saved));
    if (saved > 0 && !check_saved_group(unit, group, saved)) return;
    if (saved == 0 && group.must_save)
      found(ViolationKind::kMustSave, group.ops.front(),
            fmt::format("{} must not run twice, and is recomputed", name(group.ops.front())));
    if (saved == 0 && group.is_random && !unit.preserve_rng)
      found(ViolationKind::kRandom, group.ops.front(),
            fmt::format("{} is random and recomputed, and the RNG state is not preserved", name(group.ops.front())));
  }

  // Whether what is saved of the group is just what may be.
  bool check_saved_group(const Unit& unit, const Group& group, std::size_t saved) {
    const auto is_saved = [&](OpId op) { return unit.decision(op) == Decision::kSave; };
    const OpId first = *std::find_if(group.ops.begin(), group.ops.end(), is_saved);
    if (!group.can_save()) {
      found(ViolationKind::kCannotSave, first,
            fmt::format("{} cannot be saved: {}", name(first), obstacle_text(group.obstacle)));
      return false;
    }
    for (const OpId op : group.savers)
      if (!is_saved(op)) {
        found(ViolationKind::kPartOfGroup, op,
              fmt::format("{} is recomputed while {} is saved, and they belong together", name(op), name(first)));
        return false;
      }
    if (saved == group.savers.size()) return true;
    found(ViolationKind::kCannotSave, first, fmt::format("{} or an op of its group is a view", name(first)));
    return false;
  }

  static std::string_view obstacle_text(SaveObstacle obstacle) {
    switch (obstacle) {
      case SaveObstacle::kChanged:
        return "its tensor is changed in place";
      case SaveObstacle::kNothingFresh:
        return "it makes nothing new";
      case SaveObstacle::kView:
        return "it returns a view beside what it makes";
      case SaveObstacle::kNone:
        break;
    }
    return "";
  }

  const Step& step_;
  const EventIndex& index_;
  const Plan& plan_;
  std::size_t unit_ = 0;
  std::vector<Violation> violations_;
};

[[noreturn]] void refuse(const Violation& violation) {
  throw Error({.kind = ErrorKind::kInput,
               .place = fmt::format("plan.units[{}]", violation.unit),
               .problem = violation.text,
               .expected = {},
               .got = {},
               .remedy = "a plan made for this very step"});
}

}  // namespace

std::vector<Violation> check(const Step& step, const EventIndex& index, const Plan& plan) {
  Checker checker(step, index, plan);
  std::vector<Violation> violations = checker.structure();
  if (violations.empty()) violations = checker.meaning();
  return violations;
}

std::vector<Violation> check(const Step& step, const Plan& plan) { return check(step, index_events(step), plan); }

void require_replayable(const Step& step, const EventIndex& index, const Plan& plan) {
  const std::vector<Violation> violations = Checker(step, index, plan).structure();
  if (!violations.empty()) refuse(violations.front());
}

void require_legal(const Step& step, const Plan& plan) {
  const std::vector<Violation> violations = check(step, plan);
  if (!violations.empty()) refuse(violations.front());
}

}  // namespace tidemark::plan
