#pragma once

#include <string_view>

namespace tidemark::step {

// "addmm" of "aten.addmm.default": the name of an op without its namespace and its overload. A name without dots is
// its own.
constexpr std::string_view op_family(std::string_view op_name) {
  op_name.remove_prefix(op_name.find('.') + 1);
  return op_name.substr(0, op_name.find('.'));
}

}  // namespace tidemark::step
