#pragma once

#include <string>
#include <string_view>

#include "tidemark/cost/work.h"

namespace tidemark::cost {

// A Work as words, which is how tables of measured ops say what each op asked of the device, so that its time says
// something about ops of other shapes: "matmul float32 m512 n512 k64 flops33554432 bytes1310720 along_rows". Family and
// precision come first, then what is not as in Work{}, in the order below (docs/device_format.md).
std::string work_text(const Work& work);

// The other way; parse_work_text(work_text(w)) is w. Throws: Error at `place` for what is no such text, or names
// numbers that the formulas cannot multiply.
Work parse_work_text(std::string_view text, const std::string& place);

}  // namespace tidemark::cost
