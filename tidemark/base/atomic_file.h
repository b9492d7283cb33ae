#pragma once

#include <string>
#include <string_view>

namespace tidemark {

// A file that appears whole or not at all. Everything goes to a temporary file beside the target; commit() flushes it
// to the disk and renames it over the target. Until then, and after any failure, the old file is as it was and the
// temporary one is removed. A symbolic link is followed, the permissions of an existing file are kept, and a target
// that is no regular file (a pipe, /dev/stdout) is written straight, since it cannot be replaced.
//
//   AtomicFile file("plan.json");
//   file.write(text);
//   file.commit();
class AtomicFile {
 public:
  // Throws: Error (io) when the folder cannot be written.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view data);
  void commit();

 private:
  [[noreturn]] void fail(std::string_view action);

  std::string shown_path_;      // as the caller wrote it, for messages
  std::string target_path_;     // with links resolved
  std::string temporary_path_;  // empty when written straight
  int descriptor_ = -1;
};

void write_file_atomically(const std::string& path, std::string_view contents);

}  // namespace tidemark
