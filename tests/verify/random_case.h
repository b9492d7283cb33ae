#pragma once

#include <cstdint>
#include <string>

#include "tidemark/memory/replay.h"
#include "tidemark/verify/replay.h"

namespace tidemark::test {

// Something to replay twice: a random step, a plan for it, a workspace table, options.
struct RandomCase {
  step::Step step;
  plan::Plan plan;
  memory::WorkspaceTable table;
  std::int64_t round_to_bytes = 1;
  bool early_stop = true;
  bool preserve_rng = true;
};

RandomCase random_case(std::uint64_t seed);

// What the two replays say differently, in words: the first change that is not the same, or else what follows from
// the changes (peak, categories, leftovers). Empty when they agree; also when both refuse the plan, which `is_refused`
// then says.
std::string difference(const RandomCase& random_case, verify::Mutation mutation = verify::Mutation::kNone,
                       bool* is_refused = nullptr);

// The first seeds of every test are the same, so that a seed in a message can be looked at alone.
inline constexpr std::uint64_t kFastCases = 2000;

}  // namespace tidemark::test
