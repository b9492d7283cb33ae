#include "tidemark/nn/net.h"

#include <algorithm>
#include <unordered_set>

namespace tidemark::nn {

step::ModuleId Net::add_module(step::ModuleId parent, std::string name, std::string type) {
  modules_.push_back({parent, std::move(name), std::move(type)});
  return step::ModuleId(static_cast<std::uint32_t>(modules_.size() - 1));
}

Tensor Net::parameter(step::ModuleId module, std::string name, const Dims& sizes) {
  Tensor t = rt.leaf(dtype, sizes, true);
  bindings_.push_back({module, std::move(name), t, step::BindingKind::kParameter});
  return t;
}

Tensor Net::buffer(step::ModuleId module, std::string name, DType type, const Dims& sizes) {
  Tensor t = rt.leaf(type, sizes, false);
  bindings_.push_back({module, std::move(name), t, step::BindingKind::kBuffer});
  return t;
}

void Net::tie(step::ModuleId module, std::string name, const Tensor& tensor) {
  bindings_.push_back({module, std::move(name), tensor, step::BindingKind::kParameter});
}

std::vector<Net::Binding> Net::bindings() const {
  std::vector<Binding> sorted = bindings_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Binding& a, const Binding& b) {
    return std::pair(a.module, a.kind) < std::pair(b.module, b.kind);
  });
  return sorted;
}

namespace {

std::vector<Tensor> distinct(const std::vector<Net::Binding>& bindings, step::BindingKind kind) {
  std::vector<Tensor> found;
  std::unordered_set<const ops::TensorData*> seen;
  for (const Net::Binding& binding : bindings)
    if (binding.kind == kind && seen.insert(binding.tensor.get()).second) found.push_back(binding.tensor);
  return found;
}

}  // namespace

std::vector<Tensor> Net::parameters() const { return distinct(bindings(), step::BindingKind::kParameter); }
std::vector<Tensor> Net::buffers() const { return distinct(bindings(), step::BindingKind::kBuffer); }

}  // namespace tidemark::nn
