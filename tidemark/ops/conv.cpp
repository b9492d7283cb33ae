#include "tidemark/ops/rules.h"

namespace tidemark::ops {

std::vector<Row> conv_rows() { return {}; }

}  // namespace tidemark::ops
