#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <variant>
#include <vector>

#include "tidemark/ops/tensor.h"

namespace tidemark::ops {

struct None {};

// A few switches, such as which gradients are wanted.
struct Mask {
  std::array<bool, 4> items{};
  std::size_t count = 0;

  Mask(std::initializer_list<bool> given) {
    for (const bool item : given) items[count++] = item;
  }
  bool operator[](std::size_t i) const { return items[i]; }
};

// Indices of an indexing op; an empty tensor stands for None.
struct Indices {
  std::span<const Tensor> items;
};

// What an op is given for one argument. Tensors and lists are borrowed: they outlive the call.
using Value = std::variant<None, bool, std::int64_t, double, const char*, Dims, Mask, const Tensor*,
                           std::span<const Tensor>, std::span<const double>, Indices>;

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
  Arg(const char* n, const Dims& v) : name(n), value(v) {}
  Arg(const char* n, const Mask& v) : name(n), value(v) {}
  Arg(const char* n, Indices v) : name(n), value(v) {}
  // A tensor that is not there is None.
  Arg(const char* n, const Tensor& v) : name(n), value(v ? Value(&v) : Value(None{})) {}
  Arg(const char* n, const std::vector<Tensor>& v) : name(n), value(std::span<const Tensor>(v)) {}
  Arg(const char* n, const std::vector<double>& v) : name(n), value(std::span<const double>(v)) {}
  // A number as another op was given it: a whole one stays whole.
  Arg(const char* n, const Value& v) : name(n), value(v) {}
};

}  // namespace tidemark::ops
