#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tidemark/fake/runtime.h"

namespace tidemark::nn {

using fake::Runtime;
using fake::Target;
using ops::Dims;
using ops::DType;
using ops::Tensor;

// The modules of a model and what they own, in the order in which they are made: a parent before its children, as
// PyTorch's named_modules() lists them.
//
//   Net net(runtime, DType::kFloat32);
//   const ModuleId root = net.add_module({}, "", "MLP");
//   Tensor w = net.parameter(root, "weight", {4, 4});
class Net {
 public:
  struct ModuleRow {
    step::ModuleId parent;
    std::string name;
    std::string type;
  };
  struct Binding {
    step::ModuleId module;
    std::string name;
    Tensor tensor;
    step::BindingKind kind;
  };

  Net(Runtime& runtime, DType parameter_type) : rt(runtime), dtype(parameter_type) {}

  step::ModuleId add_module(step::ModuleId parent, std::string name, std::string type);
  Tensor parameter(step::ModuleId module, std::string name, const Dims& sizes);
  Tensor buffer(step::ModuleId module, std::string name, DType type, const Dims& sizes);
  // Another name for a parameter that exists: a tied weight.
  void tie(step::ModuleId module, std::string name, const Tensor& tensor);

  std::vector<Tensor> parameters() const;  // each once, in the order of their modules
  std::vector<Tensor> buffers() const;

  const std::vector<ModuleRow>& modules() const { return modules_; }
  std::vector<Binding> bindings() const;  // by module, parameters before buffers

  Runtime& rt;
  DType dtype;  // of parameters

 private:
  std::vector<ModuleRow> modules_;
  std::vector<Binding> bindings_;
};

// A module of a net; its forward is a member function of what derives from it.
class Module {
 public:
  Module(Net& net, step::ModuleId parent, std::string name, std::string type)
      : net_(&net), id_(net.add_module(parent, std::move(name), std::move(type))) {}

  step::ModuleId id() const { return id_; }
  Net& net() const { return *net_; }
  Runtime& rt() const { return net_->rt; }

 protected:
  // Runs `forward` as a call of this module. What forward returns is the call's output.
  template <class Forward>
  Tensor called(std::initializer_list<const Tensor*> inputs, Forward forward) const {
    rt().recorder().enter(id_, std::span(inputs.begin(), inputs.size()));
    Tensor result = forward();
    const Tensor* const outputs[] = {&result};
    rt().recorder().leave(outputs);
    return result;
  }
  // The same for a module that returns several tensors; inputs that are empty are not given to it.
  template <class Forward>
  std::vector<Tensor> called_with(std::initializer_list<const Tensor*> inputs, Forward forward) const {
    std::vector<const Tensor*> given;
    for (const Tensor* t : inputs)
      if (*t) given.push_back(t);
    rt().recorder().enter(id_, given);
    std::vector<Tensor> results = forward();
    std::vector<const Tensor*> outputs;
    for (const Tensor& t : results) outputs.push_back(&t);
    rt().recorder().leave(outputs);
    return results;
  }
  template <class Forward>
  std::vector<Tensor> called_for_all(std::initializer_list<const Tensor*> inputs, Forward forward) const {
    return called_with(inputs, std::move(forward));
  }

 private:
  Net* net_;
  step::ModuleId id_;
};

}  // namespace tidemark::nn
