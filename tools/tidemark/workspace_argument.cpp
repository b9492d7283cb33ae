#include "workspace_argument.h"

#include <fmt/format.h>

#include <filesystem>

#include "tidemark/memory/workspace_file.h"
#include "tidemark/step/dump.h"

namespace tidemark::cli {

std::string find_workspace_argument(const std::string& named, const std::string& step, const Console& console) {
  if (!named.empty()) return named;
  const std::string beside = memory::workspace_beside(step);
  std::error_code code;
  if (!std::filesystem::is_regular_file(beside, code)) return {};
  console.message(fmt::format("tidemark: using the workspace table {}\n", step::printable(beside)));
  return beside;
}

std::optional<memory::WorkspaceTable> read_workspace_argument(const std::string& named, const std::string& step,
                                                              const Console& console) {
  const std::string file = find_workspace_argument(named, step, console);
  if (file.empty()) return std::nullopt;
  return memory::read_workspace(file);
}

}  // namespace tidemark::cli
