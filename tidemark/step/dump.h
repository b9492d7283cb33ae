#pragma once

#include <string>
#include <string_view>

#include "tidemark/step/step.h"

namespace tidemark::step {

// The whole step as text for a person: modules, what is there at the start, then every event in order, indented by
// module call. Meant for small steps; it is not a format to read back. Names are printable.
std::string dump(const Step& step);

// "float32[4,768]", with the strides after a ':' when the tensor is not contiguous.
std::string describe_layout(const Step& step, LayoutId layout);

// `text` on one line and without power over a terminal: control characters and marks that change the direction of
// text become \n or \uNNNN, as quote() writes them; where there are bytes that are not UTF-8, all but ASCII becomes
// \xNN. Names in a file may hold anything.
std::string printable(std::string_view text);

}  // namespace tidemark::step
