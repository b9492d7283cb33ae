#include "tidemark/step/dump.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "tidemark/base/bytes.h"
#include "tidemark/base/utf8.h"
#include "tidemark/step/fingerprint.h"

namespace tidemark::step {

namespace {

bool is_contiguous(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  std::int64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
};

// Requires: `text` is not empty and is UTF-8. From U+10000 on only the number of bytes is right.
CodePoint first_code_point(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  if (at(0) < 0x80) return {at(0), 1};
  if (at(0) < 0xE0) return {(at(0) & 0x1F) << 6 | (at(1) & 0x3F), 2};
  if (at(0) < 0xF0) return {(at(0) & 0x0F) << 12 | (at(1) & 0x3F) << 6 | (at(2) & 0x3F), 3};
  return {0x10000, 4};
}

// Control characters, and marks that break a line or change the direction of text.
bool upsets_terminal(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

class Dumper {
 public:
  explicit Dumper(const Step& step) : step_(step), t_(step.tables()) {}

  std::string run() {
    line("step {}", fingerprint(step_).hex());
    for (const auto& [key, value] : t_.meta) line("  {}: {}", shorten(key), shorten(value));
    modules();
    residents();
    heading("events");
    indent_ = 1;
    for (const Event& event : t_.events) write(event);
    indent_ = 0;
    notes();
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(2 * indent_, ' ');
    text_ += printable(fmt::format(format, std::forward<Args>(args)...));
    text_ += '\n';
  }

  void heading(std::string_view title) { text_ += fmt::format("\n{}\n", title); }

  // Names and lists are cut where no real step would be, so that a hostile one cannot fill the disk.
  static constexpr std::size_t kShownBytes = 200;  // of a name
  static constexpr std::size_t kShownItems = 64;   // of a list

  static std::string shorten(std::string_view name) {
    if (name.size() <= kShownBytes) return std::string(name);
    std::size_t end = kShownBytes;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // not inside a character
    return fmt::format("{}...", name.substr(0, end));
  }

  std::string text(StringId id) const { return shorten(step_.text(id)); }

  // The items as `show` makes them, joined; the rest of a long list is counted.
  template <class Items, class Show>
  static std::string list(const Items& items, std::string_view separator, const Show& show) {
    std::string joined;
    std::size_t shown = 0;
    for (const auto& item : items) {
      if (shown == kShownItems) return fmt::format("{}{}and {} more", joined, separator, items.size() - shown);
      if (shown++ > 0) joined += separator;
      joined += show(item);
    }
    return joined;
  }

  static std::string short_tensor(TensorId id) { return fmt::format("t{}", id.value()); }

  std::string module_name(ModuleId id) const {
    const std::string name = step_.fqn(id);
    return name.empty() ? "(root)" : shorten(name);
  }

  void modules() {
    std::vector<std::vector<const Binding*>> bindings(t_.modules.size());
    for (const Binding& b : t_.bindings) bindings[b.module.index()].push_back(&b);
    heading("modules");
    for (std::uint32_t i = 0; i < t_.modules.size(); ++i) {
      line("  {}: {}", module_name(ModuleId(i)), text(t_.modules[i].type));
      for (const Binding* b : bindings[i])
        line("    {} {}{}: {}", name_of(b->kind), text(b->name), b->trainable ? "" : " (not trained)",
             tensor(b->tensor));
    }
  }

  void residents() {
    std::vector<bool> made(t_.storages.size(), false);
    for (const Event& event : t_.events)
      if (event.kind == EventKind::kAlloc) made[event.id] = true;
    heading("there at the start");
    for (std::uint32_t i = 0; i < t_.storages.size(); ++i)
      if (!made[i]) line("  {}", storage(StorageId(i)));
  }

  std::string storage(StorageId id) const {
    const Storage& s = step_[id];
    std::string of = s.of.is_none() ? "" : fmt::format(" of s{}", s.of.value());
    return fmt::format("s{}: {}, {}{}, {}", id.value(), format_bytes_exact(s.bytes), name_of(s.role), of,
                       text(s.device));
  }

  std::string tensor(TensorId id) const {
    const Tensor& x = step_[id];
    std::string text = fmt::format("t{} {} in s{}", id.value(), describe_layout(step_, x.layout), x.storage.value());
    if (x.offset != 0) text += fmt::format("+{}", x.offset);
    if (x.version != 0) text += fmt::format(" v{}", x.version);
    return text;
  }

  void write(const Event& event) {
    switch (event.kind) {
      case EventKind::kPhase:
        return phase(step_[PassId(event.id)]);
      case EventKind::kEnter:
        return enter(step_[CallId(event.id)]);
      case EventKind::kExit:
        --indent_;
        return exit(step_[CallId(event.id)]);
      case EventKind::kBegin:
        return op(step_[OpId(event.id)]);
      case EventKind::kEnd:
        --indent_;
        return;
      case EventKind::kAlloc:
        return line("+ {}", storage(StorageId(event.id)));
      case EventKind::kFree:
        return line("- s{}", event.id);
      case EventKind::kResize:
        return line("resize s{} to {}", step_[ResizeId(event.id)].storage.value(),
                    format_bytes_exact(step_[ResizeId(event.id)].bytes));
      case EventKind::kPack:
        return line("pack {}", save(SaveId(event.id), true));
      case EventKind::kUnpack:
        return line("unpack {}", save(SaveId(event.id), false));
      case EventKind::kDrop:
        return line("drop {}", save(SaveId(event.id), false));
      case EventKind::kRelease:
        return line("release {}", save(SaveId(event.id), false));
      case EventKind::kNode:
        line("node n{} {}", event.id, text(step_[NodeId(event.id)].name));
        ++indent_;
        return;
      case EventKind::kDone:
        --indent_;
        return line("done n{}", event.id);
    }
  }

  void phase(const Pass& pass) {
    std::string text(name_of(pass.kind));
    if (pass.micro_batch != 0) text += fmt::format(", micro-batch {}", pass.micro_batch);
    if (pass.graph_task != 0) text += fmt::format(", graph task {}", pass.graph_task);
    if (pass.rank != 0) text += fmt::format(", rank {}", pass.rank);
    line("== {}", text);
  }

  void enter(const Call& call) {
    line("enter {}({}){}", module_name(call.module), list(step_.inputs(call), ", ", short_tensor),
         call.index == 0 ? "" : fmt::format(", call {}", call.index));
    ++indent_;
  }

  void exit(const Call& call) {
    const std::string outputs = list(step_.outputs(call), ", ", short_tensor);
    line("exit {}{}{}", module_name(call.module), outputs.empty() ? "" : " -> ", outputs);
  }

  std::string save(SaveId id, bool whole) const {
    const Save& s = step_[id];
    const std::string what = whole ? tensor(s.tensor) : fmt::format("t{}", s.tensor.value());
    return fmt::format("{} for n{} {}, slot {}{}", what, s.node.value(), text(step_[s.node].name), s.slot,
                       s.hooked ? "" : " (unseen by hooks)");
  }

  void op(const Op& op) {
    const std::string inputs = list(step_.inputs(op), ", ", [&](TensorId id) { return tensor(id); });
    const std::string outputs = list(step_.outputs(op), ", ", [&](const Output& o) { return output(o); });
    line("{}({}) -> {}{}", text(op.name), inputs, outputs.empty() ? "nothing" : outputs, facts(op));
    ++indent_;
  }

  std::string output(const Output& o) const {
    std::string text = tensor(o.tensor);
    if (o.alias == AliasKind::kView) text += fmt::format(" (view of input {})", o.input);
    if (o.alias == AliasKind::kMutates) text += fmt::format(" (mutates input {})", o.input);
    if (o.alias == AliasKind::kExisting) text += " (existing)";
    return text;
  }

  std::string facts(const Op& op) const {
    std::string facts;
    if (op.args.has_value()) facts += fmt::format("  {{{}}}", args(step_[op.args]));
    for (const OpFlagName& flag : kOpFlagNames)
      if (op.flags.has(flag.flag)) facts += fmt::format("  {}", flag.name);
    if (op.group.has_value()) facts += fmt::format("  group {}", text(op.group));
    if (op.node.has_value()) facts += fmt::format("  n{}", op.node.value());
    if (op.region.has_value()) facts += fmt::format("  in {}", name_of(step_[op.region].kind));
    if (op.stream != 0) facts += fmt::format("  stream {}", op.stream);
    if (op.flops != Op::kUnknown) facts += fmt::format("  {} FLOP", format_count(op.flops));
    if (op.source.has_value()) facts += fmt::format("  @{}:{}", text(step_[op.source].file), step_[op.source].line);
    return facts;
  }

  std::string args(const ArgList& args) const {
    return list(args, ", ", [&](const Arg& arg) { return fmt::format("{}={}", text(arg.name), value(arg.value)); });
  }

  std::string value(const ArgValue& v) const {
    if (const auto* b = std::get_if<bool>(&v.value)) return *b ? "true" : "false";
    if (const auto* i = std::get_if<std::int64_t>(&v.value)) return fmt::format("{}", *i);
    if (const auto* d = std::get_if<double>(&v.value)) return fmt::format("{}", *d);
    if (const auto* s = std::get_if<StringId>(&v.value)) return fmt::format("\"{}\"", text(*s));
    if (const auto* r = std::get_if<InputRange>(&v.value))
      return r->end == r->begin + 1 ? fmt::format("input {}", r->begin)
                                    : fmt::format("inputs {} to {}", r->begin, static_cast<std::int64_t>(r->end) - 1);
    if (const auto* items = std::get_if<ArgValue::List>(&v.value))
      return fmt::format("[{}]", list(*items, ",", [&](const ArgValue& item) { return value(item); }));
    return "none";
  }

  void notes() {
    if (!t_.notes.empty()) heading("notes");
    for (const Note& n : t_.notes)
      line("  {}: {}{}", text(n.kind), text(n.text),
           n.op.is_none() ? "" : fmt::format(" (op {}, {})", n.op.value(), text(step_[n.op].name)));
  }

  const Step& step_;
  const StepTables& t_;
  std::string text_;
  std::size_t indent_ = 0;
};

}  // namespace

std::string describe_layout(const Step& step, LayoutId id) {
  const Layout& layout = step[id];
  std::string text = fmt::format("{}[{}]", name_of(layout.dtype), fmt::join(step.sizes(layout), ","));
  if (!is_contiguous(step.sizes(layout), step.strides(layout)))
    text += fmt::format(":[{}]", fmt::join(step.strides(layout), ","));
  return text;
}

std::string printable(std::string_view text) {
  std::string result;
  if (!is_utf8(text)) {
    for (const char byte : text)
      result += byte >= ' ' && byte < 0x7F ? std::string(1, byte)
                                           : fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    return result;
  }
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.value == '\n') {
      result += "\\n";
    } else if (upsets_terminal(c.value)) {
      result += fmt::format("\\u{:04x}", c.value);
    } else {
      result += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return result;
}

std::string dump(const Step& step) { return Dumper(step).run(); }

}  // namespace tidemark::step
