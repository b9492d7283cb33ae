#include "tidemark/step/step_builder.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "tidemark/base/checked.h"
#include "tidemark/base/error.h"
#include "tidemark/base/utf8.h"
#include "tidemark/step/format.h"
#include "tidemark/step/json_row.h"
#include "tidemark/step/limits.h"

namespace tidemark::step {

namespace {

void require_room(std::size_t size, Table table) {
  const std::int64_t cap = max_rows(table);
  if (static_cast<std::int64_t>(size) < cap) return;
  throw Error({.kind = ErrorKind::kLimit,
               .place = std::string(name_of(table)),
               .problem = "the step has too many rows",
               .expected = fmt::format("at most {}", cap),
               .got = {},
               .remedy = "record a smaller step"});
}

template <class IdType, class Row>
IdType append(std::vector<Row>& rows, const Row& row, Table table) {
  require_room(rows.size(), table);
  rows.push_back(row);
  return IdType(static_cast<std::uint32_t>(rows.size() - 1));
}

template <class T>
Range append_list(std::vector<T>& pool, std::span<const T> items) {
  const Range range{static_cast<std::uint32_t>(pool.size()), static_cast<std::uint32_t>(items.size())};
  if (pool.size() + items.size() > static_cast<std::size_t>(kMaxEvents)) {
    throw Error({.kind = ErrorKind::kLimit,
                 .place = "lists of tensors",
                 .problem = "the step has too many inputs, outputs and sizes",
                 .expected = fmt::format("at most {}", kMaxEvents),
                 .got = {},
                 .remedy = "record a smaller step"});
  }
  pool.insert(pool.end(), items.begin(), items.end());
  return range;
}

// A text that is equal for equal values only; it never leaves the builder.
void append_key(const ArgValue& value, std::string& key) {
  key += static_cast<char>('0' + value.value.index());
  if (const auto* b = std::get_if<bool>(&value.value)) key += *b ? 't' : 'f';
  if (const auto* i = std::get_if<std::int64_t>(&value.value)) key += fmt::format("{};", *i);
  if (const auto* d = std::get_if<double>(&value.value)) key += fmt::format("{};", std::bit_cast<std::uint64_t>(*d));
  if (const auto* s = std::get_if<StringId>(&value.value)) key += fmt::format("{};", s->value());
  if (const auto* r = std::get_if<InputRange>(&value.value)) key += fmt::format("{},{};", r->begin, r->end);
  if (const auto* list = std::get_if<ArgValue::List>(&value.value)) {
    for (const ArgValue& item : *list) append_key(item, key);
    key += ']';
  }
}

std::vector<std::int64_t> join_dims(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  if (sizes.size() != strides.size() || sizes.size() > static_cast<std::size_t>(kMaxRank)) {
    throw Error({.kind = ErrorKind::kInput,
                 .place = "layout",
                 .problem = "the sizes and strides of a layout do not fit together",
                 .expected = fmt::format("as many strides as sizes, at most {}", kMaxRank),
                 .got = fmt::format("{} sizes and {} strides", sizes.size(), strides.size()),
                 .remedy = {}});
  }
  std::vector<std::int64_t> dims(sizes.begin(), sizes.end());
  dims.insert(dims.end(), strides.begin(), strides.end());
  return dims;
}

// A row of an unknown section must come back as it is: one line of JSON within the reader's limits.
void check_json_line(const std::string& row, const std::string& place) {
  const bool is_one_line =
      row.find('\n') == std::string::npos && static_cast<std::int64_t>(row.size()) <= kMaxLineBytes;
  if (!is_one_line)
    throw Error({.kind = ErrorKind::kInput,
                 .place = place,
                 .problem = "the row is not one line",
                 .expected = fmt::format("JSON without a line break, at most {} bytes", kMaxLineBytes),
                 .got = {},
                 .remedy = {}});
  JsonRow([&](std::string_view) { return place; }).parse(row);
}

// There are many bit patterns for "not a number", but files have one word for all.
void make_nan_plain(ArgValue& value) {
  if (auto* d = std::get_if<double>(&value.value); d != nullptr && std::isnan(*d))
    *d = std::numeric_limits<double>::quiet_NaN();
  if (auto* list = std::get_if<ArgValue::List>(&value.value))
    for (ArgValue& item : *list) make_nan_plain(item);
}

// The stride of a dimension with one element means nothing, and fake tensors often have another one than real ones: it
// becomes that of a tensor without gaps.
void make_single_strides_plain(std::span<const std::int64_t> sizes, std::vector<std::int64_t>& strides) {
  if (sizes.size() != strides.size()) return;  // refused later
  std::optional<std::int64_t> plain = 1;
  for (std::size_t i = sizes.size(); i-- > 0 && plain;) {
    if (sizes[i] == 1) {
      strides[i] = *plain;
    } else {
      plain = checked_mul(sizes[i], strides[i]);
    }
  }
}

template <class Row, class Tag>
Row& existing(std::vector<Row>& rows, Id<Tag> id, Table table) {
  if (id.index() < rows.size()) return rows[id.index()];
  throw Error({.kind = ErrorKind::kInput,
               .place = fmt::format("{}[{}]", name_of(table), id.is_none() ? "none" : fmt::format("{}", id.value())),
               .problem = "there is no such row yet",
               .expected = fmt::format("an id below {}", rows.size()),
               .got = {},
               .remedy = {}});
}

}  // namespace

StringId StepBuilder::add_string(std::string_view text) {
  require_room(tables_.strings.size(), Table::kStrings);
  tables_.strings.emplace_back(text);
  return StringId(static_cast<std::uint32_t>(tables_.strings.size() - 1));
}

StringId StepBuilder::intern(std::string_view text) {
  const auto [entry, is_new] = string_ids_.try_emplace(std::string(text));
  if (is_new) entry->second = add_string(text);
  return entry->second;
}

LayoutId StepBuilder::add_layout(DType dtype, std::span<const std::int64_t> sizes,
                                 std::span<const std::int64_t> strides) {
  const std::vector<std::int64_t> dims = join_dims(sizes, strides);
  const Layout row{dtype, append_list(tables_.dims_pool, std::span<const std::int64_t>(dims))};
  return append<LayoutId>(tables_.layouts, row, Table::kLayouts);
}

LayoutId StepBuilder::intern_layout(DType dtype, std::span<const std::int64_t> sizes,
                                    std::span<const std::int64_t> given_strides) {
  std::vector<std::int64_t> strides(given_strides.begin(), given_strides.end());
  make_single_strides_plain(sizes, strides);
  const auto [entry, is_new] = layout_ids_.try_emplace(LayoutKey{dtype, join_dims(sizes, strides)});
  if (is_new) entry->second = add_layout(dtype, sizes, strides);
  return entry->second;
}

ArgsId StepBuilder::add_args(ArgList args) {
  require_room(tables_.args.size(), Table::kArgs);
  for (Arg& arg : args) make_nan_plain(arg.value);
  tables_.args.push_back(std::move(args));
  return ArgsId(static_cast<std::uint32_t>(tables_.args.size() - 1));
}

ArgsId StepBuilder::intern_args(ArgList args) {
  if (args.empty()) return {};
  for (Arg& arg : args) make_nan_plain(arg.value);  // before it becomes a key
  std::string key;
  for (const Arg& arg : args) {
    key += fmt::format("{}=", arg.name.value());
    append_key(arg.value, key);
  }
  const auto [entry, is_new] = args_ids_.try_emplace(std::move(key));
  if (is_new) entry->second = add_args(std::move(args));
  return entry->second;
}

void StepBuilder::add_meta(std::string key, std::string value) {
  require_room(tables_.meta.size(), Table::kMeta);
  tables_.meta.emplace_back(std::move(key), std::move(value));
}

ModuleId StepBuilder::add_module(const Module& row) { return append<ModuleId>(tables_.modules, row, Table::kModules); }
PassId StepBuilder::add_pass(const Pass& row) { return append<PassId>(tables_.passes, row, Table::kPasses); }
CallId StepBuilder::add_call(const CallSpec& spec) {
  const Call row{spec.module, spec.parent, spec.index, spec.pass, append_list(tables_.call_input_pool, spec.inputs),
                 {}};
  call_outputs_.emplace_back();
  return append<CallId>(tables_.calls, row, Table::kCalls);
}
SourceId StepBuilder::add_source(const Source& row) { return append<SourceId>(tables_.sources, row, Table::kSources); }
StorageId StepBuilder::add_storage(const Storage& row) {
  return append<StorageId>(tables_.storages, row, Table::kStorages);
}
TensorId StepBuilder::add_tensor(const Tensor& row) { return append<TensorId>(tables_.tensors, row, Table::kTensors); }
void StepBuilder::add_binding(const Binding& row) {
  append<Id<struct BindingTag>>(tables_.bindings, row, Table::kBindings);
}
NodeId StepBuilder::add_node(const Node& row) { return append<NodeId>(tables_.nodes, row, Table::kNodes); }
SaveId StepBuilder::add_save(const Save& row) { return append<SaveId>(tables_.saves, row, Table::kSaves); }
void StepBuilder::add_note(const Note& row) { append<Id<struct NoteTag>>(tables_.notes, row, Table::kNotes); }
void StepBuilder::add_extra(ExtraSection section) {
  const std::string place = fmt::format("extras[{}]", tables_.extras.size());
  if (static_cast<std::int64_t>(tables_.extras.size()) >= kMaxExtraSections)
    throw Error({.kind = ErrorKind::kLimit,
                 .place = place,
                 .problem = "the step has too many optional sections",
                 .expected = fmt::format("at most {}", kMaxExtraSections),
                 .got = {},
                 .remedy = "put their rows into one section"});
  const auto is_taken = [&] {
    for (const std::string_view known : kTableNames)
      if (known == section.name) return true;
    for (const ExtraSection& other : tables_.extras)
      if (other.name == section.name) return true;
    return section.name == kEndSection;
  };
  if (section.name.empty() || !is_utf8(section.name) || is_taken())
    throw Error({.kind = ErrorKind::kInput,
                 .place = place + ".name",
                 .problem = "the section's name cannot be used",
                 .expected = "a name of its own that is no section of the format",
                 .got = quote(section.name),
                 .remedy = {}});
  for (std::size_t i = 0; i < section.rows.size(); ++i)
    check_json_line(section.rows[i], fmt::format("{}.rows[{}]", place, i));
  tables_.extras.push_back(std::move(section));
}

RegionId StepBuilder::add_region(const RegionSpec& spec) {
  const Region row{spec.kind, spec.parent, spec.call, spec.args, append_list(tables_.held_pool, spec.held)};
  return append<RegionId>(tables_.regions, row, Table::kRegions);
}

OpId StepBuilder::add_op(const OpSpec& spec) {
  const StringId name = intern(spec.name);  // first: compilers order arguments as they like, and ids show the order
  return add_op(spec, name, spec.group.empty() ? StringId() : intern(spec.group));
}

OpId StepBuilder::add_op(const OpSpec& spec, StringId name, StringId group) {
  const Op row{.name = name,
               .pass = spec.pass,
               .call = spec.call,
               .node = spec.node,
               .region = spec.region,
               .args = spec.args,
               .inputs = append_list(tables_.input_pool, spec.inputs),
               .outputs = append_list(tables_.output_pool, spec.outputs),
               .source = spec.source,
               .group = group,
               .flags = spec.flags,
               .stream = spec.stream,
               .flops = spec.flops,
               .read_bytes = spec.read_bytes,
               .written_bytes = spec.written_bytes};
  for (std::uint32_t k = 0; k < row.outputs.count; ++k) {  // an input without meaning would be lost in a file
    Output& output = tables_.output_pool[row.outputs.begin + k];
    if (output.alias != AliasKind::kView && output.alias != AliasKind::kMutates) output.input = 0;
  }
  return append<OpId>(tables_.ops, row, Table::kOps);
}

void StepBuilder::set_call_outputs(CallId call, std::span<const TensorId> outputs) {
  existing(call_outputs_, call, Table::kCalls).assign(outputs.begin(), outputs.end());
}

void StepBuilder::set_storage_role(StorageId storage, Role role, StorageId of) {
  Storage& row = existing(tables_.storages, storage, Table::kStorages);
  row.role = role;
  row.of = of;
}

void StepBuilder::set_op_node(OpId op, NodeId node) { existing(tables_.ops, op, Table::kOps).node = node; }

void StepBuilder::resize(StorageId storage, std::int64_t bytes) {
  const auto id = append<ResizeId>(tables_.resizes, Resize{storage, bytes}, Table::kEvents);
  require_room(tables_.events.size(), Table::kEvents);
  tables_.events.push_back({EventKind::kResize, id.value()});
}

void StepBuilder::push(EventKind kind, std::uint32_t id) {
  if (kind == EventKind::kResize)  // two events of one resize would be two resizes in a file
    throw Error({.kind = ErrorKind::kInput,
                 .place = fmt::format("events[{}]", tables_.events.size()),
                 .problem = "a resize has no id of its own",
                 .expected = "resize(storage, bytes)",
                 .got = {},
                 .remedy = {}});
  require_room(tables_.events.size(), Table::kEvents);
  tables_.events.push_back({kind, id});
}

Step StepBuilder::finish() && { return std::move(*this).finish(&record_place); }

Step StepBuilder::finish(const PlaceOf& place_of) && {
  tables_.call_output_pool.clear();  // an earlier finish() may have failed
  for (std::size_t i = 0; i < call_outputs_.size(); ++i)
    tables_.calls[i].outputs = append_list(tables_.call_output_pool, std::span<const TensorId>(call_outputs_[i]));
  if (const auto violation = find_violation(tables_)) throw to_error(*violation, place_of);
  return Step(std::move(tables_));
}

}  // namespace tidemark::step
