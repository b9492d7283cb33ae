#include "tidemark/verify/plan_time.h"

#include <set>
#include <vector>

namespace tidemark::verify {

using namespace step;

std::int64_t plan_time_ps(const Step& step, const plan::Plan& plan, const planner::Times& times) {
  std::set<SaveId> unpacked;
  for (const Event& event : step.tables().events)
    if (event.kind == EventKind::kUnpack) unpacked.insert(SaveId(event.id));
  std::int64_t total_ps = 0;
  for (const plan::Unit& unit : plan.units) {
    const std::set<OpId> saved(unit.saved_ops.begin(), unit.saved_ops.end());
    std::int64_t again_ps = 0;    // of ops met so far
    std::int64_t reached_ps = 0;  // of those before the last save
    bool is_inside = false;
    bool is_needed = false;
    total_ps += times.region_ps;
    if (unit.preserve_rng) total_ps += times.region_rng_ps;
    for (const Event& event : step.tables().events) {
      if (event.kind == EventKind::kEnter && CallId(event.id) == unit.call) is_inside = true;
      if (event.kind == EventKind::kExit && CallId(event.id) == unit.call) break;
      if (!is_inside) continue;
      if (event.kind == EventKind::kBegin && !saved.contains(OpId(event.id))) again_ps += times.op_ps[event.id];
      if (event.kind != EventKind::kPack || !step[SaveId(event.id)].hooked) continue;
      total_ps += times.region_save_ps;
      reached_ps = again_ps;
      is_needed = is_needed || unpacked.contains(SaveId(event.id));
    }
    if (is_needed) total_ps += unit.early_stop ? reached_ps : again_ps;
  }
  return total_ps;
}

}  // namespace tidemark::verify
