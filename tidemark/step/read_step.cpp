#include "tidemark/step/read_step.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "tidemark/base/error.h"
#include "tidemark/base/line_reader.h"
#include "tidemark/base/utf8.h"
#include "tidemark/step/format.h"
#include "tidemark/step/json_row.h"
#include "tidemark/step/limits.h"
#include "tidemark/step/step_builder.h"

namespace tidemark::step {

namespace {

struct SectionHeader {
  std::string name;
  std::int64_t count = 0;
  bool optional = false;
};

template <std::size_t N>
std::string list_names(const std::array<std::string_view, N>& names) {
  return fmt::format("one of {}", fmt::join(names, ", "));
}

// Reads one file, section by section, into a StepBuilder. Functions named after a table read one row of it.
class StepReader {
 public:
  StepReader(std::unique_ptr<ByteSource> source, const std::string& name, const ReadOptions& options)
      : name_(name),
        lines_(decompress_if_needed(std::move(source), name, {options.max_total_bytes, options.max_expansion}), name,
               {options.max_line_bytes, options.max_total_bytes}),
        row_([this](std::string_view field) { return place(field); }) {}

  Step run() {
    read_first_line();
    for (std::size_t i = 0; i < kTableNames.size(); ++i) read_table(static_cast<Table>(i));
    read_extras();
    if (lines_.next()) fail_here("something follows the end section", "the end of the file");
    return std::move(builder_).finish([this](const Violation& v) { return line_place(v); });
  }

 private:
  std::string place(std::string_view field) const {
    std::string text = lines_.place();
    if (table_ == nullptr) return field.empty() ? text : fmt::format("{}: {}", text, field);
    text += fmt::format(": {}[{}]", *table_, row_index_);
    if (!field.empty()) text += fmt::format(".{}", field);
    return text;
  }

  // Every row stands on a line of its own, so the line of a record follows from its section's first line.
  std::string line_place(const Violation& violation) const {
    const std::int64_t line =
        first_lines_[static_cast<std::size_t>(violation.table)] + static_cast<std::int64_t>(violation.id);
    return fmt::format("{}, line {}: {}", name_, line, record_place(violation));
  }

  [[noreturn]] void fail_here(std::string problem, std::string expected, std::string got = {},
                              std::string remedy = {}) const {
    throw Error({.kind = ErrorKind::kInput,
                 .place = lines_.place(),
                 .problem = std::move(problem),
                 .expected = std::move(expected),
                 .got = std::move(got),
                 .remedy = std::move(remedy)});
  }

  // `expected` is called only when there is no next line.
  template <class Expected>
  void next_line(const Expected& expected) {
    const auto line = lines_.next();
    if (!line) {
      throw Error({.kind = ErrorKind::kInput,
                   .place = fmt::format("{}, after line {}", name_, lines_.line()),
                   .problem = "the file ends too early",
                   .expected = expected(),
                   .got = {},
                   .remedy = lines_.line() == 0 ? "check the path: the file is empty"
                                                : "write the file again: it is cut short"});
    }
    line_ = *line;
    row_.parse(line_);
  }

  void read_first_line() {
    const auto line = lines_.next();
    const std::string expected = R"(a first line such as {"tidemark":"step","version":[1,0]})";
    if (!line)
      throw Error({.kind = ErrorKind::kInput,
                   .place = name_,
                   .problem = "the file is empty",
                   .expected = expected,
                   .got = {},
                   .remedy = "check the path"});
    line_ = *line;
    const bool has_mark = line_.starts_with("\xEF\xBB\xBF");  // some editors add it; parse() says so
    const bool is_other_json = line_ == "{";                  // an object over several lines, such as a model's config
    if (line_.empty() || (line_.front() != '{' && !has_mark) || is_other_json)
      fail_here("this is not a step file", expected, {}, "record one, or name a file that tidemark wrote");
    row_.parse(line_);
    row_.begin_object("");
    bool is_step = false;
    std::int64_t major = -1;
    while (const auto key = row_.next_key()) {
      if (*key == "tidemark") {
        is_step = row_.string("tidemark") == "step";
        if (!is_step) fail_here("this is another kind of tidemark file", expected);
      } else if (*key == "version") {
        row_.begin_array("version");
        major = row_.integer("version", 0, std::numeric_limits<int>::max());
        row_.integer("version", 0, std::numeric_limits<int>::max());
        row_.end_array("version");
      } else {
        row_.fail("", "the first line has an unknown key", "tidemark and version", quote(*key));
      }
    }
    row_.end_row();
    if (!is_step) fail_here("this is not a step file", expected);
    if (major != kFormatMajor)
      fail_here("the file has a format that this version cannot read", fmt::format("major version {}", kFormatMajor),
                major < 0 ? "none" : fmt::format("{}", major), "use the tidemark that wrote it, or write it again");
  }

  // Leaves header_line_ at the line of the header, so that a wrong count can name it.
  SectionHeader read_header(std::string_view expected) {
    table_ = nullptr;
    next_line([&] { return fmt::format("the section {}", expected); });
    if (!row_.is_object()) fail_no_header(expected);
    row_.begin_object("");
    SectionHeader header;
    header.count = -1;
    while (const auto key = row_.next_key()) {
      if (*key == "section") {
        header.name = row_.string("section");
      } else if (*key == "count") {
        header.count = row_.integer("count", 0, kMaxEvents);
      } else if (*key == "optional") {
        header.optional = row_.boolean("optional");
      } else {
        row_.fail("", "the section has an unknown key", "section, count and optional", quote(*key));
      }
    }
    row_.end_row();
    if (header.name.empty())
      row_.fail("section", "the section has no name", fmt::format("the section {}", expected), {});
    if (header.count < 0) row_.fail("count", "the section does not say how many rows it has", "a count", {});
    section_ = header;
    header_line_ = lines_.line();
    return header;
  }

  // A list (or a string after strings) is one row too many of the section before: its count was too low.
  [[noreturn]] void fail_no_header(std::string_view expected) const {
    const bool is_row = section_.name == name_of(Table::kStrings) ? row_.is_string() : row_.is_array();
    if (!is_row || section_.name.empty())
      row_.fail("", "a section must start here", fmt::format("the section {}", expected), "another value");
    throw Error({.kind = ErrorKind::kInput,
                 .place = fmt::format("{}, line {}: count", name_, header_line_),
                 .problem = fmt::format("the section {} has more rows than it says", quote(section_.name)),
                 .expected = fmt::format("{} rows", section_.count),
                 .got = fmt::format("another row on line {}", lines_.line()),
                 .remedy = {}});
  }

  void check_length(const SectionHeader& header, std::int64_t most) const {
    if (header.count <= most) return;
    throw Error({.kind = ErrorKind::kLimit,
                 .place = lines_.place() + ": count",
                 .problem = fmt::format("the section {} is too long", quote(header.name)),
                 .expected = fmt::format("at most {} rows", most),
                 .got = fmt::format("{}", header.count),
                 .remedy = "record a smaller step"});
  }

  void read_table(Table table) {
    const std::string_view name = name_of(table);
    const SectionHeader header = read_header(fmt::format("\"{}\"", name));
    if (header.name != name)
      fail_here("another section should stand here", fmt::format("the section \"{}\"", name), quote(header.name),
                "sections have a fixed order (docs/step_format.md)");
    check_length(header, max_rows(table));
    first_lines_[static_cast<std::size_t>(table)] = lines_.line() + 1;
    read_rows(header, table);
  }

  std::string rows_left(const SectionHeader& header) const {
    return fmt::format("{} more rows of {}", header.count - row_index_, quote(header.name));
  }

  void read_rows(const SectionHeader& header, Table table) {
    table_ = &kTableNames[static_cast<std::size_t>(table)];
    for (row_index_ = 0; row_index_ < header.count; ++row_index_) {
      next_line([&] { return rows_left(header); });
      if (row_.is_object_starting_with("section")) fail_count(header);
      read_row(table);
      row_.end_row();
    }
  }

  // Another section starts too early: the count was too high.
  [[noreturn]] void fail_count(const SectionHeader& header) const {
    throw Error({.kind = ErrorKind::kInput,
                 .place = fmt::format("{}, line {}: count", name_, header_line_),
                 .problem = fmt::format("the section {} has fewer rows than it says", quote(header.name)),
                 .expected = fmt::format("{} rows", header.count),
                 .got = fmt::format("{}, then another section on line {}", row_index_, lines_.line()),
                 .remedy = {}});
  }

  void read_row(Table table) {
    switch (table) {
      case Table::kMeta:
        return meta();
      case Table::kStrings:
        return strings();
      case Table::kModules:
        return modules();
      case Table::kPasses:
        return passes();
      case Table::kCalls:
        return calls();
      case Table::kSources:
        return sources();
      case Table::kLayouts:
        return layouts();
      case Table::kStorages:
        return storages();
      case Table::kTensors:
        return tensors();
      case Table::kBindings:
        return bindings();
      case Table::kNodes:
        return nodes();
      case Table::kArgs:
        return args();
      case Table::kRegions:
        return regions();
      case Table::kOps:
        return ops();
      case Table::kSaves:
        return saves();
      case Table::kNotes:
        return notes();
      case Table::kEvents:
        return events();
    }
  }

  template <class Enum, std::size_t N>
  Enum word(std::string_view field, const std::array<std::string_view, N>& names) {
    const std::string_view name = row_.string(field);
    const auto value = from_name<Enum>(name, names);
    if (!value) row_.fail(field, "the word is unknown", list_names(names), quote(name));
    return *value;
  }

  void meta() {
    row_.begin_array("");
    std::string key(short_string("key"));
    std::string value(short_string("value"));
    row_.end_array("");
    builder_.add_meta(std::move(key), std::move(value));
  }

  std::string_view short_string(std::string_view field) {
    const std::string_view text = row_.string(field);
    if (static_cast<std::int64_t>(text.size()) > kMaxStringBytes)
      row_.fail(field, "the string is too long", fmt::format("at most {} bytes", kMaxStringBytes),
                fmt::format("{}", text.size()));
    return text;
  }

  void strings() { builder_.add_string(short_string("")); }

  void modules() {
    row_.begin_array("");
    Module m;
    m.parent = row_.id_or_null<ModuleId>("parent");
    m.name = row_.id<StringId>("name");
    m.type = row_.id<StringId>("type");
    row_.end_array("");
    builder_.add_module(m);
  }

  void passes() {
    row_.begin_array("");
    Pass p;
    p.kind = word<PassKind>("kind", kPassKindNames);
    p.micro_batch = row_.integer32("micro_batch");
    p.graph_task = row_.integer32("graph_task");
    p.rank = row_.integer32("rank");
    row_.end_array("");
    builder_.add_pass(p);
  }

  void calls() {
    row_.begin_array("");
    CallSpec c;
    c.module = row_.id<ModuleId>("module");
    c.parent = row_.id_or_null<CallId>("parent");
    c.index = row_.integer32("index");
    c.pass = row_.id<PassId>("pass");
    tensor_ids("inputs");
    c.inputs = tensor_ids_;
    const CallId call = builder_.add_call(c);
    tensor_ids("outputs");
    builder_.set_call_outputs(call, tensor_ids_);
    row_.end_array("");
  }

  void sources() {
    row_.begin_array("");
    Source s;
    s.file = row_.id<StringId>("file");
    s.line = row_.integer32("line");
    s.function = row_.id<StringId>("function");
    row_.end_array("");
    builder_.add_source(s);
  }

  void layouts() {
    row_.begin_array("");
    const std::string_view name = row_.string("dtype");
    const auto dtype = dtype_from_name(name);
    if (!dtype)
      row_.fail("dtype", "the element type is unknown", "a name of PyTorch's, such as float32 or bfloat16",
                quote(name));
    integers("sizes", sizes_);
    integers("strides", strides_);
    if (sizes_.size() != strides_.size())
      row_.fail("strides", "there must be one stride for each size", fmt::format("{}", sizes_.size()),
                fmt::format("{}", strides_.size()));
    row_.end_array("");
    builder_.add_layout(*dtype, sizes_, strides_);
  }

  void integers(std::string_view field, std::vector<std::int64_t>& values) {
    values.clear();
    row_.begin_array(field);
    while (!row_.at_array_end()) {
      if (static_cast<std::int64_t>(values.size()) == kMaxRank)
        row_.fail(field, "there are too many dimensions", fmt::format("at most {}", kMaxRank), {});
      values.push_back(row_.integer(field));
    }
    row_.end_array(field);
  }

  void storages() {
    row_.begin_array("");
    Storage s;
    s.bytes = row_.integer("bytes");
    s.device = row_.id<StringId>("device");
    s.role = word<Role>("role", kRoleNames);
    s.of = row_.id_or_null<StorageId>("of");
    row_.end_array("");
    builder_.add_storage(s);
  }

  void tensors() {
    row_.begin_array("");
    Tensor t;
    t.storage = row_.id<StorageId>("storage");
    t.version = row_.integer32("version");
    t.layout = row_.id<LayoutId>("layout");
    t.offset = row_.integer("offset");
    t.is_view = row_.boolean("is_view");
    row_.end_array("");
    builder_.add_tensor(t);
  }

  void bindings() {
    row_.begin_array("");
    Binding b;
    b.module = row_.id<ModuleId>("module");
    b.name = row_.id<StringId>("name");
    b.tensor = row_.id<TensorId>("tensor");
    b.kind = word<BindingKind>("kind", kBindingKindNames);
    b.trainable = row_.boolean("trainable");
    row_.end_array("");
    builder_.add_binding(b);
  }

  void nodes() {
    row_.begin_array("");
    Node n;
    n.name = row_.id<StringId>("name");
    n.sequence = row_.integer("sequence");
    n.pass = row_.id<PassId>("pass");
    row_.end_array("");
    builder_.add_node(n);
  }

  void args() {
    ArgList list;
    std::int64_t values = 0;
    row_.begin_array("");
    while (!row_.at_array_end()) {
      row_.begin_array("argument");
      Arg arg;
      arg.name = row_.id<StringId>("name");
      arg.value = arg_value(0, values);
      row_.end_array("argument");
      list.push_back(std::move(arg));
    }
    row_.end_array("");
    builder_.add_args(std::move(list));
  }

  ArgValue arg_value(std::int64_t depth, std::int64_t& values) {
    if (depth > kMaxArgDepth)
      row_.fail("value", "the lists are nested too deep", fmt::format("at most {} levels", kMaxArgDepth), {});
    if (++values > kMaxArgValues)
      row_.fail("value", "the argument list is too long", fmt::format("at most {} values", kMaxArgValues), {});
    if (row_.is_null()) {
      row_.null("value");
      return {};
    }
    if (row_.is_bool()) return {row_.boolean("value")};
    if (row_.is_integer()) return {row_.integer("value")};
    if (row_.is_object()) return tagged_value();
    if (!row_.is_array()) {
      if (row_.is_string())
        row_.fail_expecting("value", R"(null, a boolean, a number, a list, or an object such as {"string":3})");
      return {row_.number("value")};
    }
    ArgValue::List list;
    row_.begin_array("value");
    while (!row_.at_array_end()) list.push_back(arg_value(depth + 1, values));
    row_.end_array("value");
    return {std::move(list)};
  }

  // {"string":3}, {"inputs":[0,2]} or {"float":"inf"}: what JSON has no value for.
  ArgValue tagged_value() {
    row_.begin_object("value");
    const auto key = row_.next_key();
    ArgValue value;
    if (key == "string") {
      value.value = row_.id<StringId>("value.string");
    } else if (key == "inputs") {
      row_.begin_array("value.inputs");
      InputRange range;
      range.begin = row_.integer32("value.inputs");
      range.end = row_.integer32("value.inputs");
      row_.end_array("value.inputs");
      value.value = range;
    } else if (key == "float") {
      value.value = special_float(row_.string("value.float"));
    } else {
      row_.fail("value", "the kind of value is unknown", "the key string, inputs or float",
                key ? quote(*key) : "an empty object");
    }
    if (row_.next_key()) row_.fail("value", "the value has more than one key", "one key", {});
    return value;
  }

  double special_float(std::string_view name) {
    if (name == "inf") return std::numeric_limits<double>::infinity();
    if (name == "-inf") return -std::numeric_limits<double>::infinity();
    if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
    row_.fail("value.float", "the word is unknown", "inf, -inf or nan", quote(name));
  }

  void regions() {
    row_.begin_array("");
    RegionSpec r;
    r.kind = word<RegionKind>("kind", kRegionKindNames);
    r.parent = row_.id_or_null<RegionId>("parent");
    r.call = row_.id_or_null<CallId>("call");
    r.args = row_.id_or_null<ArgsId>("args");
    tensor_ids("held");
    r.held = tensor_ids_;
    row_.end_array("");
    builder_.add_region(r);
  }

  [[noreturn]] void fail_tensor_count(std::string_view field) const {
    row_.fail(field, "there are too many tensors", fmt::format("at most {}", kMaxOpTensors), {});
  }

  void tensor_ids(std::string_view field) {
    tensor_ids_.clear();
    row_.begin_array(field);
    while (!row_.at_array_end()) {
      if (static_cast<std::int64_t>(tensor_ids_.size()) == kMaxOpTensors) fail_tensor_count(field);
      tensor_ids_.push_back(row_.id<TensorId>(field));
    }
    row_.end_array(field);
  }

  void ops() {
    row_.begin_array("");
    OpSpec op;
    const auto name = row_.id<StringId>("name");
    op.pass = row_.id<PassId>("pass");
    op.call = row_.id_or_null<CallId>("call");
    op.node = row_.id_or_null<NodeId>("node");
    op.region = row_.id_or_null<RegionId>("region");
    tensor_ids("inputs");
    op.inputs = tensor_ids_;
    outputs();
    op.outputs = outputs_;
    op.args = row_.id_or_null<ArgsId>("args");
    op.flops = amount("flops");
    op.read_bytes = amount("read_bytes");
    op.written_bytes = amount("written_bytes");
    op.flags = flags();
    const auto group = row_.id_or_null<StringId>("group");
    op.stream = static_cast<std::uint16_t>(row_.integer("stream", 0, std::numeric_limits<std::uint16_t>::max()));
    op.source = row_.id_or_null<SourceId>("source");
    row_.end_array("");
    builder_.add_op(op, name, group);
  }

  std::int64_t amount(std::string_view field) {
    if (!row_.is_null()) return row_.integer(field, 0);
    row_.null(field);
    return Op::kUnknown;
  }

  // Two lists: the tensors, and where each one's storage comes from. The second is empty when all are fresh.
  void outputs() {
    outputs_.clear();
    row_.begin_array("outputs");
    while (!row_.at_array_end()) {
      if (static_cast<std::int64_t>(outputs_.size()) == kMaxOpTensors) fail_tensor_count("outputs");
      outputs_.push_back({row_.id<TensorId>("outputs"), AliasKind::kFresh, 0});
    }
    row_.end_array("outputs");
    row_.begin_array("aliases");
    std::size_t k = 0;
    bool all_fresh = true;
    for (; !row_.at_array_end(); ++k) {
      if (k == outputs_.size())
        row_.fail("aliases", "there are more aliases than outputs", fmt::format("at most {}", k), {});
      alias(outputs_[k]);
      all_fresh = all_fresh && outputs_[k].alias == AliasKind::kFresh;
    }
    row_.end_array("aliases");
    if (k > 0 && (k < outputs_.size() || all_fresh))
      row_.fail("aliases", "the aliases do not fit the outputs",
                all_fresh ? "an empty list, since all outputs are fresh" : fmt::format("{} of them", outputs_.size()),
                fmt::format("{}", k));
  }

  // "fresh", "existing", "view:0", "mutates:2".
  void alias(Output& output) {
    const std::string_view word = row_.string("aliases");
    const std::size_t colon = word.find(':');
    const auto kind = from_name<AliasKind>(word.substr(0, colon), kAliasKindNames);
    const bool has_input = kind == AliasKind::kView || kind == AliasKind::kMutates;
    const auto input = colon == word.npos ? std::nullopt : small_number(word.substr(colon + 1));
    if (!kind || has_input != (colon != word.npos) || has_input != input.has_value())
      row_.fail("aliases", "the word is unknown", "fresh, existing, view:I or mutates:I", quote(word));
    output.alias = *kind;
    output.input = input.value_or(0);
  }

  // Digits without a leading zero, below 10^7.
  static std::optional<std::uint32_t> small_number(std::string_view digits) {
    if (digits.empty() || digits.size() > 7 || (digits.size() > 1 && digits.front() == '0')) return std::nullopt;
    std::uint32_t value = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + static_cast<std::uint32_t>(c - '0');
    }
    return value;
  }

  static std::string all_letters() {
    std::string letters;
    for (const OpFlagName& name : kOpFlagNames) letters += name.letter;
    return letters;
  }

  OpFlags flags() {
    const std::string_view letters = row_.string("flags");
    OpFlags flags;
    std::size_t used = 0;
    for (const OpFlagName& name : kOpFlagNames) {  // each at most once, in this order: one way to write a set
      if (used == letters.size() || letters[used] != name.letter) continue;
      flags = flags | name.flag;
      ++used;
    }
    if (used != letters.size())
      row_.fail("flags", "the flags are unknown or out of order",
                fmt::format("some of the letters {}, in this order", all_letters()), quote(letters));
    return flags;
  }

  void saves() {
    row_.begin_array("");
    Save s;
    s.node = row_.id<NodeId>("node");
    s.slot = row_.integer32("slot");
    s.tensor = row_.id<TensorId>("tensor");
    s.hooked = row_.boolean("hooked");
    row_.end_array("");
    builder_.add_save(s);
  }

  void notes() {
    row_.begin_array("");
    Note n;
    n.kind = row_.id<StringId>("kind");
    n.text = row_.id<StringId>("text");
    n.op = row_.id_or_null<OpId>("op");
    row_.end_array("");
    builder_.add_note(n);
  }

  void events() {
    row_.begin_array("");
    const auto kind = word<EventKind>("kind", kEventKindNames);
    const auto id = row_.id<StorageId>("id");
    if (kind == EventKind::kResize) {
      builder_.resize(id, row_.integer("bytes"));
    } else {
      builder_.push(kind, id.value());
    }
    row_.end_array("");
  }

  // Sections that a newer version added: kept as they are, so that writing the step again loses nothing.
  void read_extras() {
    std::set<std::string, std::less<>> names(kTableNames.begin(), kTableNames.end());
    std::int64_t rows_left_to_keep = kMaxExtraRows;
    for (;;) {
      const SectionHeader header = read_header("\"end\" or an optional one");
      if (header.name == kEndSection) {
        if (header.count != 0 || header.optional)
          fail_here("the end section is malformed", R"({"section":"end","count":0})");
        return;
      }
      if (!names.insert(header.name).second)
        fail_here("the section stands twice", "each section once", quote(header.name));
      if (!header.optional)
        fail_here("the section is unknown", "a section of docs/step_format.md", quote(header.name),
                  "use a newer tidemark: it may know this section");
      if (static_cast<std::int64_t>(builder_.tables().extras.size()) >= kMaxExtraSections)
        fail_here("the step has too many optional sections", fmt::format("at most {}", kMaxExtraSections));
      check_length(header, rows_left_to_keep);
      rows_left_to_keep -= header.count;
      ExtraSection section{header.name, {}};
      for (row_index_ = 0; row_index_ < header.count; ++row_index_) {
        next_line([&] { return rows_left(header); });
        section.rows.emplace_back(line_);
      }
      builder_.add_extra(std::move(section));
    }
  }

  std::string name_;
  LineReader lines_;
  JsonRow row_;
  StepBuilder builder_;
  std::string_view line_;
  const std::string_view* table_ = nullptr;  // whose rows are being read
  std::int64_t row_index_ = 0;
  SectionHeader section_;  // whose header was read last, on header_line_
  std::int64_t header_line_ = 0;
  std::array<std::int64_t, kTableNames.size()> first_lines_{};
  std::vector<std::int64_t> sizes_;  // reused from row to row, like the lists below
  std::vector<std::int64_t> strides_;
  std::vector<TensorId> tensor_ids_;
  std::vector<Output> outputs_;
};

}  // namespace

Step read_step(const std::string& path, const ReadOptions& options) {
  return StepReader(open_file_source(path), path, options).run();
}

Step parse_step(std::string_view text, const std::string& name, const ReadOptions& options) {
  return StepReader(make_memory_source(text), name, options).run();
}

}  // namespace tidemark::step
