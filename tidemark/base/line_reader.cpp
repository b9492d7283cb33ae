#include "tidemark/base/line_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tidemark/base/bytes.h"
#include "tidemark/base/error.h"

namespace tidemark {

namespace {
constexpr std::size_t kChunkBytes = std::size_t{16} << 10;
}

LineReader::LineReader(std::unique_ptr<ByteSource> source, std::string name, const LineLimits& limits)
    : source_(std::move(source)), name_(std::move(name)), limits_(limits), buffer_(kChunkBytes) {}

std::string LineReader::place() const { return fmt::format("{}, line {}", name_, line_); }

bool LineReader::refill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    const auto cap = static_cast<std::size_t>(limits_.max_line_bytes) + 1;
    buffer_.resize(std::max(std::min(buffer_.size() * 2, cap), end_ + 1));
  }
  const std::size_t n = source_->read(std::span(buffer_).subspan(end_));
  end_ += n;
  return n > 0;
}

std::optional<std::string_view> LineReader::next() {
  std::size_t searched = 0;  // of the bytes from begin_
  for (;;) {
    const char* start = buffer_.data() + begin_;
    const void* found = std::memchr(start + searched, '\n', end_ - begin_ - searched);
    const std::size_t length =
        found != nullptr ? static_cast<std::size_t>(static_cast<const char*>(found) - start) : end_ - begin_;
    if (static_cast<std::int64_t>(length) > limits_.max_line_bytes) {
      ++line_;
      throw Error({.kind = ErrorKind::kLimit,
                   .place = place(),
                   .problem = "the line is too long",
                   .expected = fmt::format("at most {}", format_bytes(limits_.max_line_bytes)),
                   .got = {},
                   .remedy = "check that this is the right file; one record stands on one line"});
    }
    if (found != nullptr) {
      ++line_;
      total_bytes_ += static_cast<std::int64_t>(length) + 1;
      if (total_bytes_ > limits_.max_total_bytes) {
        throw Error({.kind = ErrorKind::kLimit,
                     .place = place(),
                     .problem = "the file is too long",
                     .expected = fmt::format("at most {}", format_bytes(limits_.max_total_bytes)),
                     .got = {},
                     .remedy = "raise the reader's max_total_bytes if you trust the file"});
      }
      begin_ += length + 1;
      return std::string_view(start, length);
    }
    searched = length;
    if (!refill()) break;
  }
  if (end_ == begin_) return std::nullopt;
  ++line_;
  throw Error({.kind = ErrorKind::kInput,
               .place = place(),
               .problem = "the last line has no end: the file is cut short",
               .expected = "a line break after every record",
               .got = {},
               .remedy = "write the file again"});
}

}  // namespace tidemark
