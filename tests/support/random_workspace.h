#pragma once

#include "random.h"
#include "tidemark/memory/workspace.h"
#include "tidemark/step/step.h"

namespace tidemark::test {

// A workspace table for some of a step's ops, made at random: scratch that comes and goes before, between and after the
// op's own allocations, and rows for ops that a dispatch mode watches.
memory::WorkspaceTable random_workspace(const step::Step& step, Random& random);

// The same, where watching only adds to what an op does, as it does in PyTorch.
memory::WorkspaceTable likely_workspace(const step::Step& step, Random& random);

}  // namespace tidemark::test
