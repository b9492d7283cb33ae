#pragma once

#include <string>

namespace tidemark::test {

// A new folder that is removed, with all that is in it, at the end of the test.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

std::string read_whole_file(const std::string& path);

}  // namespace tidemark::test
