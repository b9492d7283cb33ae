#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/verify/path_check.h"
#include "tidemark/verify/side_hints.h"
#include "tidemark/verify/sides.h"

namespace tidemark::verify {

// Whether any path keeps within a room on both sides and takes at most a target: the pass of path_check.h with ways
// told by two peaks and their time. A way is left out only when another is no worse in all three, when it goes above
// the room on a side, or when by the bounds of a mixture, of which both sides are two, or of a side with prices on the
// other one (priced_side.h) it cannot be part of such a path.

struct TwoSidedQuestion {
  std::int64_t room_bytes = 0;
  std::int64_t target_ps = 0;
  std::int64_t max_entries = 0;
};

// Requires: prices as TimeLines does, without the 0; shares from 0 to kShares, one of these two with prices on the
// other side, which are from 0 to kMostPrice.
PathCheck look_for_path(const Sides& sides, const std::vector<SideHints>& hints, const TwoSidedQuestion& question);

}  // namespace tidemark::verify
