#include "tidemark/step/write_step.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tidemark/base/atomic_file.h"
#include "tidemark/base/byte_source.h"
#include "tidemark/base/bytes.h"
#include "tidemark/base/error.h"
#include "tidemark/step/format.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/violation.h"

namespace tidemark::step {

namespace {

constexpr std::size_t kFlushBytes = 1 << 18;

// Builds lines of compact JSON: values are separated by commas without spaces.
class LineWriter {
 public:
  explicit LineWriter(const std::function<void(std::string_view)>& sink) : sink_(sink) {}

  LineWriter& open() {
    comma();
    text_ += '[';
    first_ = true;
    return *this;
  }
  LineWriter& close() {
    text_ += ']';
    first_ = false;
    return *this;
  }
  LineWriter& raw(std::string_view json) {
    comma();
    text_ += json;
    return *this;
  }
  LineWriter& number(std::int64_t value) { return raw(view(fmt::format_int(value))); }
  LineWriter& word(std::string_view value) {  // needs no escapes
    comma();
    text_ += '"';
    text_ += value;
    text_ += '"';
    return *this;
  }
  LineWriter& string(const std::string& value) { return raw(nlohmann::json(value).dump()); }
  LineWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
  template <class Tag>
  LineWriter& id(Id<Tag> value) {
    return value.is_none() ? raw("null") : number(value.value());
  }
  LineWriter& amount(std::int64_t value) { return value == Op::kUnknown ? raw("null") : number(value); }
  void end_line() {
    text_ += '\n';
    first_ = true;
    if (text_.size() >= kFlushBytes) flush();
  }
  void flush() {
    sink_(text_);
    text_.clear();
  }

 private:
  static std::string_view view(const fmt::format_int& digits) { return {digits.data(), digits.size()}; }
  void comma() {
    if (!first_) text_ += ',';
    first_ = false;
  }

  const std::function<void(std::string_view)>& sink_;
  std::string text_;
  bool first_ = true;
};

class StepWriter {
 public:
  StepWriter(const Step& step, const std::function<void(std::string_view)>& sink)
      : step_(step), t_(step.tables()), out_(sink) {}

  void run() {
    out_.raw(fmt::format(R"({{"tidemark":"step","version":[{},{}]}})", kFormatMajor, kFormatMinor)).end_line();
    section(Table::kMeta, t_.meta, [&](const auto& m) { out_.string(m.first).string(m.second); });
    strings();
    section(Table::kModules, t_.modules, [&](const Module& m) { out_.id(m.parent).id(m.name).id(m.type); });
    section(Table::kPasses, t_.passes, [&](const Pass& p) {
      out_.word(name_of(p.kind)).number(p.micro_batch).number(p.graph_task).number(p.rank);
    });
    section(Table::kCalls, t_.calls, [&](const Call& c) {
      out_.id(c.module).id(c.parent).number(c.index).id(c.pass);
      ids(step_.inputs(c));
      ids(step_.outputs(c));
    });
    section(Table::kSources, t_.sources, [&](const Source& s) { out_.id(s.file).number(s.line).id(s.function); });
    section(Table::kLayouts, t_.layouts, [&](const Layout& l) {
      out_.word(name_of(l.dtype));
      numbers(step_.sizes(l));
      numbers(step_.strides(l));
    });
    section(Table::kStorages, t_.storages,
            [&](const Storage& s) { out_.number(s.bytes).id(s.device).word(name_of(s.role)).id(s.of); });
    section(Table::kTensors, t_.tensors, [&](const Tensor& x) {
      out_.id(x.storage).number(x.version).id(x.layout).number(x.offset).boolean(x.is_view);
    });
    section(Table::kBindings, t_.bindings, [&](const Binding& b) {
      out_.id(b.module).id(b.name).id(b.tensor).word(name_of(b.kind)).boolean(b.trainable);
    });
    section(Table::kNodes, t_.nodes, [&](const Node& n) { out_.id(n.name).number(n.sequence).id(n.pass); });
    section(Table::kArgs, t_.args, [&](const ArgList& list) {
      for (const Arg& arg : list) {
        out_.open().id(arg.name);
        value(arg.value);
        out_.close();
      }
    });
    section(Table::kRegions, t_.regions, [&](const Region& r) {
      out_.word(name_of(r.kind)).id(r.parent).id(r.call).id(r.args);
      ids(step_.held(r));
    });
    section(Table::kOps, t_.ops, [&](const Op& op) { write_op(op); });
    section(Table::kSaves, t_.saves,
            [&](const Save& s) { out_.id(s.node).number(s.slot).id(s.tensor).boolean(s.hooked); });
    section(Table::kNotes, t_.notes, [&](const Note& n) { out_.id(n.kind).id(n.text).id(n.op); });
    section(Table::kEvents, t_.events, [&](const Event& e) { event(e); });
    for (const ExtraSection& extra : t_.extras) write_extra(extra);
    header(kEndSection, 0, false);
    out_.flush();
  }

 private:
  void header(std::string_view name, std::size_t count, bool optional) {
    const std::string quoted = nlohmann::json(std::string(name)).dump();
    out_.raw(fmt::format(R"({{"section":{},"count":{}{}}})", quoted, count, optional ? R"(,"optional":true)" : ""))
        .end_line();
  }

  template <class Rows, class WriteRow>
  void section(Table table, const Rows& rows, const WriteRow& write_row) {
    header(name_of(table), rows.size(), false);
    for (const auto& row : rows) {
      out_.open();
      write_row(row);
      out_.close().end_line();
    }
  }

  void strings() {
    header(name_of(Table::kStrings), t_.strings.size(), false);
    for (const std::string& s : t_.strings) out_.string(s).end_line();
  }

  void numbers(std::span<const std::int64_t> values) {
    out_.open();
    for (const std::int64_t v : values) out_.number(v);
    out_.close();
  }

  void ids(std::span<const TensorId> values) {
    out_.open();
    for (const TensorId v : values) out_.id(v);
    out_.close();
  }

  void value(const ArgValue& v) {
    if (std::holds_alternative<std::monostate>(v.value)) out_.raw("null");
    if (const auto* b = std::get_if<bool>(&v.value)) out_.boolean(*b);
    if (const auto* i = std::get_if<std::int64_t>(&v.value)) out_.number(*i);
    if (const auto* d = std::get_if<double>(&v.value)) out_.raw(float_text(*d));
    if (const auto* s = std::get_if<StringId>(&v.value)) out_.raw(fmt::format(R"({{"string":{}}})", s->value()));
    if (const auto* r = std::get_if<InputRange>(&v.value))
      out_.raw(fmt::format(R"({{"inputs":[{},{}]}})", r->begin, r->end));
    if (const auto* list = std::get_if<ArgValue::List>(&v.value)) {
      out_.open();
      for (const ArgValue& item : *list) value(item);
      out_.close();
    }
  }

  // The shortest text that reads back as the same double and is a float to a reader.
  static std::string float_text(double d) {
    if (std::isnan(d)) return R"({"float":"nan"})";
    if (std::isinf(d)) return d > 0 ? R"({"float":"inf"})" : R"({"float":"-inf"})";
    std::string text = fmt::format("{}", d);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }

  void write_op(const Op& op) {
    out_.id(op.name).id(op.pass).id(op.call).id(op.node).id(op.region);
    ids(step_.inputs(op));
    bool all_fresh = true;
    out_.open();
    for (const Output& o : step_.outputs(op)) {
      out_.id(o.tensor);
      all_fresh = all_fresh && o.alias == AliasKind::kFresh;
    }
    out_.close().open();
    if (!all_fresh)
      for (const Output& o : step_.outputs(op)) alias(o);
    out_.close().id(op.args).amount(op.flops).amount(op.read_bytes).amount(op.written_bytes);
    std::string letters;
    for (const OpFlagName& flag : kOpFlagNames)
      if (op.flags.has(flag.flag)) letters += flag.letter;
    out_.word(letters).id(op.group).number(op.stream).id(op.source);
  }

  void alias(const Output& o) {
    if (o.alias == AliasKind::kView || o.alias == AliasKind::kMutates)
      out_.word(fmt::format("{}:{}", name_of(o.alias), o.input));
    else
      out_.word(name_of(o.alias));
  }

  void event(const Event& e) {
    out_.word(name_of(e.kind));
    if (e.kind == EventKind::kResize) {
      const Resize& r = t_.resizes[e.id];
      out_.id(r.storage).number(r.bytes);
    } else {
      out_.number(e.id);
    }
  }

  void write_extra(const ExtraSection& extra) {
    header(extra.name, extra.rows.size(), true);
    for (const std::string& row : extra.rows) out_.raw(row).end_line();
  }

  const Step& step_;
  const StepTables& t_;
  LineWriter out_;
};

// A reader takes a file that expands too far for an attack.
void require_readable(std::size_t bytes, std::size_t compressed_bytes, const std::string& path) {
  const auto size = static_cast<std::int64_t>(bytes);
  const std::int64_t expansion = ReadOptions{}.max_expansion;
  if (size <= kFreeExpansionBytes || size / expansion <= static_cast<std::int64_t>(compressed_bytes)) return;
  throw Error(
      {.kind = ErrorKind::kLimit,
       .place = path,
       .problem = "the step repeats itself so much that its compressed file could not be read back",
       .expected = fmt::format("at most {} bytes for each compressed byte", expansion),
       .got = fmt::format("{} from {}", format_bytes(size), format_bytes(static_cast<std::int64_t>(compressed_bytes))),
       .remedy = "write it without .zst"});
}

}  // namespace

void write_step_text(const Step& step, const std::function<void(std::string_view)>& sink) {
  StepWriter(step, sink).run();
}

std::string step_text(const Step& step) {
  std::string text;
  write_step_text(step, [&](std::string_view piece) { text += piece; });
  return text;
}

void write_step(const Step& step, const std::string& path) {
  if (path.ends_with(".zst")) {
    const std::string text = step_text(step);
    const std::string compressed = compress_zstd(text);
    require_readable(text.size(), compressed.size(), path);
    write_file_atomically(path, compressed);
    return;
  }
  AtomicFile file(path);
  write_step_text(step, [&](std::string_view piece) { file.write(piece); });
  file.commit();
}

}  // namespace tidemark::step
