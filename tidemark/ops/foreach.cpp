#include "tidemark/ops/rules.h"

namespace tidemark::ops {

std::vector<Row> foreach_rows() { return {}; }

}  // namespace tidemark::ops
