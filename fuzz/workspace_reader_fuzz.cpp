// Any bytes are refused with an Error that is fit to print, or are a workspace table that survives being written.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz_check.h"
#include "tidemark/base/error.h"
#include "tidemark/memory/workspace_file.h"

namespace {

using namespace tidemark::memory;

// Small, so that limits are reached by small inputs and every run is quick.
constexpr WorkspaceReadOptions kOptions = {.max_line_bytes = 1 << 12, .max_total_bytes = 1 << 16, .max_expansion = 200};

std::optional<WorkspaceTable> read(std::string_view text) {
  try {
    return parse_workspace(text, "fuzz", kOptions);
  } catch (const tidemark::Error& error) {
    check_reader_error(error);
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto table = read(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!table) return 0;
  const std::string text = workspace_text(*table);
  FUZZ_CHECK(parse_workspace(text) == *table);
  FUZZ_CHECK(workspace_text(parse_workspace(text)) == text);
  return 0;
}
