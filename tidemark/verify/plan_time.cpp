#include "tidemark/verify/plan_time.h"

#include <set>

namespace tidemark::verify {

using namespace step;

namespace {

struct Unpacked {
  explicit Unpacked(const Step& step) {
    for (const Event& event : step.tables().events)
      if (event.kind == EventKind::kUnpack) saves.insert(SaveId(event.id));
  }

  std::set<SaveId> saves;
};

struct Again {
  std::vector<OpId> ops;
  std::int64_t save_count = 0;
};

Again again_of(const Step& step, const plan::Unit& unit, const Unpacked& unpacked) {
  const std::set<OpId> saved(unit.saved_ops.begin(), unit.saved_ops.end());
  Again again;
  std::size_t reached = 0;  // of the ops, those before the last save
  bool is_inside = false;
  bool is_needed = false;
  for (const Event& event : step.tables().events) {
    if (event.kind == EventKind::kEnter && CallId(event.id) == unit.call) is_inside = true;
    if (event.kind == EventKind::kExit && CallId(event.id) == unit.call) break;
    if (!is_inside) continue;
    if (event.kind == EventKind::kBegin && !saved.contains(OpId(event.id))) again.ops.emplace_back(event.id);
    if (event.kind != EventKind::kPack || !step[SaveId(event.id)].hooked) continue;
    ++again.save_count;
    reached = again.ops.size();
    is_needed = is_needed || unpacked.saves.contains(SaveId(event.id));
  }
  if (unit.early_stop) again.ops.resize(reached);
  if (!is_needed) again.ops.clear();
  return again;
}

}  // namespace

std::int64_t plan_time_ps(const Step& step, const plan::Plan& plan, const planner::Times& times) {
  const Unpacked unpacked(step);
  std::int64_t total_ps = 0;
  for (const plan::Unit& unit : plan.units) {
    const Again again = again_of(step, unit, unpacked);
    total_ps += times.region_ps + again.save_count * times.region_save_ps;
    if (unit.preserve_rng) total_ps += times.region_rng_ps;
    for (const OpId op : again.ops) total_ps += times.op_ps[op.index()];
  }
  return total_ps;
}

std::vector<OpId> ops_run_again(const Step& step, const plan::Plan& plan) {
  const Unpacked unpacked(step);
  std::vector<OpId> ops;
  for (const plan::Unit& unit : plan.units) {
    const Again again = again_of(step, unit, unpacked);
    ops.insert(ops.end(), again.ops.begin(), again.ops.end());
  }
  return ops;
}

}  // namespace tidemark::verify
