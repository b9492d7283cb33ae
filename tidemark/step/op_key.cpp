#include "tidemark/step/op_key.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>

#include "tidemark/base/error.h"
#include "tidemark/base/utf8.h"
#include "tidemark/step/dtype.h"

namespace tidemark::step {

namespace {

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

}  // namespace

std::string op_key(const Step& step, OpId id) {
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

OpKinds op_kinds(const Step& step) {
  std::map<OpShape, std::uint32_t> kinds;  // not hashed: a file could choose ids that collide
  OpKinds result;
  result.of_op.reserve(step.tables().ops.size());
  for (std::uint32_t i = 0; i < step.tables().ops.size(); ++i) {
    const auto [found, is_new] =
        kinds.try_emplace(shape_of(step, step[OpId(i)]), static_cast<std::uint32_t>(result.first.size()));
    if (is_new) result.first.push_back(OpId(i));
    result.of_op.push_back(found->second);
  }
  return result;
}

}  // namespace tidemark::step
