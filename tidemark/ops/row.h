#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "tidemark/ops/autograd.h"
#include "tidemark/ops/traffic.h"
#include "tidemark/step/kinds.h"

// Everything about an op is in one row: what it makes of its inputs, whether it draws random numbers, what it costs,
// what autograd keeps, and which ops its backward runs in which order. Sets of ops (views, in-place, random, ...) are
// asked of the rows; there is no list of op names anywhere else.

namespace tidemark::ops {

class Call;
class Backward;

// An argument that autograd keeps for backward. The order is PyTorch's: arguments by name, then results.
struct Saved {
  const char* name;
  const char* when = nullptr;  // only if the gradient of this argument is wanted
};

struct Row {
  const char* name = "";                  // "aten.addmm.default"
  void (*infer)(Call&) = nullptr;         // sizes, strides, element types and aliasing of what it makes
  const char* node = nullptr;             // the name of its autograd node; none: no gradient can pass here
  std::vector<Saved> saves = {};          // arguments kept
  std::vector<Saved> saved_results = {};  // results kept; the name of result i is results[i]
  std::vector<const char*> results = {};  // names of the results, where one is kept
  void (*backward)(Backward&) = nullptr;
  std::int64_t (*flops)(const Call&) = nullptr;  // none: no multiplication worth counting
  Moved (*moves)(const Call&) = nullptr;         // bytes; none: all inputs are read and all results written
  bool (*is_random)(const Call&) = nullptr;      // by its arguments; none: it draws nothing
  const char* number = nullptr;                  // an argument of type Tensor in whose place a number may stand
  bool saves_number = false;                     // and autograd keeps the tensor that the number becomes
  const char* in_place = nullptr;  // what runs when nobody watches and the first operand may be overwritten
  // In the backward of this op, and nowhere else: ops whose first operand PyTorch overwrites when nobody watches.
  std::vector<const char*> backward_in_place = {};
  const char* overwrites = nullptr;  // an argument that it writes into, and may have to keep as it was
  bool is_constant = false;          // what it makes does not depend on the values of its inputs: no gradient is due
  const char* hidden = nullptr;  // arguments whose names start so only `infer` sees: PyTorch knows them from a value
  step::OpFlags flags = {};
  const char* file = "";  // where the row stands; filled in by the registry
};

// The row of an op. Throws: Error that names the op and the file to edit.
const Row& row(std::string_view name);
// All rows, in the order of their files.
std::span<const Row> rows();

}  // namespace tidemark::ops
