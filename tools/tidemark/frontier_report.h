#pragma once

#include <memory>
#include <string>
#include <vector>

#include "console.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/device.h"
#include "tidemark/planner/frontier.h"

namespace tidemark::cli {

// All that `tidemark frontier` has to say, before it is words.
struct FrontierReport {
  std::string file;
  device::Device device;
  std::shared_ptr<const step::Step> step;
  cost::Total ops;  // of the step without a plan
  std::vector<cost::UnpricedOp> unpriced;
  std::vector<std::string> notes;  // what the times assume
  std::int64_t reserve_bytes = 0;
  planner::Against against = planner::Against::kExact;
  planner::Frontier frontier;
};

// A plot with the policies marked, and a few of the points.
std::string frontier_text(const FrontierReport& report, const Console& console);
// One row per point and policy.
std::string frontier_csv(const FrontierReport& report);
Json frontier_json(const FrontierReport& report);

}  // namespace tidemark::cli
