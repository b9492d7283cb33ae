// The architecture as a test: each folder of the library uses only earlier ones, and the library neither prints nor
// exits nor reads the environment.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "../support/scratch_folder.h"

namespace tidemark {
namespace {

// In order; HACKING.md lists them with a line each. A new folder goes here first.
const std::vector<std::string> kFolders = {"base", "step",   "ops", "fake",    "nn",     "zoo",     "device", "cost",
                                           "plan", "memory", "sac", "planner", "verify", "certify", "report"};

struct File {
  std::string path;    // below tidemark/
  std::string folder;  // empty for tidemark/*.h
  std::string text;
};

std::vector<File> library_files() {
  const std::filesystem::path root = std::filesystem::path(TIDEMARK_SOURCE_DIR) / "tidemark";
  std::vector<File> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    const auto relative = std::filesystem::relative(entry.path(), root);
    const std::string folder = relative.has_parent_path() ? relative.begin()->string() : "";
    files.push_back({relative.string(), folder, test::read_whole_file(entry.path())});
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

int rank_of(const std::string& folder) {
  const auto found = std::find(kFolders.begin(), kFolders.end(), folder);
  return found == kFolders.end() ? -1 : static_cast<int>(found - kFolders.begin());
}

// Folders that `text` includes and that come after `folder`, or that are unknown.
std::vector<std::string> wrong_includes(const std::string& folder, const std::string& text) {
  static const std::regex kInclude(R"(#include\s*[<"]tidemark/(\w+)/)");
  std::vector<std::string> wrong;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), kInclude); it != std::sregex_iterator(); ++it)
    if (rank_of((*it)[1]) < 0 || rank_of((*it)[1]) > rank_of(folder)) wrong.push_back((*it)[1]);
  return wrong;
}

std::vector<std::string> forbidden_calls(const std::string& text) {
  static const std::regex kCalls(
      R"((std::cout|std::cerr|std::clog|\bprintf\s*\(|\bfprintf\s*\(|\bputs\s*\(|fmt::print|<iostream>|\bgetenv\b|\bsetenv\b|(?:^|[^.>\w])_?exit\s*\(\s*\w*\s*\)\s*;|\babort\s*\(|std::terminate))");
  std::vector<std::string> calls;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), kCalls); it != std::sregex_iterator(); ++it)
    calls.push_back((*it)[1]);
  return calls;
}

TEST(Layering, EachFolderUsesOnlyEarlierOnes) {
  const auto files = library_files();
  ASSERT_GT(files.size(), 20u);
  for (const File& file : files) {
    if (file.folder.empty()) continue;  // the umbrella header
    EXPECT_GE(rank_of(file.folder), 0) << file.path << " is in a folder that this test does not list";
    EXPECT_EQ(wrong_includes(file.folder, file.text), std::vector<std::string>{}) << file.path;
  }
}

bool is_replay(const std::string& path) {
  return path.starts_with("verify/replay.") || path.starts_with("verify/verify_plan.");
}

// The second replay is worth something only as long as it shares nothing with the first but values; the check of
// certificates, as long as it has the step's options and their model from the planner, and nothing of its search.
TEST(Layering, TheSecondReplayKnowsNothingOfTheFirst) {
  static const std::regex kInclude(R"(#include\s*[<"]tidemark/((plan|memory|planner)/[\w.]+)[>"])");
  const std::set<std::string> allowed = {"plan/plan.h",     "plan/plan_file.h",  "memory/workspace.h",
                                         "planner/space.h", "planner/problem.h", "planner/build_problem.h"};
  const std::set<std::string> of_replay = {"plan/plan.h", "plan/plan_file.h", "memory/workspace.h"};
  int files = 0;
  for (const File& file : library_files()) {
    if (file.folder != "verify") continue;
    ++files;
    for (auto it = std::sregex_iterator(file.text.begin(), file.text.end(), kInclude); it != std::sregex_iterator();
         ++it)
      EXPECT_TRUE((is_replay(file.path) ? of_replay : allowed).contains((*it)[1]))
          << file.path << " includes " << (*it)[1];
  }
  EXPECT_GE(files, 2);
}

TEST(Layering, TheLibraryDoesNotPrintExitOrReadTheEnvironment) {
  for (const File& file : library_files())
    EXPECT_EQ(forbidden_calls(file.text), std::vector<std::string>{}) << file.path;
}

TEST(Layering, HeadersAreGuardedAndSourcesIncludeTheirHeaderFirst) {
  const auto files = library_files();
  std::map<std::string, bool> exists;
  for (const File& file : files) exists[file.path] = true;
  for (const File& file : files) {
    if (file.path.ends_with(".h")) {
      EXPECT_TRUE(file.text.starts_with("#pragma once")) << file.path;
      EXPECT_EQ(file.text.find("using namespace"), std::string::npos) << file.path;
      continue;
    }
    const std::string header = file.path.substr(0, file.path.size() - 4) + ".h";
    if (exists.contains(header)) {
      EXPECT_TRUE(file.text.starts_with("#include \"tidemark/" + header + "\"")) << file.path;
    }
  }
}

// The rules must be able to fail.
TEST(Layering, NoticesWhatItForbids) {
  EXPECT_EQ(wrong_includes("base", "#include \"tidemark/step/step.h\"\n"), std::vector<std::string>{"step"});
  EXPECT_EQ(wrong_includes("step", "#include \"tidemark/base/id.h\"\n"), std::vector<std::string>{});
  EXPECT_EQ(wrong_includes("base", "#include <tidemark/nowhere/x.h>\n"), std::vector<std::string>{"nowhere"});
  EXPECT_EQ(forbidden_calls("std::cout << 1; getenv(\"X\"); exit(1);").size(), 3u);
  EXPECT_EQ(forbidden_calls("snprintf(buffer, 1); on_exit(event.id); builder.exit(call)").size(), 0u);
}

}  // namespace
}  // namespace tidemark
