#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tidemark/step/step.h"

namespace tidemark::step {

// What decides how an op runs on a machine, and so the key of tables of measurements: its name, the layouts of its
// inputs and its other arguments: "aten.mm.default(float32[2,8;8,1],float32[8,4;1,8]){}".
// Throws: Error when the step has no such op.
std::string op_key(const Step& step, OpId op);

// The ops of a step by equal keys, found without writing the keys.
struct OpKinds {
  std::vector<std::uint32_t> of_op;  // by op, its kind
  std::vector<OpId> first;           // by kind, its first op
};
OpKinds op_kinds(const Step& step);

}  // namespace tidemark::step
