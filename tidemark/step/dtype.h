#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tidemark::step {

// Element types, named as PyTorch names them. Packed sub-byte types count as the byte that PyTorch counts.
enum class DType : std::uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat8E4M3Fn,
  kFloat8E4M3Fnuz,
  kFloat8E5M2,
  kFloat8E5M2Fnuz,
  kFloat8E8M0Fnu,
  kFloat4E2M1FnX2,
  kComplex128,
  kComplex64,
  kComplex32,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt64,
  kUInt32,
  kUInt16,
  kUInt8,
  kBool,
};

inline constexpr int kDTypeCount = 22;

std::string_view name_of(DType dtype);     // "float32"
std::string_view short_name(DType dtype);  // "f32", for dumps
int item_bytes(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace tidemark::step
