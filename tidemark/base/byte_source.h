#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tidemark {

// Where a reader's bytes come from: a file, memory, or a zstd stream over either. read() fills a part of `buffer`
// and returns how much; zero means the end.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::size_t read(std::span<char> buffer) = 0;
};

// What readers take of a compressed file for each of its bytes. Recorded steps have about 6.
inline constexpr std::int64_t kMaxExpansion = 50;

// So much may come of any file, however small: short and repetitive files compress well.
inline constexpr std::int64_t kFreeExpansionBytes = 8 << 20;

struct DecompressLimits {
  std::int64_t max_bytes = 0;      // of decompressed data
  std::int64_t max_expansion = 0;  // decompressed bytes per compressed byte, after the first kFreeExpansionBytes
};

// Throws: Error (io) when the file cannot be opened or is a folder.
std::unique_ptr<ByteSource> open_file_source(const std::string& path);

// The file's bytes, but never more than one beyond `max_bytes`, so that a reader notices a file that is too large.
// Throws: Error (io).
std::string read_small_file(const std::string& path, std::size_t max_bytes);

// `data` must outlive the source.
std::unique_ptr<ByteSource> make_memory_source(std::string_view data);

// Passes plain data through and decompresses zstd data (recognised by its first four bytes) as it streams, so that
// a small file that claims to be huge never costs more than it may. `name` is the place of errors.
std::unique_ptr<ByteSource> decompress_if_needed(std::unique_ptr<ByteSource> source, std::string name,
                                                 const DecompressLimits& limits);

// One zstd frame that holds `data` and declares its size; the same bytes for the same zstd version.
std::string compress_zstd(std::string_view data);

}  // namespace tidemark
