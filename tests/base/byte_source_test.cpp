#include "tidemark/base/byte_source.h"

#include <gtest/gtest.h>

#include "../support/scratch_folder.h"
#include "tidemark/base/atomic_file.h"
#include "tidemark/base/error.h"

namespace tidemark {
namespace {

std::string read_all(ByteSource& source) {
  std::string all;
  char buffer[777];
  while (const std::size_t n = source.read(buffer)) all.append(buffer, n);
  return all;
}

std::string inflate(const std::string& data, const DecompressLimits& limits = {1 << 30, 100000}) {
  return read_all(*decompress_if_needed(make_memory_source(data), "data", limits));
}

std::string error_of(const std::string& data, const DecompressLimits& limits) {
  try {
    inflate(data, limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ByteSource, PlainDataPassesThrough) {
  for (const std::string text : {"", "a", "ab", "abc", "plain text"}) EXPECT_EQ(inflate(text), text);
}

TEST(ByteSource, ZstdIsRecognisedAndInflated) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i);
  EXPECT_EQ(inflate(compress_zstd(text)), text);
  EXPECT_EQ(inflate(compress_zstd(text) + compress_zstd("more")), text + "more");  // frames follow each other
}

TEST(ByteSource, DamagedZstdIsAnError) {
  std::string data = compress_zstd(std::string(1000, 'x') + "y");
  EXPECT_EQ(error_of(data.substr(0, data.size() - 3), {1 << 20, 1000}),
            "[data] the compressed data ends in the middle; try: write the file again: it is cut short");
  data[data.size() / 2] = static_cast<char>(data[data.size() / 2] ^ 0x55);
  EXPECT_NE(error_of(data, {1 << 20, 1000}), "no error");
}

TEST(ByteSource, ABombIsRefusedEarly) {
  const std::string bomb = compress_zstd(std::string(100 << 20, '\n'));  // 100 MiB from a few KiB
  EXPECT_LT(bomb.size(), 20000u);
  EXPECT_NE(error_of(bomb, {10 << 20, 1 << 20}).find("at most 10.00 MiB decompressed"), std::string::npos);
  EXPECT_NE(error_of(bomb, {1 << 30, 200}).find("at most 200 bytes for each compressed byte"), std::string::npos);
}

TEST(ByteSource, FilesAreReadAndMissingOnesNamed) {
  const test::ScratchFolder scratch;
  write_file_atomically(scratch.path("a"), "content");
  EXPECT_EQ(read_all(*open_file_source(scratch.path("a"))), "content");
  EXPECT_THROW(open_file_source(scratch.path("b")), Error);
  EXPECT_THROW(read_all(*open_file_source(scratch.folder())), Error);
}

}  // namespace
}  // namespace tidemark
