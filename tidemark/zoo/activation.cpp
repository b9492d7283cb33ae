#include "tidemark/zoo/activation.h"

#include "tidemark/ops/aten.h"
#include "tidemark/zoo/hf_parts.h"

namespace tidemark::zoo {

namespace {

Tensor quick_gelu(Runtime& rt, const Tensor& x) {
  Tensor gate = ops::mul(rt, x, 1.702);
  gate = ops::sigmoid(rt, gate);
  return ops::mul(rt, x, gate);
}
Tensor relu(Runtime& rt, const Tensor& x) { return ops::relu(rt, x); }
Tensor tanh(Runtime& rt, const Tensor& x) { return ops::tanh(rt, x); }

struct Row {
  ActivationKind kind;
  std::string_view name;
  const char* type;
  nn::Activation::Function function;
};
constexpr Row kRows[] = {
    {ActivationKind::kGelu, "gelu", "GELUActivation", nn::exact_gelu},
    {ActivationKind::kNewGelu, "gelu_new", "NewGELUActivation", new_gelu},
    {ActivationKind::kTanhGelu, "gelu_pytorch_tanh", "GELUTanh", nn::tanh_gelu},
    {ActivationKind::kQuickGelu, "quick_gelu", "QuickGELUActivation", quick_gelu},
    {ActivationKind::kRelu, "relu", "ReLU", relu},
    {ActivationKind::kSilu, "silu", "SiLUActivation", nn::silu},
    {ActivationKind::kSwish, "swish", "SiLU", nn::silu},
    {ActivationKind::kTanh, "tanh", "Tanh", tanh},
};

const Row& row_of(ActivationKind kind) {
  for (const Row& row : kRows)
    if (row.kind == kind) return row;
  return kRows[0];  // not reached: every kind has a row
}

}  // namespace

std::vector<std::string_view> activation_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

std::optional<ActivationKind> activation_named(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.kind;
  return std::nullopt;
}

std::string activation_type(ActivationKind kind) { return row_of(kind).type; }
nn::Activation::Function activation_function(ActivationKind kind) { return row_of(kind).function; }

}  // namespace tidemark::zoo
