#pragma once

#include <initializer_list>
#include <vector>

#include "tidemark/ops/row.h"

namespace tidemark::ops {

struct Made {
  Tensor tensor;  // empty: the op returns None here
  step::AliasKind alias = step::AliasKind::kFresh;
  std::uint32_t input = 0;
};

// Runs ops. There is one implementation, fake/'s; rows know only this much of it.
class Runner {
 public:
  virtual void run(Call& call) = 0;
  virtual Storage* new_storage(std::int64_t bytes) = 0;

 protected:
  ~Runner() = default;
};

// An op that is about to run: its arguments, and room for what it makes.
class Call {
 public:
  Call(Runner& runner, const Row& row, std::span<const Arg> args);

  Runner& runner() const { return runner_; }
  const Row& row() const { return row_; }
  std::span<const Arg> args() const { return args_; }
  const std::vector<const Tensor*>& inputs() const { return inputs_; }
  const Tensor& in(std::size_t i) const { return *inputs_[i]; }

  const Value* find(const char* name) const;
  bool has_tensor(const char* name) const;
  const Tensor& tensor(const char* name) const;  // Requires: it is one
  std::span<const Tensor> list(const char* name) const;
  std::int64_t integer(const char* name, std::int64_t otherwise = 0) const;
  double number(const char* name, double otherwise = 0) const;  // also a whole number or a boolean
  bool flag(const char* name, bool otherwise = false) const;
  const char* text(const char* name) const;  // null when it is not given
  Dims dims(const char* name) const;         // empty when it is not given
  Mask mask(const char* name) const;
  bool is_given(const char* name) const;  // and not None

  // -- for the row's rule --
  void fresh(DType dtype, const Dims& sizes);
  void fresh(DType dtype, const Dims& sizes, const Dims& strides);
  void view(std::size_t input, const Dims& sizes, const Dims& strides, std::int64_t offset);
  void mutates(std::size_t input);
  void nothing() { made_.push_back({}); }

  std::vector<Made>& made() { return made_; }
  const std::vector<Made>& made() const { return made_; }

 private:
  Runner& runner_;
  const Row& row_;
  std::span<const Arg> args_;
  std::vector<const Tensor*> inputs_;
  std::vector<Made> made_;
};

// An op by name, found once: `static const Op mm("aten.mm.default"); mm(runner, {{"self", a}, {"mat2", b}})`.
class Op {
 public:
  explicit Op(std::string_view name) : row_(ops::row(name)) {}
  Tensor operator()(Runner& runner, std::initializer_list<Arg> args) const;  // its first result
  std::vector<Tensor> all(Runner& runner, std::initializer_list<Arg> args) const;
  void none(Runner& runner, std::initializer_list<Arg> args) const;  // the results are let go

 private:
  const Row& row_;
};

// The results of an op whose arguments are put together one by one.
std::vector<Tensor> run_all(Runner& runner, const Row& row, std::span<const Arg> args);

// What a backward formula sees: the incoming gradients, what was saved, and what is wanted. A formula is written as
// PyTorch's own (FunctionsManual.cpp, derivatives.yaml), so that its temporaries die in the same order.
class Backward {
 public:
  Backward(Runner& runner, GradNode& node, std::vector<Tensor>& grads, const std::vector<Tensor>& saved)
      : runner_(runner), node_(node), grads_(grads), saved_(saved), wanted_(node.next.size()) {}

  Runner& runner() const { return runner_; }
  const Tensor& grad(std::size_t i = 0) const { return grads_[i]; }
  std::size_t grad_count() const { return grads_.size(); }
  const Meta& output(std::size_t i) const { return node_.outputs[i]; }
  const Tensor& saved(const char* name) const;  // empty when it was not kept
  // What was kept of a list, in which Nones stand where they stood.
  std::vector<Tensor> saved_list(const char* name) const;
  bool needs(const char* name) const;  // some tensor of this argument wants a gradient
  bool needs_item(const char* name, std::size_t i) const;
  std::size_t count(const char* name) const;  // tensors given for it
  const Meta& input(const char* name, std::size_t i = 0) const;
  void give(const char* name, Tensor grad, std::size_t i = 0);

  bool is_given(const char* name) const;
  std::int64_t integer(const char* name, std::int64_t otherwise = 0) const;
  double number(const char* name, double otherwise = 0) const;
  bool flag(const char* name, bool otherwise = false) const;
  Dims dims(const char* name) const;
  const Value* find(const char* name) const;

  std::vector<Tensor> take() { return std::move(wanted_); }

 private:
  struct Slot {
    std::size_t begin = 0;
    std::size_t count = 0;
  };
  Slot slot(const char* name) const;

  Runner& runner_;
  GradNode& node_;
  std::vector<Tensor>& grads_;
  const std::vector<Tensor>& saved_;
  std::vector<Tensor> wanted_;
};

}  // namespace tidemark::ops
