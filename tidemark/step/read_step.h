#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tidemark/base/byte_source.h"
#include "tidemark/step/limits.h"
#include "tidemark/step/step.h"

namespace tidemark::step {

// Reads a Step from its file (docs/step_format.md): JSON Lines, plain or zstd. Reading streams, holds one line at a
// time, and is safe on hostile input: what exceeds a limit is refused as soon as it does.
struct ReadOptions {
  std::int64_t max_line_bytes = kMaxLineBytes;
  std::int64_t max_total_bytes = std::int64_t{4} << 30;  // after decompression
  std::int64_t max_expansion = kMaxExpansion;            // decompressed bytes per compressed byte
};

// Throws: Error that names the file, the line, the record and the field.
Step read_step(const std::string& path, const ReadOptions& options = {});

// The same from memory; `name` stands for the file in errors.
Step parse_step(std::string_view text, const std::string& name = "step", const ReadOptions& options = {});

}  // namespace tidemark::step
