#pragma once

#include "tidemark/base/hash.h"
#include "tidemark/step/step.h"

namespace tidemark::step {

// Tells whether two records are of the same step. It follows the events and names every row by when it first takes
// part, so the numbering of ids does not matter; neither do source locations, metadata, notes, unknown sections,
// sequence numbers, or the estimates of FLOPs and bytes moved. Everything else does: one stride changed, and the
// fingerprint is another.
Hash128 fingerprint(const Step& step);

}  // namespace tidemark::step
