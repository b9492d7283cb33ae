#include "tidemark/step/dtype.h"

#include <array>

namespace tidemark::step {

namespace {

struct Row {
  std::string_view name;
  std::string_view short_name;
  int bytes;
};

// In the order of the enum. Names and sizes: torch.dtype of PyTorch 2.13.0 (checked by a Python test).
constexpr std::array<Row, kDTypeCount> kRows = {{
    {"float64", "f64", 8},
    {"float32", "f32", 4},
    {"float16", "f16", 2},
    {"bfloat16", "bf16", 2},
    {"float8_e4m3fn", "f8e4m3fn", 1},
    {"float8_e4m3fnuz", "f8e4m3fnuz", 1},
    {"float8_e5m2", "f8e5m2", 1},
    {"float8_e5m2fnuz", "f8e5m2fnuz", 1},
    {"float8_e8m0fnu", "f8e8m0fnu", 1},
    {"float4_e2m1fn_x2", "f4x2", 1},
    {"complex128", "c128", 16},
    {"complex64", "c64", 8},
    {"complex32", "c32", 4},
    {"int64", "i64", 8},
    {"int32", "i32", 4},
    {"int16", "i16", 2},
    {"int8", "i8", 1},
    {"uint64", "u64", 8},
    {"uint32", "u32", 4},
    {"uint16", "u16", 2},
    {"uint8", "u8", 1},
    {"bool", "bool", 1},
}};

const Row& row_of(DType dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view name_of(DType dtype) { return row_of(dtype).name; }
std::string_view short_name(DType dtype) { return row_of(dtype).short_name; }
int item_bytes(DType dtype) { return row_of(dtype).bytes; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace tidemark::step
