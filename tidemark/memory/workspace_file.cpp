#include "tidemark/memory/workspace_file.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "tidemark/base/atomic_file.h"
#include "tidemark/base/byte_source.h"
#include "tidemark/base/error.h"
#include "tidemark/base/line_reader.h"
#include "tidemark/base/utf8.h"
#include "tidemark/step/json_row.h"

namespace tidemark::memory {

namespace {

constexpr std::string_view kFirstLine = R"({"tidemark":"workspace","version":[1,0],"device":"...","rows":N})";

class WorkspaceReader {
 public:
  WorkspaceReader(std::unique_ptr<ByteSource> source, const std::string& name, const WorkspaceReadOptions& options)
      : name_(name),
        lines_(decompress_if_needed(std::move(source), name, {options.max_total_bytes, options.max_expansion}), name,
               {options.max_line_bytes, options.max_total_bytes}),
        row_([this](std::string_view field) { return place(field); }) {}

  WorkspaceTable run() {
    const std::int64_t count = read_first_line();
    in_rows_ = true;
    for (row_number_ = 0; row_number_ < count; ++row_number_) {
      if (!next_line()) fail("the file ends too early", fmt::format("{} rows", count), fmt::format("{}", row_number_));
      read_row();
    }
    if (lines_.next()) fail("something follows the last row", "the end of the file", {});
    return std::move(table_);
  }

 private:
  std::string place(std::string_view field) const {
    std::string text = lines_.place();
    if (in_rows_) text += fmt::format(": rows[{}]", row_number_);
    if (!field.empty()) text += fmt::format("{}{}", in_rows_ ? "." : ": ", field);
    return text;
  }

  [[noreturn]] void fail(std::string problem, std::string expected, std::string got) const {
    throw Error({.kind = ErrorKind::kInput,
                 .place = lines_.line() == 0 ? name_ : lines_.place(),
                 .problem = std::move(problem),
                 .expected = std::move(expected),
                 .got = std::move(got),
                 .remedy = "name a workspace table that tidemark wrote"});
  }

  bool next_line() {
    const auto line = lines_.next();
    if (line) row_.parse(*line);
    return line.has_value();
  }

  std::int64_t read_first_line() {
    if (!next_line()) fail("the file is empty", std::string(kFirstLine), {});
    if (!row_.is_object()) fail("this is not a workspace table", std::string(kFirstLine), {});
    row_.begin_object("");
    bool is_workspace = false;
    std::int64_t major = -1;
    std::int64_t count = -1;
    bool has_device = false;
    while (const auto key = row_.next_key()) {
      if (*key == "tidemark") {
        is_workspace = row_.string("tidemark") == "workspace";
        if (!is_workspace) fail("this is another kind of tidemark file", std::string(kFirstLine), {});
      } else if (*key == "version") {
        row_.begin_array("version");
        major = row_.integer("version", 0, std::numeric_limits<int>::max());
        row_.integer("version", 0, std::numeric_limits<int>::max());
        row_.end_array("version");
      } else if (*key == "device") {
        table_.device = text("device", kMaxWorkspaceKeyBytes);
        has_device = true;
      } else if (*key == "rows") {
        count = row_.integer("rows", 0, kMaxWorkspaceRows);
      } else {
        fail("the first line has an unknown field", std::string(kFirstLine), quote(*key));
      }
    }
    row_.end_row();
    if (!is_workspace || major < 0 || count < 0 || !has_device)
      fail("the first line lacks a field", std::string(kFirstLine), {});
    if (major != kWorkspaceFormatMajor)
      fail("this version of the format is not known", fmt::format("version {}", kWorkspaceFormatMajor),
           fmt::format("{}", major));
    return count;
  }

  std::string text(std::string_view field, std::int64_t max_bytes) {
    std::string value(row_.string(field));
    if (static_cast<std::int64_t>(value.size()) > max_bytes)
      row_.fail(field, "the text is too long", fmt::format("at most {} bytes", max_bytes),
                fmt::format("{}", value.size()));
    if (!is_utf8(value)) row_.fail(field, "the text is not UTF-8", "UTF-8", quote(value));
    return value;
  }

  void read_row() {
    WorkspaceRow row;
    row_.begin_array("");
    row.key = text("key", kMaxWorkspaceKeyBytes);
    row_.begin_array("steps");
    while (!row_.at_array_end()) row.steps.push_back(read_step(row.steps.size()));
    row_.end_array("steps");
    row.estimated = row_.boolean("estimated");
    row_.end_array("");
    row_.end_row();
    if (const std::string problem = problem_of(row); !problem.empty())
      row_.fail("steps", problem, "steps of docs/workspace_format.md", quote(row.key));
    if (!keys_.insert(row.key).second)
      row_.fail("key", "another row has the same key", "each key once", quote(row.key));
    table_.rows.push_back(std::move(row));
  }

  WorkspaceStep read_step(std::size_t before) {
    if (static_cast<std::int64_t>(before) >= kMaxWorkspaceSteps)
      row_.fail("steps", "there are too many steps", fmt::format("at most {}", kMaxWorkspaceSteps), "more");
    row_.begin_array("steps");
    const std::int64_t kind = row_.integer("steps", 0, 2);
    const std::int64_t value = row_.integer("steps", 0);
    row_.end_array("steps");
    return {static_cast<WorkspaceStepKind>(kind), value};
  }

  std::string name_;
  LineReader lines_;
  step::JsonRow row_;
  WorkspaceTable table_;
  std::unordered_set<std::string> keys_;
  bool in_rows_ = false;
  std::int64_t row_number_ = 0;
};

std::string json_string(const std::string& text) { return nlohmann::json(text).dump(); }

void require(bool holds, std::string place, std::string problem) {
  if (holds) return;
  throw Error({.kind = ErrorKind::kInput,
               .place = std::move(place),
               .problem = std::move(problem),
               .expected = "what docs/workspace_format.md allows",
               .got = {},
               .remedy = {}});
}

void check_row(const WorkspaceRow& row, std::size_t number) {
  const std::string place = fmt::format("workspace.rows[{}]", number);
  const std::string problem = problem_of(row);
  require(problem.empty(), place, problem);
  require(is_utf8(row.key) && static_cast<std::int64_t>(row.key.size()) <= kMaxWorkspaceKeyBytes, place,
          "the key is too long or not UTF-8");
  require(static_cast<std::int64_t>(row.steps.size()) <= kMaxWorkspaceSteps, place, "there are too many steps");
}

}  // namespace

WorkspaceTable read_workspace(const std::string& path, const WorkspaceReadOptions& options) {
  return WorkspaceReader(open_file_source(path), path, options).run();
}

WorkspaceTable parse_workspace(std::string_view text, const std::string& name, const WorkspaceReadOptions& options) {
  return WorkspaceReader(make_memory_source(text), name, options).run();
}

std::string workspace_text(const WorkspaceTable& table) {
  require(static_cast<std::int64_t>(table.rows.size()) <= kMaxWorkspaceRows, "workspace", "there are too many rows");
  require(is_utf8(table.device) && static_cast<std::int64_t>(table.device.size()) <= kMaxWorkspaceKeyBytes,
          "workspace.device", "the device is too long or not UTF-8");
  std::unordered_set<std::string_view> keys;
  std::string text =
      fmt::format("{{\"tidemark\":\"workspace\",\"version\":[{},{}],\"device\":{},\"rows\":{}}}\n",
                  kWorkspaceFormatMajor, kWorkspaceFormatMinor, json_string(table.device), table.rows.size());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const WorkspaceRow& row = table.rows[i];
    check_row(row, i);
    require(keys.insert(row.key).second, fmt::format("workspace.rows[{}]", i), "another row has the same key");
    text += '[';
    text += json_string(row.key);
    text += ",[";
    for (std::size_t k = 0; k < row.steps.size(); ++k)
      fmt::format_to(std::back_inserter(text), "{}[{},{}]", k > 0 ? "," : "", static_cast<int>(row.steps[k].kind),
                     row.steps[k].value);
    text += row.estimated ? "],true]\n" : "],false]\n";
  }
  return text;
}

std::string workspace_beside(std::string_view step_path) { return std::string(step_path) + ".workspace.jsonl"; }

void write_workspace(const WorkspaceTable& table, const std::string& path) {
  const std::string text = workspace_text(table);
  write_file_atomically(path, path.ends_with(".zst") ? compress_zstd(text) : text);
}

}  // namespace tidemark::memory
