#include "golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "scratch_folder.h"
#include "tidemark/base/atomic_file.h"

namespace tidemark::test {

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(TIDEMARK_SOURCE_DIR) + "/tests/golden/" + name;
  const char* accept = std::getenv("TIDEMARK_ACCEPT");
  if (accept != nullptr && std::string(accept) == "1") {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    write_file_atomically(path, text);
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing; run ./test --accept";
  EXPECT_EQ(read_whole_file(path), text) << "differs from " << path << "; if that is meant, run ./test --accept";
}

}  // namespace tidemark::test
