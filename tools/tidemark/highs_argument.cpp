#include "highs_argument.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace tidemark::cli {

namespace {

namespace fs = std::filesystem;

// Of every Python in the environment, the newest first.
void add_from(const fs::path& environment, std::vector<std::string>& paths) {
  std::error_code error;
  std::vector<std::string> found;
  for (const fs::directory_entry& python : fs::directory_iterator(environment / "lib", error)) {
    fs::path library = python.path() / "site-packages" / "highsbox" / "highs_dist" / "lib" / "libhighs.so";
    if (fs::exists(library, error)) found.push_back(library);
  }
  std::sort(found.rbegin(), found.rend());
  paths.insert(paths.end(), found.begin(), found.end());
}

}  // namespace

planner::Highs find_highs(const std::string& path) {
  if (!path.empty()) return planner::Highs({path});
  std::vector<std::string> paths;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  constexpr int kLevels = 3;  // build/tidemark, build/release/tidemark
  fs::path folder = program.parent_path();
  for (int i = 0; i < kLevels && !error; ++i, folder = folder.parent_path()) add_from(folder / ".venv", paths);
  for (const std::string& name : planner::system_highs()) paths.push_back(name);
  return planner::Highs(paths);
}

}  // namespace tidemark::cli
