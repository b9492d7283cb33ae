#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tidemark::plan {

// The ops that the selective policy looks at, without their overload. Matrix products are counted in each unit and
// every second one is recomputed; the others are always saved. Collectives are known by their flag, not listed.
enum class PolicyOpKind : std::uint8_t { kOther, kMatmul, kAttention };

struct PolicyOp {
  std::string_view name;
  PolicyOpKind kind = PolicyOpKind::kOther;
};

inline constexpr std::array<PolicyOp, 20> kPolicyOps = {{
    {"aten.mm", PolicyOpKind::kMatmul},
    {"aten.addmm", PolicyOpKind::kMatmul},
    {"aten.bmm", PolicyOpKind::kMatmul},
    {"aten.baddbmm", PolicyOpKind::kMatmul},
    {"aten.linear", PolicyOpKind::kMatmul},
    {"aten.mkldnn_linear", PolicyOpKind::kMatmul},
    {"aten._scaled_mm", PolicyOpKind::kMatmul},
    {"aten._grouped_mm", PolicyOpKind::kMatmul},
    {"aten.convolution", PolicyOpKind::kMatmul},
    {"aten.cudnn_convolution", PolicyOpKind::kMatmul},
    {"aten.mkldnn_convolution", PolicyOpKind::kMatmul},
    {"aten._scaled_dot_product_flash_attention", PolicyOpKind::kAttention},
    {"aten._scaled_dot_product_flash_attention_for_cpu", PolicyOpKind::kAttention},
    {"aten._scaled_dot_product_efficient_attention", PolicyOpKind::kAttention},
    {"aten._scaled_dot_product_cudnn_attention", PolicyOpKind::kAttention},
    {"aten._scaled_dot_product_fused_attention_overrideable", PolicyOpKind::kAttention},
    {"aten._scaled_dot_product_attention_math", PolicyOpKind::kAttention},
    {"aten._flash_attention_forward", PolicyOpKind::kAttention},
    {"aten._efficient_attention_forward", PolicyOpKind::kAttention},
    {"flex_attention", PolicyOpKind::kAttention},
}};

// What an op such as "aten.mm.default" is to the selective policy.
PolicyOpKind policy_op_kind(std::string_view op_name);

}  // namespace tidemark::plan
