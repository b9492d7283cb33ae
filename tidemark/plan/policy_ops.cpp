#include "tidemark/plan/policy_ops.h"

namespace tidemark::plan {

PolicyOpKind policy_op_kind(std::string_view op_name) {
  const std::size_t overload = op_name.rfind('.');
  const std::string_view without_overload = op_name.substr(0, overload);
  for (const PolicyOp& op : kPolicyOps)
    if (op.name == op_name || op.name == without_overload) return op.kind;
  return PolicyOpKind::kOther;
}

}  // namespace tidemark::plan
