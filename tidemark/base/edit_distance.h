#pragma once

#include <cstddef>
#include <string_view>

namespace tidemark {

// How many letters must change, come or go to make one text of the other: what "did you mean" goes by.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace tidemark
