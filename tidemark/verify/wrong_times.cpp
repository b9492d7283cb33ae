#include "tidemark/verify/wrong_times.h"

#include <fmt/format.h>

#include "tidemark/base/bytes.h"
#include "tidemark/verify/plan_time.h"

namespace tidemark::verify {

std::vector<std::string> wrong_times(const step::Step& step, const plan::PlanFile& file, const cost::StepCost& cost,
                                     const planner::Times& times) {
  std::vector<std::string> wrong;
  const std::int64_t plan_ps = plan_time_ps(step, file.plan, times);
  if (plan_ps != file.facts.recompute_ps)
    wrong.push_back(fmt::format("the file says that recomputing takes {} ps, and it takes {} ps",
                                format_count(file.facts.recompute_ps), format_count(plan_ps)));
  std::vector<plan::UnpricedOps> unpriced;
  for (const cost::UnpricedOp& op : cost::unpriced_of(step, cost, ops_run_again(step, file.plan)))
    unpriced.push_back({std::string(step.text(op.name)), op.count, op.bytes});
  if (unpriced != file.facts.unpriced)
    wrong.push_back(fmt::format("the file names {} without a price, and it is {}",
                                file.facts.unpriced.empty() ? "no op that runs again" : "other ops that run again",
                                unpriced.empty() ? "none" : unpriced.front().op));
  return wrong;
}

}  // namespace tidemark::verify
