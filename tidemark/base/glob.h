#pragma once

#include <string_view>

namespace tidemark {

// Whether `text` matches a pattern in which * stands for any characters, none too, and ? for one.
bool matches_glob(std::string_view text, std::string_view pattern);

}  // namespace tidemark
