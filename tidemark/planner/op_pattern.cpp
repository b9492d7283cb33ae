#include "tidemark/planner/op_pattern.h"

#include "tidemark/base/glob.h"
#include "tidemark/step/op_name.h"

namespace tidemark::planner {

using namespace step;

OpPattern::OpPattern(const Step& step, std::string_view text) : step_(step) {
  const std::size_t colons = text.find("::");
  const std::string_view fqn = colons == std::string_view::npos ? "*" : text.substr(0, colons);
  op_ = colons == std::string_view::npos ? text : text.substr(colons + 2);
  is_everywhere_ = matches_glob("", fqn);
  const std::size_t count = step.tables().modules.size();
  std::vector<std::uint8_t> is_named(count, 0);
  for (std::uint32_t i = 0; i < count; ++i) is_named[i] = matches_glob(step.fqn(ModuleId(i)), fqn) ? 1 : 0;
  is_inside_.assign(count, 0);
  for (std::uint32_t i = 0; i < count; ++i)
    for (ModuleId at(i); at.has_value() && is_inside_[i] == 0; at = step[at].parent)
      is_inside_[i] = is_named[at.index()];
}

bool OpPattern::matches(OpId op) const {
  const Op& row = step_[op];
  const PassKind kind = step_[row.pass].kind;
  if (kind != PassKind::kForward && kind != PassKind::kLoss) return false;
  const std::string_view name = step_.text(row.name);
  if (!matches_glob(name, op_) && name.substr(0, name.rfind('.')) != op_ && op_family(name) != op_) return false;
  return row.call.has_value() ? is_inside_[step_[row.call].module.index()] != 0 : is_everywhere_;
}

}  // namespace tidemark::planner
