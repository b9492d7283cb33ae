#pragma once

#include <cstdint>

#include "tidemark/step/step.h"

namespace tidemark::test {

// The step with its events shaken: some stand earlier or later, some saves are released in the forward, some are
// unpacked twice, some passes are of another kind. Whatever is still a valid step may come out, also what no recorder
// would write: allocations outside ops, saves packed inside them, frees before the op ends. The same seed gives the
// same step.
step::Step shake(const step::Step& step, std::uint64_t seed);

}  // namespace tidemark::test
