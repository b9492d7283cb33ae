#include "tidemark/ops/rules.h"

namespace tidemark::ops {

std::vector<Row> pool_rows() { return {}; }

}  // namespace tidemark::ops
