#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tidemark/memory/workspace.h"
#include "tidemark/plan/plan.h"
#include "tidemark/planner/space.h"
#include "tidemark/step/step.h"

namespace tidemark::test {

// Which plans are meant, of steps that have too many; empty: all.
struct PlanRules {
  std::vector<std::string> units;       // modules by name; no others
  std::vector<std::string> never_save;  // ops by name
};

// Every legal plan of a step, by plan/ alone: the planner's own idea of what a plan may be is not used. A unit keeps
// the RNG state when a random op runs in it. Returns how many there are; with more than `most`, none is visited and the
// answer is most + 1.
std::int64_t for_each_plan(const step::Step& step, std::int64_t most,
                           const std::function<void(const plan::Plan&)>& visit, const PlanRules& rules = {});
// How many there are, or most + 1.
std::int64_t count_plans(const step::Step& step, std::int64_t most, const PlanRules& rules = {});

struct Tried {
  plan::Plan plan;
  std::int64_t peak_bytes = 0;
  std::int64_t time_ps = 0;
};

// All of them with what a replay and the times say.
std::vector<Tried> try_all(const step::Step& step, const planner::Times& times, std::int64_t most,
                           const memory::WorkspaceTable* workspace = nullptr, std::int64_t round_to_bytes = 1,
                           const PlanRules& rules = {});

}  // namespace tidemark::test
