#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/base/byte_source.h"

namespace tidemark {

struct LineLimits {
  std::int64_t max_line_bytes = 0;
  std::int64_t max_total_bytes = 0;
};

// Splits a stream into lines and counts them, holding one line at a time. Lines end with \n; the last one must too,
// so that a cut file is noticed.
class LineReader {
 public:
  LineReader(std::unique_ptr<ByteSource> source, std::string name, const LineLimits& limits);

  // The next line without its end, or nothing at the end; the view is valid until the next call.
  // Throws: Error (limit) when a line or the whole is longer than allowed, (input) when the last line has no end.
  std::optional<std::string_view> next();

  // The number of the line last returned, from 1.
  std::int64_t line() const { return line_; }

  // "name, line 12".
  std::string place() const;

 private:
  bool refill();

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  LineLimits limits_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t line_ = 0;
  std::int64_t total_bytes_ = 0;
};

}  // namespace tidemark
