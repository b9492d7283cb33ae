#pragma once

#include <string_view>

namespace tidemark::step {

// The version of the step file's format. A file with a higher major version is refused; a higher minor one only adds
// optional sections, which this version keeps and otherwise ignores.
inline constexpr int kFormatMajor = 1;
inline constexpr int kFormatMinor = 0;

inline constexpr std::string_view kEndSection = "end";

}  // namespace tidemark::step
