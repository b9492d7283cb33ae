#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tidemark/base/byte_source.h"
#include "tidemark/memory/workspace.h"

namespace tidemark::memory {

// The file of a workspace table (docs/workspace_format.md): JSON Lines, plain or zstd, one row per line. Reading
// streams, and is safe on hostile input: what exceeds a limit is refused as soon as it does.
inline constexpr int kWorkspaceFormatMajor = 1;
inline constexpr int kWorkspaceFormatMinor = 0;
inline constexpr std::int64_t kMaxWorkspaceRows = 1 << 20;
inline constexpr std::int64_t kMaxWorkspaceSteps = 1 << 12;  // of one row
inline constexpr std::int64_t kMaxWorkspaceKeyBytes = 64 << 10;

struct WorkspaceReadOptions {
  std::int64_t max_line_bytes = 1 << 20;
  std::int64_t max_total_bytes = std::int64_t{1} << 30;  // after decompression
  std::int64_t max_expansion = kMaxExpansion;            // decompressed bytes per compressed byte
};

// Throws: Error that names the file, the line, the row and the field.
WorkspaceTable read_workspace(const std::string& path, const WorkspaceReadOptions& options = {});

// The same from memory; `name` stands for the file in errors.
WorkspaceTable parse_workspace(std::string_view text, const std::string& name = "workspace",
                               const WorkspaceReadOptions& options = {});

// The text of the file, the same on every machine. Throws: Error when it could not be read back.
std::string workspace_text(const WorkspaceTable& table);

// Where the table of a step file is looked for: beside it.
std::string workspace_beside(std::string_view step_path);

// Writes the file whole or not at all; compressed when the name ends in ".zst".
void write_workspace(const WorkspaceTable& table, const std::string& path);

}  // namespace tidemark::memory
