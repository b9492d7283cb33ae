#include "tidemark/memory/workspace.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>

#include "tidemark/base/error.h"
#include "tidemark/base/utf8.h"
#include "tidemark/step/dtype.h"
#include "tidemark/step/limits.h"

namespace tidemark::memory {

namespace {

using namespace step;

using Text = std::back_insert_iterator<std::string>;

void add_layout(std::string& text, const Step& step, const Layout& layout) {
  fmt::format_to(Text(text), "{}[{};{}]", name_of(layout.dtype), fmt::join(step.sizes(layout), ","),
                 fmt::join(step.strides(layout), ","));
}

// A float never looks like a whole number, so that 1 and 1.0 differ.
void add_number(std::string& text, double number) {
  const std::string digits = fmt::format("{}", number);
  text += digits;
  if (std::isfinite(number) && digits.find_first_of(".e") == std::string::npos) text += ".0";
}

void add_value(std::string& text, const Step& step, const ArgValue& arg);

struct ValueWriter {
  std::string& text;
  const Step& step;

  void operator()(std::monostate) const { text += "null"; }
  void operator()(bool value) const { text += value ? "true" : "false"; }
  void operator()(std::int64_t value) const { fmt::format_to(Text(text), "{}", value); }
  void operator()(double value) const { add_number(text, value); }
  void operator()(StringId value) const { text += quote(step.text(value), step.text(value).size()); }
  void operator()(const InputRange& value) const { fmt::format_to(Text(text), "<{}:{}>", value.begin, value.end); }
  void operator()(const ArgValue::List& list) const {
    text += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) text += ',';
      add_value(text, step, list[i]);
    }
    text += ']';
  }
};

void add_value(std::string& text, const Step& step, const ArgValue& arg) {
  std::visit(ValueWriter{text, step}, arg.value);
}

// Ops that are equal in what decides their key by ids alone; comparing ids is much cheaper than writing keys.
struct OpShape {
  StringId name;
  ArgsId args;
  bool is_unwatched = false;
  std::vector<LayoutId> inputs;

  friend auto operator<=>(const OpShape&, const OpShape&) = default;
};

OpShape shape_of(const Step& step, const Op& op) {
  OpShape shape{op.name, op.args, op.flags.has(OpFlag::kUnwatched), {}};
  shape.inputs.reserve(op.inputs.count);
  for (const TensorId input : step.inputs(op)) shape.inputs.push_back(step[input].layout);
  return shape;
}

std::unordered_map<std::string_view, std::uint32_t> rows_by_key(const WorkspaceTable& table) {
  std::unordered_map<std::string_view, std::uint32_t> rows;
  for (std::uint32_t i = 0; i < table.rows.size(); ++i) {
    const WorkspaceRow& row = table.rows[i];
    std::string problem = problem_of(row);
    if (problem.empty() && !rows.emplace(row.key, i).second) problem = "another row has the same key";
    if (problem.empty()) continue;
    throw Error({.kind = ErrorKind::kInput,
                 .place = fmt::format("workspace.rows[{}]", i),
                 .problem = std::move(problem),
                 .expected = {},
                 .got = quote(row.key, 80),
                 .remedy = {}});
  }
  return rows;
}

}  // namespace

WorkspaceStep workspace_step(std::int64_t kind, std::int64_t value) {
  if (kind >= 0 && kind <= 2) return {static_cast<WorkspaceStepKind>(kind), value};
  throw Error({.kind = ErrorKind::kInput,
               .place = "workspace.steps",
               .problem = "there is no such kind of step",
               .expected = "0 (an allocation of the op), 1 (hidden bytes come) or 2 (hidden bytes go)",
               .got = fmt::format("{}", kind),
               .remedy = {}});
}

std::string workspace_key(const Step& step, OpId id) {
  if (id.index() >= step.tables().ops.size())
    throw Error({.kind = ErrorKind::kInput,
                 .place = "op",
                 .problem = "the step has no such op",
                 .expected = fmt::format("an id below {}", step.tables().ops.size()),
                 .got = id.is_none() ? "none" : fmt::format("{}", id.value()),
                 .remedy = {}});
  const Op& op = step[id];
  std::string key(step.text(op.name));
  if (op.flags.has(OpFlag::kUnwatched)) key += '!';  // another kernel than when it makes a storage
  key += '(';
  bool first = true;
  for (const TensorId input : step.inputs(op)) {
    if (!first) key += ',';
    first = false;
    add_layout(key, step, step[step[input].layout]);
  }
  key += "){";
  if (op.args.has_value()) {
    first = true;
    for (const Arg& arg : step[op.args]) {
      if (!first) key += ',';
      first = false;
      key += step.text(arg.name);
      key += '=';
      add_value(key, step, arg.value);
    }
  }
  key += '}';
  return key;
}

std::vector<std::uint32_t> join_workspace(const Step& step, const WorkspaceTable& table, bool are_watched) {
  const auto rows = rows_by_key(table);
  std::map<OpShape, std::uint32_t> row_of_shape;  // not hashed: a file could choose ids that collide
  std::vector<std::uint32_t> row_of_op(step.tables().ops.size(), kNoRow);
  for (std::uint32_t i = 0; i < row_of_op.size(); ++i) {
    const auto [found, is_new] = row_of_shape.try_emplace(shape_of(step, step[OpId(i)]), kNoRow);
    if (is_new) {
      const std::string key = workspace_key(step, OpId(i));
      auto row = are_watched ? rows.find(key + std::string(kWatchedSuffix)) : rows.end();
      if (row == rows.end()) row = rows.find(key);
      if (row != rows.end()) found->second = row->second;
    }
    row_of_op[i] = found->second;
  }
  return row_of_op;
}

std::string problem_of(const WorkspaceRow& row) {
  std::vector<bool> given_back;  // by kTake
  for (const WorkspaceStep& s : row.steps) {
    switch (s.kind) {
      case WorkspaceStepKind::kMake:
        if (s.value < 0 || s.value > kMaxOpTensors) return "the number of an allocation is out of range";
        break;
      case WorkspaceStepKind::kTake:
        if (s.value < 0 || s.value > kMaxTotalBytes) return "a number of bytes is out of range";
        given_back.push_back(false);
        break;
      case WorkspaceStepKind::kGive:
        if (s.value < 0 || static_cast<std::size_t>(s.value) >= given_back.size())
          return "hidden memory is freed before it is allocated";
        if (given_back[static_cast<std::size_t>(s.value)]) return "hidden memory is freed twice";
        given_back[static_cast<std::size_t>(s.value)] = true;
        break;
    }
  }
  return {};
}

}  // namespace tidemark::memory
