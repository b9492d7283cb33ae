#pragma once

#include <cstdint>

#include "tidemark/plan/plan.h"
#include "tidemark/step/step.h"

namespace tidemark::test {

// A plan that can be replayed on the step, made at random: some calls of forward and loss passes, none inside another,
// each with some of its ops saved and with switches of its own. It need not be legal: ops that no sane plan would save
// are saved too, since a replay is defined for them. The same seed gives the same plan.
plan::Plan random_plan(const step::Step& step, std::uint64_t seed);

}  // namespace tidemark::test
