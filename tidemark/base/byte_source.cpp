#include "tidemark/base/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "tidemark/base/bytes.h"
#include "tidemark/base/error.h"

namespace tidemark {

namespace {

// zstd's window may be 2^27 bytes by default; steps are written with far less, and a reader should not hold more.
constexpr int kMaxWindowLog = 24;
constexpr int kCompressionLevel = 3;

class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::string& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail("open");
  }
  ~FileSource() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  std::size_t read(std::span<char> buffer) override {
    for (;;) {
      const ssize_t n = ::read(descriptor_, buffer.data(), buffer.size());
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) fail("read");
    }
  }

 private:
  [[noreturn]] void fail(std::string_view action) const {
    const int code = errno;
    throw Error({.kind = ErrorKind::kIo,
                 .place = path_,
                 .problem = fmt::format("cannot {} this file: {}", action, std::generic_category().message(code)),
                 .expected = {},
                 .got = {},
                 .remedy = "check the path and its permissions"});
  }

  std::string path_;
  int descriptor_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string_view data) : data_(data) {}

  std::size_t read(std::span<char> buffer) override {
    const std::size_t n = std::min(buffer.size(), data_.size());
    std::copy_n(data_.data(), n, buffer.data());
    data_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view data_;
};

// Replays bytes that were read to look at them, then goes on with the source.
class PrefixedSource : public ByteSource {
 public:
  PrefixedSource(std::string prefix, std::unique_ptr<ByteSource> source)
      : prefix_(std::move(prefix)), source_(std::move(source)) {}

  std::size_t read(std::span<char> buffer) override {
    if (used_ == prefix_.size()) return source_->read(buffer);
    const std::size_t n = std::min(buffer.size(), prefix_.size() - used_);
    std::copy_n(prefix_.data() + used_, n, buffer.data());
    used_ += n;
    return n;
  }

 private:
  std::string prefix_;
  std::size_t used_ = 0;
  std::unique_ptr<ByteSource> source_;
};

class ZstdSource : public ByteSource {
 public:
  ZstdSource(std::unique_ptr<ByteSource> source, std::string name, const DecompressLimits& limits)
      : source_(std::move(source)), name_(std::move(name)), limits_(limits), input_(std::size_t{64} << 10) {
    TIDEMARK_CHECK(context_ != nullptr, "zstd gives a context");
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  std::size_t read(std::span<char> buffer) override {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size && !refill()) {
        if (frame_open_) fail("the compressed data ends in the middle", "write the file again: it is cut short");
        return 0;
      }
      const std::size_t result = ZSTD_decompressStream(context_.get(), &out, &in_);
      if (ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge)
        fail("the compressed data needs too much memory to read", "compress it again without zstd's option --long");
      if (ZSTD_isError(result)) {
        fail(fmt::format("the compressed data is damaged ({})", ZSTD_getErrorName(result)),
             "decompress it with the zstd tool to see whether the file is whole");
      }
      frame_open_ = result != 0;
    }
    bytes_out_ += static_cast<std::int64_t>(out.pos);
    check_limits();
    return out.pos;
  }

 private:
  bool refill() {
    const std::size_t n = source_->read(input_);
    in_ = {input_.data(), n, 0};
    bytes_in_ += static_cast<std::int64_t>(n);
    return n > 0;
  }

  void check_limits() const {
    if (bytes_out_ > limits_.max_bytes) refuse(fmt::format("at most {} decompressed", format_bytes(limits_.max_bytes)));
    if (bytes_out_ > kFreeExpansionBytes && bytes_out_ / limits_.max_expansion > bytes_in_)
      refuse(fmt::format("at most {} bytes for each compressed byte", limits_.max_expansion));
  }

  [[noreturn]] void refuse(std::string expected) const {
    throw Error({.kind = ErrorKind::kLimit,
                 .place = name_,
                 .problem = "the compressed data expands to more than is allowed",
                 .expected = std::move(expected),
                 .got = fmt::format("{} from {} so far", format_bytes(bytes_out_), format_bytes(bytes_in_)),
                 .remedy = "decompress it with the zstd tool and read the plain file, if you trust it"});
  }

  [[noreturn]] void fail(std::string problem, std::string remedy) const {
    throw Error({.kind = ErrorKind::kInput,
                 .place = name_,
                 .problem = std::move(problem),
                 .expected = {},
                 .got = {},
                 .remedy = std::move(remedy)});
  }

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  DecompressLimits limits_;
  std::vector<char> input_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_{ZSTD_createDCtx(), &ZSTD_freeDCtx};
  std::int64_t bytes_in_ = 0;
  std::int64_t bytes_out_ = 0;
  bool frame_open_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_file_source(const std::string& path) { return std::make_unique<FileSource>(path); }

std::string read_small_file(const std::string& path, std::size_t max_bytes) {
  const auto source = open_file_source(path);
  std::string text;
  std::array<char, 1 << 14> buffer{};
  while (text.size() <= max_bytes) {
    const std::size_t n = source->read(std::span(buffer).first(std::min(buffer.size(), max_bytes + 1 - text.size())));
    if (n == 0) break;
    text.append(buffer.data(), n);
  }
  return text;
}

std::unique_ptr<ByteSource> make_memory_source(std::string_view data) { return std::make_unique<MemorySource>(data); }

std::unique_ptr<ByteSource> decompress_if_needed(std::unique_ptr<ByteSource> source, std::string name,
                                                 const DecompressLimits& limits) {
  constexpr std::string_view kMagic = "\x28\xB5\x2F\xFD";
  std::string head(kMagic.size(), '\0');
  std::size_t filled = 0;
  while (filled < head.size()) {
    const std::size_t n = source->read(std::span(head).subspan(filled));
    if (n == 0) break;
    filled += n;
  }
  head.resize(filled);
  const bool compressed = head == kMagic;
  auto whole = std::make_unique<PrefixedSource>(std::move(head), std::move(source));
  if (!compressed) return whole;
  return std::make_unique<ZstdSource>(std::move(whole), std::move(name), limits);
}

std::string compress_zstd(std::string_view data) {
  std::string out(ZSTD_compressBound(data.size()), '\0');
  const std::size_t n = ZSTD_compress(out.data(), out.size(), data.data(), data.size(), kCompressionLevel);
  TIDEMARK_CHECK(!ZSTD_isError(n), "zstd compresses into a buffer of its own bound");
  out.resize(n);
  return out;
}

}  // namespace tidemark
