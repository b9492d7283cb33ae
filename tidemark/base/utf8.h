#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tidemark {

// Whether `text` is well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
bool is_utf8(std::string_view text);

// `text` in double quotes for a message: at most `shown_bytes` of it, and nothing in it can upset a terminal or a
// reader of UTF-8, because control characters and stray bytes are written as escapes.
//
//   quote("two\nlines") -> "two\\nlines" (with the quotes)
std::string quote(std::string_view text, std::size_t shown_bytes = 40);

}  // namespace tidemark
