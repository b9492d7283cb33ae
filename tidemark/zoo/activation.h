#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/nn/layers.h"

namespace tidemark::zoo {

// The activations of `transformers` (5.22) that native models have. GELU comes exact, by the formula of GPT-2 op by op,
// by PyTorch's own tanh approximation, and by a sigmoid; SiLU under two names with a class each.
enum class ActivationKind : std::uint8_t { kGelu, kNewGelu, kTanhGelu, kQuickGelu, kRelu, kSilu, kSwish, kTanh };

// As configs call them.
std::vector<std::string_view> activation_names();
std::optional<ActivationKind> activation_named(std::string_view name);

// The name of the class that runs it.
std::string activation_type(ActivationKind kind);
nn::Activation::Function activation_function(ActivationKind kind);

}  // namespace tidemark::zoo
