#include "highs.h"

#include <filesystem>

namespace tidemark::test {

const planner::Highs& highs() {
  static const planner::Highs loaded = [] {
    std::vector<std::string> paths;
    const std::filesystem::path packages = std::filesystem::path(TIDEMARK_SOURCE_DIR) / ".venv" / "lib";
    if (std::filesystem::exists(packages))
      for (const auto& python : std::filesystem::directory_iterator(packages))
        paths.push_back(python.path() / "site-packages/highsbox/highs_dist/lib/libhighs.so");
    for (const std::string& name : planner::system_highs()) paths.push_back(name);
    return planner::Highs(paths);
  }();
  return loaded;
}

}  // namespace tidemark::test
