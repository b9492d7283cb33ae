#pragma once

#include <cstdint>

#include "tidemark/planner/prepared.h"

namespace tidemark::planner {

// A plan that a search ended with at its limit, made cheaper by single changes: a unit given up, or one more group of a
// unit saved, whichever spares most and still fits by replay, until nothing does. Never more than the work allowed.
struct Polished {
  Judged judged;
  std::int64_t work = 0;
};

Polished polish(const PreparedStep& prepared, Judged start, std::int64_t room_bytes, std::int64_t max_work);

}  // namespace tidemark::planner
