#include "tidemark/plan/plan.h"

#include <algorithm>

namespace tidemark::plan {

Decision Unit::decision(step::OpId op) const {
  return std::binary_search(saved_ops.begin(), saved_ops.end(), op) ? Decision::kSave : Decision::kRecompute;
}

}  // namespace tidemark::plan
