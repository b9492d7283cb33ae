#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "tidemark/base/bytes.h"
#include "tidemark/base/checked.h"
#include "tidemark/base/utf8.h"
#include "tidemark/step/limits.h"
#include "tidemark/step/validate_impl.h"

namespace tidemark::step::detail {

namespace {

std::string element(std::string_view list, std::size_t i) { return fmt::format("{}[{}]", list, i); }

// For each position, the first one with an equal key. It sorts: a file could choose keys that collide in a hash table.
template <class Key>
std::vector<std::uint32_t> first_equal(const std::vector<Key>& keys) {
  std::vector<std::uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  std::vector<std::uint32_t> first(keys.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    first[order[i]] = i > 0 && keys[order[i]] == keys[order[i - 1]] ? first[order[i - 1]] : order[i];
  return first;
}

// The first position whose key stood before.
template <class Key>
std::optional<std::size_t> find_repeat(const std::vector<Key>& keys) {
  const bool grows = std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>()) == keys.end();
  if (grows) return std::nullopt;  // the usual case, without sorting
  const std::vector<std::uint32_t> first = first_equal(keys);
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first[i] != i) return i;
  return std::nullopt;
}

// Checks the rows of one Step. Methods are named after the table; each assumes that the earlier ones passed.
class TableChecker {
 public:
  explicit TableChecker(const StepTables& tables) : t_(tables) {}

  void run() {
    check_meta();
    check_strings();
    check_modules();
    check_passes();
    check_calls();
    check_sources();
    check_layouts();
    check_storages();
    check_tensors();
    check_bindings();
    check_nodes();
    check_args();
    check_regions();
    check_ops();
    check_saves();
    check_notes();
  }

 private:
  // A reference that must name an existing row.
  template <class Tag, class Row>
  static void need(Id<Tag> ref, const std::vector<Row>& rows, Table table, std::size_t id, std::string_view field,
                   Table target) {
    if (ref.index() < rows.size()) [[likely]]
      return;
    if (ref.is_none())
      found(table, id, std::string(field), "a reference is missing", expect_id(target, rows.size()), "none");
    found(table, id, std::string(field), "a reference leads nowhere", expect_id(target, rows.size()),
          fmt::format("{}", ref.value()));
  }

  template <class Tag, class Row>
  static void may(Id<Tag> ref, const std::vector<Row>& rows, Table table, std::size_t id, std::string_view field,
                  Table target) {
    if (ref.has_value()) need(ref, rows, table, id, field, target);
  }

  // A parent must come before its child: ids then cannot form a cycle.
  template <class Tag>
  static void check_parent(Id<Tag> parent, Table table, std::size_t id, std::vector<std::uint32_t>& depths) {
    std::uint32_t depth = 0;
    if (parent.has_value()) {
      if (parent.index() >= id) {
        found(table, id, "parent", "a parent must come before its children (otherwise there could be a cycle)",
              id == 0 ? "none" : fmt::format("none or an id below {}", id), fmt::format("{}", parent.value()));
      }
      depth = depths[parent.index()] + 1;
    }
    if (depth >= kMaxDepth)
      found(table, id, "parent", "the nesting is too deep", fmt::format("fewer than {} levels", kMaxDepth),
            fmt::format("level {}", depth));
    depths.push_back(depth);
  }

  // The field's name is made only when it is needed, in an error.
  void check_tensors_of(const std::vector<TensorId>& pool, Range list, Table table, std::size_t id,
                        std::string_view field) const {
    if (list.count > kMaxOpTensors)
      found(table, id, std::string(field), "there are too many tensors", fmt::format("at most {}", kMaxOpTensors));
    for (std::size_t k = 0; k < list.count; ++k)
      if (pool[list.begin + k].index() >= t_.tensors.size())
        need(pool[list.begin + k], t_.tensors, table, id, element(field, k), Table::kTensors);
  }

  static std::string expect_id(Table target, std::size_t count) {
    if (count == 0) return fmt::format("an id of {}, which is empty", name_of(target));
    return fmt::format("an id of {} from 0 to {}", name_of(target), count - 1);
  }

  const std::string& text(StringId id) const { return t_.strings[id.index()]; }

  void check_meta() const {
    std::vector<std::string_view> keys;
    for (std::size_t i = 0; i < t_.meta.size(); ++i) {
      const auto& [key, value] = t_.meta[i];
      if (key.empty()) found(Table::kMeta, i, "key", "the key is empty");
      if (!is_utf8(key)) found(Table::kMeta, i, "key", "the text is not UTF-8");
      if (!is_utf8(value)) found(Table::kMeta, i, "value", "the text is not UTF-8");
      if (static_cast<std::int64_t>(std::max(key.size(), value.size())) > kMaxStringBytes)
        found(Table::kMeta, i, "", "the text is too long", fmt::format("at most {} bytes", kMaxStringBytes));
      keys.push_back(key);
    }
    if (const auto i = find_repeat(keys))
      found(Table::kMeta, *i, "key", "the key stands twice", "each key once", quote(keys[*i]));
  }

  // Fills first_ids_: for each string, the smallest id with the same text.
  void check_strings() {
    for (std::size_t i = 0; i < t_.strings.size(); ++i) {
      const std::string& s = t_.strings[i];
      if (static_cast<std::int64_t>(s.size()) > kMaxStringBytes)
        found(Table::kStrings, i, "", "the string is too long", fmt::format("at most {} bytes", kMaxStringBytes),
              fmt::format("{}", s.size()));
      if (!is_utf8(s)) found(Table::kStrings, i, "", "the text is not UTF-8");
    }
    first_ids_ = first_equal(t_.strings);
  }

  void check_name(StringId name, Table table, std::size_t id) const {
    if (text(name).empty()) found(table, id, "name", "the name is empty", "the attribute's name");
    if (text(name).find('.') != std::string::npos)
      found(table, id, "name", "the name has a dot in it", "an attribute's own name, without its parents'",
            quote(text(name)));
  }

  void check_modules() const {
    std::vector<std::uint32_t> depths;
    std::vector<std::int64_t> path_bytes;
    std::vector<std::uint64_t> names;  // with the parent; a text's first id stands for it
    for (std::size_t i = 0; i < t_.modules.size(); ++i) {
      const Module& m = t_.modules[i];
      check_parent(m.parent, Table::kModules, i, depths);
      need(m.name, t_.strings, Table::kModules, i, "name", Table::kStrings);
      need(m.type, t_.strings, Table::kModules, i, "type", Table::kStrings);
      if (m.parent.has_value()) check_name(m.name, Table::kModules, i);
      path_bytes.push_back(static_cast<std::int64_t>(text(m.name).size()) +
                           (m.parent.is_none() ? 0 : path_bytes[m.parent.index()] + 1));
      if (path_bytes.back() > kMaxPathBytes)
        found(Table::kModules, i, "name", "the fully qualified name is too long",
              fmt::format("at most {} bytes", kMaxPathBytes), fmt::format("{}", path_bytes.back()));
      names.push_back((std::uint64_t{m.parent.value()} << 32) | first_ids_[m.name.index()]);
    }
    if (const auto i = find_repeat(names))
      found(Table::kModules, *i, "name", "two modules of one parent have the same name", "a name of its own",
            quote(text(t_.modules[*i].name)));
  }

  void check_passes() const {
    const auto check = [](std::size_t i, std::string_view field, std::int64_t number) {
      if (number >= kMaxRecords)
        found(Table::kPasses, i, std::string(field), "the number is too large", fmt::format("below {}", kMaxRecords),
              fmt::format("{}", number));
    };
    for (std::size_t i = 0; i < t_.passes.size(); ++i) {
      check(i, "micro_batch", t_.passes[i].micro_batch);
      check(i, "graph_task", t_.passes[i].graph_task);
    }
  }

  void check_calls() const {
    std::vector<std::uint32_t> depths;
    for (std::size_t i = 0; i < t_.calls.size(); ++i) {
      const Call& c = t_.calls[i];
      need(c.module, t_.modules, Table::kCalls, i, "module", Table::kModules);
      check_parent(c.parent, Table::kCalls, i, depths);
      need(c.pass, t_.passes, Table::kCalls, i, "pass", Table::kPasses);
      check_tensors_of(t_.call_input_pool, c.inputs, Table::kCalls, i, "inputs");
      check_tensors_of(t_.call_output_pool, c.outputs, Table::kCalls, i, "outputs");
    }
  }

  void check_sources() const {
    for (std::size_t i = 0; i < t_.sources.size(); ++i) {
      need(t_.sources[i].file, t_.strings, Table::kSources, i, "file", Table::kStrings);
      need(t_.sources[i].function, t_.strings, Table::kSources, i, "function", Table::kStrings);
    }
  }

  // Fills extents_: how many elements a layout reaches over, from its first one.
  void check_layouts() {
    extents_.reserve(t_.layouts.size());
    for (std::size_t i = 0; i < t_.layouts.size(); ++i) {
      const Range dims = t_.layouts[i].dims;
      const std::size_t rank = dims.count / 2;
      std::int64_t extent = 1;
      std::int64_t elements = 1;  // an empty dimension counted as one, as strides of a contiguous tensor do
      bool is_empty = false;
      for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t size = t_.dims_pool[dims.begin + d];
        const std::int64_t stride = t_.dims_pool[dims.begin + rank + d];
        if (size < 0)
          found(Table::kLayouts, i, element("sizes", d), "a size is negative", "0 or more", fmt::format("{}", size));
        if (stride < 0)
          found(Table::kLayouts, i, element("strides", d), "a stride is negative", "0 or more",
                fmt::format("{}", stride));
        const auto product = checked_mul(elements, std::max<std::int64_t>(size, 1));
        if (!product) found(Table::kLayouts, i, element("sizes", d), "the number of elements does not fit 64 bits");
        elements = *product;
        is_empty = is_empty || size == 0;
        if (size == 0) continue;
        const auto reach = checked_mul(size - 1, stride);
        const auto sum = reach ? checked_add(extent, *reach) : std::nullopt;
        if (!sum)
          found(Table::kLayouts, i, element("strides", d),
                "the distance from the first to the last element does not fit 64 bits");
        extent = *sum;
      }
      extents_.push_back(is_empty ? 0 : extent);
    }
  }

  void check_storages() {
    largest_bytes_.reserve(t_.storages.size());
    for (const Storage& s : t_.storages) largest_bytes_.push_back(s.bytes);
    for (const Resize& r : t_.resizes)  // one that is out of range itself is refused with its event
      if (r.storage.index() < largest_bytes_.size() && r.bytes <= kMaxTotalBytes)
        largest_bytes_[r.storage.index()] = std::max(largest_bytes_[r.storage.index()], r.bytes);

    std::int64_t total_bytes = 0;  // if every storage had its largest size at once
    for (std::size_t i = 0; i < t_.storages.size(); ++i) {
      const Storage& s = t_.storages[i];
      if (s.bytes < 0)
        found(Table::kStorages, i, "bytes", "a size is negative", "0 or more", fmt::format("{}", s.bytes));
      const auto sum = checked_add(total_bytes, largest_bytes_[i]);
      if (!sum || *sum > kMaxTotalBytes)
        found(Table::kStorages, i, "bytes", "the sizes of all storages together are too large", "at most 2^62 bytes",
              fmt::format("{} in this storage", largest_bytes_[i]));
      total_bytes = *sum;
      need(s.device, t_.strings, Table::kStorages, i, "device", Table::kStrings);
      if (text(s.device).empty())
        found(Table::kStorages, i, "device", "the device has no name", "\"cpu\", \"cuda:0\", ...", "\"\"");
      check_owner(s, i);
    }
  }

  void check_owner(const Storage& s, std::size_t id) const {
    if (s.of.is_none()) return;
    if (s.role != Role::kGradient && s.role != Role::kOptimizerState)
      found(Table::kStorages, id, "of", "only a gradient or an optimizer state belongs to a parameter", "none",
            fmt::format("{} of storage {}", name_of(s.role), s.of.value()));
    need(s.of, t_.storages, Table::kStorages, id, "of", Table::kStorages);
    if (t_.storages[s.of.index()].role != Role::kParameter)
      found(Table::kStorages, id, "of", "the owner is no parameter", "the id of a storage whose role is parameter",
            fmt::format("storage {}, whose role is {}", s.of.value(), name_of(t_.storages[s.of.index()].role)));
  }

  void check_tensors() const {
    for (std::size_t i = 0; i < t_.tensors.size(); ++i) {
      const Tensor& x = t_.tensors[i];
      need(x.storage, t_.storages, Table::kTensors, i, "storage", Table::kStorages);
      need(x.layout, t_.layouts, Table::kTensors, i, "layout", Table::kLayouts);
      if (x.offset < 0)
        found(Table::kTensors, i, "offset", "an offset is negative", "0 or more", fmt::format("{}", x.offset));
      const std::int64_t extent = extents_[x.layout.index()];
      if (extent == 0) continue;
      const auto last = checked_add(x.offset, extent);
      const auto bytes = last ? checked_mul(*last, item_bytes(t_.layouts[x.layout.index()].dtype)) : std::nullopt;
      const std::int64_t room = largest_bytes_[x.storage.index()];
      if (!bytes || *bytes > room)
        found(Table::kTensors, i, "layout", fmt::format("the tensor reaches beyond storage {}", x.storage.value()),
              fmt::format("at most {} bytes", room), bytes ? fmt::format("{}", *bytes) : "more than 2^63",
              "check sizes, strides and offset, which are in elements");
    }
  }

  void check_bindings() const {
    std::vector<std::uint64_t> names;
    for (std::size_t i = 0; i < t_.bindings.size(); ++i) {
      const Binding& b = t_.bindings[i];
      need(b.module, t_.modules, Table::kBindings, i, "module", Table::kModules);
      need(b.name, t_.strings, Table::kBindings, i, "name", Table::kStrings);
      check_name(b.name, Table::kBindings, i);
      need(b.tensor, t_.tensors, Table::kBindings, i, "tensor", Table::kTensors);
      names.push_back((std::uint64_t{b.module.value()} << 32) | first_ids_[b.name.index()]);
      const Role role = t_.storages[t_.tensors[b.tensor.index()].storage.index()].role;
      const bool fits = role == Role::kParameter || (role == Role::kBuffer && b.kind == BindingKind::kBuffer);
      if (!fits)
        found(Table::kBindings, i, "tensor", "the storage has another role than the binding",
              std::string(name_of(b.kind)), std::string(name_of(role)));
    }
    if (const auto i = find_repeat(names))
      found(Table::kBindings, *i, "name", "a module has two parameters or buffers of one name", "a name of its own",
            quote(text(t_.bindings[*i].name)));
  }

  void check_nodes() const {
    for (std::size_t i = 0; i < t_.nodes.size(); ++i) {
      need(t_.nodes[i].name, t_.strings, Table::kNodes, i, "name", Table::kStrings);
      need(t_.nodes[i].pass, t_.passes, Table::kNodes, i, "pass", Table::kPasses);
      if (t_.nodes[i].sequence < 0)
        found(Table::kNodes, i, "sequence", "a sequence number is negative", "0 or more",
              fmt::format("{}", t_.nodes[i].sequence));
    }
  }

  // Fills arg_inputs_: how many inputs an op must have for its argument list to make sense.
  void check_args() {
    std::vector<std::uint32_t> names;
    arg_inputs_.reserve(t_.args.size());
    for (std::size_t i = 0; i < t_.args.size(); ++i) {
      names.clear();
      std::int64_t values = 0;
      std::uint32_t inputs = 0;
      for (std::size_t a = 0; a < t_.args[i].size(); ++a) {
        const Arg& arg = t_.args[i][a];
        need(arg.name, t_.strings, Table::kArgs, i, element("name", a), Table::kStrings);
        names.push_back(first_ids_[arg.name.index()]);
        check_value(arg.value, i, a, 0, values, inputs);
      }
      if (const auto a = find_repeat(names))
        found(Table::kArgs, i, element("name", *a), "an argument stands twice", "each argument once",
              quote(text(t_.args[i][*a].name)));
      arg_inputs_.push_back(inputs);
    }
  }

  void check_value(const ArgValue& value, std::size_t id, std::size_t position, std::int64_t depth,
                   std::int64_t& values, std::uint32_t& inputs) const {
    const auto field = [&] { return element("value", position); };
    if (depth > kMaxArgDepth)
      found(Table::kArgs, id, field(), "the lists are nested too deep", fmt::format("at most {} levels", kMaxArgDepth));
    if (++values > kMaxArgValues)
      found(Table::kArgs, id, field(), "the argument list is too long",
            fmt::format("at most {} values", kMaxArgValues));
    if (const auto* s = std::get_if<StringId>(&value.value))
      need(*s, t_.strings, Table::kArgs, id, field(), Table::kStrings);
    if (const auto* range = std::get_if<InputRange>(&value.value)) {
      if (range->begin > range->end)
        found(Table::kArgs, id, field(), "a range of inputs runs backwards", "begin <= end",
              fmt::format("{} and {}", range->begin, range->end));
      inputs = std::max(inputs, range->end);
    }
    if (const auto* list = std::get_if<ArgValue::List>(&value.value))
      for (const ArgValue& item : *list) check_value(item, id, position, depth + 1, values, inputs);
  }

  void check_regions() const {
    std::vector<std::uint32_t> depths;
    for (std::size_t i = 0; i < t_.regions.size(); ++i) {
      const Region& r = t_.regions[i];
      check_parent(r.parent, Table::kRegions, i, depths);
      may(r.call, t_.calls, Table::kRegions, i, "call", Table::kCalls);
      may(r.args, t_.args, Table::kRegions, i, "args", Table::kArgs);
      if (r.args.has_value() && arg_inputs_[r.args.index()] > 0)
        found(Table::kRegions, i, "args", "a region has no inputs that arguments could name");
      check_tensors_of(t_.held_pool, r.held, Table::kRegions, i, "held");
    }
  }

  void check_ops() const {
    for (std::size_t i = 0; i < t_.ops.size(); ++i) {
      const Op& op = t_.ops[i];
      need(op.name, t_.strings, Table::kOps, i, "name", Table::kStrings);
      if (text(op.name).empty())
        found(Table::kOps, i, "name", "the op has no name", "a name such as \"aten.mm.default\"", "\"\"");
      need(op.pass, t_.passes, Table::kOps, i, "pass", Table::kPasses);
      may(op.call, t_.calls, Table::kOps, i, "call", Table::kCalls);
      may(op.node, t_.nodes, Table::kOps, i, "node", Table::kNodes);
      may(op.region, t_.regions, Table::kOps, i, "region", Table::kRegions);
      may(op.args, t_.args, Table::kOps, i, "args", Table::kArgs);
      may(op.source, t_.sources, Table::kOps, i, "source", Table::kSources);
      may(op.group, t_.strings, Table::kOps, i, "group", Table::kStrings);
      if (op.outputs.count > kMaxOpTensors)
        found(Table::kOps, i, "outputs", "there are too many tensors", fmt::format("at most {}", kMaxOpTensors));
      check_tensors_of(t_.input_pool, op.inputs, Table::kOps, i, "inputs");
      if (op.args.has_value() && arg_inputs_[op.args.index()] > op.inputs.count)
        found(Table::kOps, i, "args", "the arguments name an input that the op does not have",
              fmt::format("inputs below {}", op.inputs.count), fmt::format("{}", arg_inputs_[op.args.index()] - 1));
      for (std::size_t k = 0; k < op.outputs.count; ++k) check_output(op, i, k);
      check_facts(op, i);
    }
  }

  void check_output(const Op& op, std::size_t id, std::size_t k) const {
    const Output& out = t_.output_pool[op.outputs.begin + k];
    if (out.tensor.index() >= t_.tensors.size())
      need(out.tensor, t_.tensors, Table::kOps, id, element("outputs", k), Table::kTensors);
    if (out.alias != AliasKind::kView && out.alias != AliasKind::kMutates) return;
    const auto field = [&] { return element("aliases", k); };
    if (out.input >= op.inputs.count)
      found(Table::kOps, id, field(), "the output shares an input that the op does not have",
            op.inputs.count == 0 ? "no input" : fmt::format("an input from 0 to {}", op.inputs.count - 1),
            fmt::format("{}", out.input));
    const Tensor& value = t_.tensors[out.tensor.index()];
    const Tensor& input = t_.tensors[t_.input_pool[op.inputs.begin + out.input].index()];
    if (value.storage != input.storage)
      found(Table::kOps, id, field(),
            fmt::format("the output is said to share input {}, but has another storage", out.input),
            fmt::format("storage {}", input.storage.value()), fmt::format("{}", value.storage.value()));
    if (out.alias == AliasKind::kView && value.version != input.version)
      found(Table::kOps, id, field(), "a view has the version of what it views",
            fmt::format("version {}", input.version), fmt::format("{}", value.version));
    if (out.alias == AliasKind::kMutates && value.version <= input.version)
      found(Table::kOps, id, field(), "a mutated value has a newer version",
            fmt::format("a version above {}", input.version), fmt::format("{}", value.version));
  }

  bool writes_first_input(const Op& op) const {
    if (op.outputs.count != 1) return false;
    const Output& out = t_.output_pool[op.outputs.begin];
    return out.alias == AliasKind::kMutates && out.input == 0;
  }

  void check_facts(const Op& op, std::size_t id) const {
    const auto check_amount = [&](std::int64_t amount, const char* field) {
      if (amount < 0 && amount != Op::kUnknown)
        found(Table::kOps, id, field, "an amount is negative", "0 or more, or none", fmt::format("{}", amount));
    };
    check_amount(op.flops, "flops");
    check_amount(op.read_bytes, "read_bytes");
    check_amount(op.written_bytes, "written_bytes");
    if (op.flags.has(OpFlag::kUnwatched) && !writes_first_input(op))
      found(Table::kOps, id, "flags",
            "an op with the flag 'u' (unwatched) does something else than write into its first input",
            "one output, which mutates input 0");
    if (op.flags.has(OpFlag::kCollective) != op.group.has_value())
      found(Table::kOps, id, "group", "a collective op names its group, and no other op does",
            op.flags.has(OpFlag::kCollective) ? "the name of a group" : "none",
            op.group.has_value() ? quote(text(op.group)) : "none");
  }

  void check_saves() const {
    std::vector<std::uint64_t> slots;
    slots.reserve(t_.saves.size());
    for (std::size_t i = 0; i < t_.saves.size(); ++i) {
      const Save& s = t_.saves[i];
      need(s.node, t_.nodes, Table::kSaves, i, "node", Table::kNodes);
      need(s.tensor, t_.tensors, Table::kSaves, i, "tensor", Table::kTensors);
      slots.push_back((std::uint64_t{s.node.value()} << 32) | s.slot);
    }
    if (const auto i = find_repeat(slots))
      found(Table::kSaves, *i, "slot", fmt::format("node {} has two saves in one slot", t_.saves[*i].node.value()),
            "a slot of its own", fmt::format("{}", t_.saves[*i].slot));
  }

  void check_notes() const {
    for (std::size_t i = 0; i < t_.notes.size(); ++i) {
      need(t_.notes[i].kind, t_.strings, Table::kNotes, i, "kind", Table::kStrings);
      need(t_.notes[i].text, t_.strings, Table::kNotes, i, "text", Table::kStrings);
      may(t_.notes[i].op, t_.ops, Table::kNotes, i, "op", Table::kOps);
    }
  }

  const StepTables& t_;
  std::vector<std::uint32_t> first_ids_;     // by string
  std::vector<std::int64_t> extents_;        // by layout
  std::vector<std::int64_t> largest_bytes_;  // by storage, over its resizes
  std::vector<std::uint32_t> arg_inputs_;    // by argument list
};

}  // namespace

void check_tables(const StepTables& tables) { TableChecker(tables).run(); }

}  // namespace tidemark::step::detail
