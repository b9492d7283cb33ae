#pragma once

#include <cstdint>

#include "tidemark/step/step.h"

namespace tidemark::test {

// The same step with the ids of every table renumbered at random (parents still before children), and rows of
// unordered tables in another order. The events keep their order: it is what happened.
step::Step permute_ids(const step::Step& step, std::uint64_t seed);

}  // namespace tidemark::test
