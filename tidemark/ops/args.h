#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tidemark/ops/tensor.h"

namespace tidemark::ops {

struct None {
  friend bool operator==(None, None) { return true; }
};

// What an op is given for one argument. Tensors are borrowed: they outlive the call.
using Value = std::variant<None, bool, std::int64_t, double, const char*, Dims, const Tensor*, std::span<const Tensor>,
                           std::vector<double>, std::vector<bool>, std::vector<const Tensor*>>;

// A named argument, in the order of the op's schema. Arguments that have their default value are left out, as
// PyTorch's dispatcher leaves them out.
struct Arg {
  const char* name;
  Value value;

  Arg(const char* n, None v) : name(n), value(v) {}
  Arg(const char* n, bool v) : name(n), value(v) {}
  Arg(const char* n, int v) : name(n), value(std::int64_t{v}) {}
  Arg(const char* n, std::int64_t v) : name(n), value(v) {}
  Arg(const char* n, double v) : name(n), value(v) {}
  Arg(const char* n, const char* v) : name(n), value(v) {}
  Arg(const char* n, Dims v) : name(n), value(v) {}
  Arg(const char* n, const Tensor& v) : name(n), value(Value(None{})) {
    if (v) value = &v;  // a tensor that is not there is None
  }
  Arg(const char* n, const std::vector<Tensor>& v) : name(n), value(std::span<const Tensor>(v)) {}
  Arg(const char* n, std::vector<double> v) : name(n), value(std::move(v)) {}
  Arg(const char* n, std::vector<bool> v) : name(n), value(std::move(v)) {}
  // Indices, of which some are None.
  Arg(const char* n, std::vector<const Tensor*> v) : name(n), value(std::move(v)) {}
};

}  // namespace tidemark::ops
