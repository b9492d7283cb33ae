#include "random_plan.h"

#include <algorithm>

#include "random.h"
#include "tidemark/plan/event_index.h"

namespace tidemark::test {

using namespace step;

plan::Plan random_plan(const Step& step, std::uint64_t seed) {
  Random random(seed);
  const plan::EventIndex index = plan::index_events(step);
  const StepTables& t = step.tables();
  const int unit_chance = static_cast<int>(random.between(5, 60));
  const int save_chance = static_cast<int>(random.between(0, 60));
  plan::Plan plan;
  std::vector<bool> covered(t.calls.size(), false);
  for (std::uint32_t i = 0; i < t.calls.size(); ++i) {
    const PassKind kind = step[t.calls[i].pass].kind;
    covered[i] = t.calls[i].parent.has_value() && covered[t.calls[i].parent.index()];
    if (covered[i] || !random.chance(unit_chance)) continue;
    if (kind != PassKind::kForward && kind != PassKind::kLoss) continue;
    covered[i] = true;
    plan::Unit unit{CallId(i), {}, random.chance(50), random.chance(50)};
    const plan::EventRange region = index.regions[i];
    for (std::uint32_t op = 0; op < t.ops.size(); ++op)
      if (region.contains(index.begins[op]) && random.chance(save_chance)) unit.saved_ops.push_back(OpId(op));
    plan.units.push_back(std::move(unit));
  }
  random.shuffle(plan.units);
  return plan;
}

}  // namespace tidemark::test
