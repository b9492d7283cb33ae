#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/step/step.h"

namespace tidemark::planner {

// Which ops a user means by "FQN::OP", with * and ?: those that run in a module of that name, modules inside it
// included. OP is an op's name, with or without its overload and namespace: "aten.mm.default", "aten.mm" or "mm".
// Without "FQN::" it is every module.
class OpPattern {
 public:
  OpPattern(const step::Step& step, std::string_view text);

  // Ops of the forward or of the loss alone do.
  bool matches(step::OpId op) const;

 private:
  const step::Step& step_;
  std::string op_;
  std::vector<std::uint8_t> is_inside_;  // by module
  bool is_everywhere_ = false;           // also what runs in no module at all
};

}  // namespace tidemark::planner
