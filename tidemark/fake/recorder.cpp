#include "tidemark/fake/recorder.h"

#include <array>
#include <bit>
#include <cstring>

namespace tidemark::fake {

using ops::Made;
using ops::Row;
using ops::TensorData;
using ops::Value;
using step::AliasKind;
using step::OpFlag;
using step::PassKind;

namespace {

template <class T>
void append_bytes(std::string& key, const T& value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  key.append(bytes, sizeof(T));
}

void append_dims(std::string& key, const ops::Dims& dims) {
  key += static_cast<char>(dims.size());
  key.append(reinterpret_cast<const char*>(dims.begin()), dims.size() * sizeof(std::int64_t));
}

bool equal_numbers(const Value& a, const Value& b) {
  const auto number = [](const Value& v) -> std::optional<double> {
    if (const auto* d = std::get_if<double>(&v)) return *d;
    if (const auto* i = std::get_if<std::int64_t>(&v)) return static_cast<double>(*i);
    if (const auto* f = std::get_if<bool>(&v)) return *f ? 1.0 : 0.0;
    return std::nullopt;
  };
  return number(a).has_value() && number(a) == number(b);
}

bool is_number(const Value& v) {
  return std::holds_alternative<double>(v) || std::holds_alternative<std::int64_t>(v) ||
         std::holds_alternative<bool>(v);
}

bool is_named(const std::vector<const char*>& names, const char* name) {
  for (const char* one : names)
    if (std::strcmp(one, name) == 0) return true;
  return false;
}

}  // namespace

// -- storages --

void Recorder::know(Storage& storage, step::Role role, const Storage* of) {
  storage.watcher = this;
  storage.role = role;
  if (of != nullptr) storage.of = of->id;
  storage.is_fixed = role != step::Role::kInput && role != step::Role::kGradient;
  add_storage(storage);
}

step::StorageId Recorder::add_storage(Storage& storage) {
  if (device_id_.is_none()) device_id_ = builder_.intern(device_);
  storage.id = builder_.add_storage({storage.bytes, device_id_, storage.role, storage.of});
  tensors_.emplace_back();
  return storage.id;
}

void Recorder::died(Storage& storage) {
  if (!is_recording_) return;
  if (pending_.is_open && pending_.out == &storage) flush();
  if (storage.id.is_none()) return;
  if (pending_.is_open) {
    if (pending_.first == &storage) {
      settle(true);
      return;
    }
    flush();
  }
  if (storage.save.has_value()) {
    builder_.drop(storage.save);
  } else {
    builder_.free(storage.id);
  }
}

// -- starting and ending --

void Recorder::begin() {
  is_recording_ = true;
  set_pass(PassKind::kForward);
}

step::Step Recorder::end() && {
  flush();
  leave_backward_if_left();
  release_unhooked();
  for (const NodeRow& node : nodes_)  // of nodes that never ran
    for (const std::uint32_t save : node.unhooked) builder_.release(step::SaveId(save));
  is_recording_ = false;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    builder_.add_node({builder_.intern(nodes_[i].name), static_cast<std::int64_t>(i), nodes_[i].pass});
  for (const SaveRow& save : saves_) builder_.add_save({save.node, save.slot, save.tensor, save.hooked});
  return std::move(builder_).finish();
}

void Recorder::add_note(const std::string& kind, const std::string& text) {
  builder_.add_note({builder_.intern(kind), builder_.intern(text), {}});
}

// -- passes --

void Recorder::set_pass(PassKind kind) {
  if (pass_kind_ == kind) return;
  pass_kind_ = kind;
  const std::uint32_t task = kind == PassKind::kBackward ? backwards_ : 0;
  const auto [entry, is_new] = passes_.try_emplace({kind, micro_batch_, task});
  if (is_new) entry->second = builder_.add_pass({kind, micro_batch_, task, 0});
  pass_ = entry->second;
  builder_.phase(pass_);
}

// Says in which pass we are; whether in backward.
bool Recorder::locate() {
  if (in_task_) {
    if (!saw_in_task_) {
      saw_in_task_ = true;
      pass_kind_.reset();
    }
    set_pass(PassKind::kBackward);
    return true;
  }
  leave_backward_if_left();
  PassKind kind = left_module_ ? PassKind::kLoss : PassKind::kForward;
  if (in_optimizer_) {
    kind = PassKind::kOptimizer;
  } else if (!calls_.empty()) {
    kind = PassKind::kForward;
  } else if (after_backward_) {
    kind = PassKind::kOptimizer;
  }
  set_pass(kind);
  return false;
}

void Recorder::backward_starts() { in_task_ = true; }
void Recorder::backward_ends() { in_task_ = false; }

void Recorder::leave_backward_if_left() {
  if (saw_in_task_ && !in_task_) leave_backward();
}

void Recorder::leave_backward() {
  run_node({});
  release_unhooked();
  saw_in_task_ = false;
  after_backward_ = true;
  ++backwards_;
  pass_kind_.reset();
  if (gradients == nullptr) return;
  for (const auto& [parameter, gradient] : gradients(gradients_of)) {
    Storage& storage = *(*gradient)->storage;
    if (storage.role != step::Role::kPlain && storage.role != step::Role::kGradient) continue;
    storage.role = step::Role::kGradient;
    storage.of = (*parameter)->storage->id;
    if (storage.id.has_value()) builder_.set_storage_role(storage.id, storage.role, storage.of);
  }
}

void Recorder::optimizer_starts() {
  flush();
  leave_backward_if_left();
  in_optimizer_ = true;
  set_pass(PassKind::kOptimizer);
}

void Recorder::optimizer_ends() {
  flush();
  in_optimizer_ = false;
  after_backward_ = true;
}

// -- modules --

void Recorder::enter(step::ModuleId module, std::span<const Tensor* const> inputs) {
  flush();
  if (calls_.empty()) {
    leave_backward_if_left();
    if (after_backward_) {
      ++micro_batch_;
      after_backward_ = false;
      pass_kind_.reset();
    }
    left_module_ = false;
  }
  set_pass(PassKind::kForward);
  const std::uint32_t index = call_counts_[{module.value(), pass_.value()}]++;
  std::vector<step::TensorId> ids;
  for (const Tensor* t : inputs) ids.push_back(tensor(*t));
  const step::CallId parent = calls_.empty() ? step::CallId() : calls_.back();
  const step::CallId call = builder_.add_call({module, parent, index, pass_, ids});
  calls_.push_back(call);
  builder_.enter(call);
}

void Recorder::leave(std::span<const Tensor* const> outputs) {
  flush();
  const step::CallId call = calls_.back();
  calls_.pop_back();
  std::vector<step::TensorId> ids;
  for (const Tensor* t : outputs) ids.push_back(tensor(*t));
  builder_.set_call_outputs(call, ids);
  builder_.exit(call);
  if (calls_.empty()) left_module_ = true;
}

// -- tensors --

step::LayoutId Recorder::layout(const TensorData& t) {
  if (t.layout.has_value()) return t.layout;
  key_.clear();
  key_ += static_cast<char>(t.dtype);
  append_dims(key_, t.sizes);
  append_dims(key_, t.strides);
  const auto [entry, is_new] = layouts_.try_emplace(key_);
  if (is_new) entry->second = builder_.intern_layout(t.dtype, t.sizes.span(), t.strides.span());
  const_cast<TensorData&>(t).layout = entry->second;  // a note of what is known about it anyway
  return entry->second;
}

step::TensorId Recorder::tensor_at(step::StorageId id, std::uint32_t version, step::LayoutId layout,
                                   std::int64_t offset, bool is_view) {
  std::vector<Known>& known = tensors_[id.index()];
  for (const Known& k : known)
    if (k.version == version && k.layout == layout && k.offset == offset) return k.tensor;
  const step::TensorId made = builder_.add_tensor({id, version, layout, offset, is_view});
  known.push_back({version, layout, offset, made});
  return made;
}

step::TensorId Recorder::tensor_over(const Storage& storage, const TensorData& t, bool is_view) {
  return tensor_at(storage.id, storage.version, layout(t), t.offset, is_view);
}

step::TensorId Recorder::tensor(const Tensor& t) { return tensor_over(*t->storage, *t, false); }

// -- nodes --

step::NodeId Recorder::node_id(GradNode& node) {
  if (node.id.is_none()) {
    node.id = step::NodeId(static_cast<std::uint32_t>(nodes_.size()));
    nodes_.push_back({"", pass_, {}, 0, 0, {}});
  }
  return node.id;
}

// The node that the engine runs. Its name is known from here on; nodes that run no op stay without one, as in a
// capture.
step::NodeId Recorder::running_id(GradNode& node) {
  const step::NodeId id = node_id(node);
  nodes_[id.index()].name = node.name;
  return id;
}

void Recorder::run_node(step::NodeId node) {
  if (node == running_) return;
  if (running_.has_value()) {
    builder_.done(running_);
    finished_ = running_;
  }
  if (node.has_value()) {
    release_unhooked();
    builder_.node(node);
  }
  running_ = node;
  if (node.has_value()) last_node_ = node;
}

void Recorder::release_unhooked() {
  if (finished_.is_none()) return;
  NodeRow& node = nodes_[finished_.index()];
  finished_ = {};
  for (const std::uint32_t save : node.unhooked) builder_.release(step::SaveId(save));
  node.unhooked.clear();
}

// -- what autograd saves --

void Recorder::pack(GradNode& node, const Tensor& t, const char* name, GradNode* latest) {
  flush();
  locate();
  const step::NodeId id = node_id(latest != nullptr ? *latest : node);
  NodeRow& row = nodes_[id.index()];
  if (row.call.is_none() && !calls_.empty()) row.call = calls_.back();
  const step::SaveId save(static_cast<std::uint32_t>(saves_.size()));
  saves_.push_back({id, row.slots++, tensor(t), true, ops::None{}});
  ++row.open_saves;
  builder_.pack(save);
  const Storage& storage = *t->storage;
  node.saved.push_back({.save = save,
                        .fixed = storage.is_fixed ? t : Tensor(),
                        .bytes = storage.bytes,
                        .dtype = t.dtype(),
                        .sizes = t.sizes(),
                        .strides = t.strides(),
                        .offset = t->offset,
                        .storage = storage.id,
                        .version = storage.version,
                        .name = name});
}

Tensor Recorder::unpack(GradNode& node, std::size_t saved) {
  flush();
  locate();
  run_node(running_id(node));
  const ops::SavedTensor& kept = node.saved[saved];
  SaveRow& row = saves_[kept.save.index()];
  if (row.node != running_) {
    --nodes_[row.node.index()].open_saves;
    ++nodes_[running_.index()].open_saves;
    row.node = running_;
    row.slot = nodes_[running_.index()].slots++;
  }
  builder_.unpack(kept.save);
  if (kept.fixed) {
    builder_.drop(kept.save);
    return kept.fixed;
  }
  auto* storage = new Storage{.bytes = kept.bytes,
                              .watcher = this,
                              .holders = 1,
                              .id = kept.storage,
                              .version = kept.version,
                              .role = step::Role::kPlain,
                              .of = {},
                              .save = kept.save,
                              .made_by = running_,
                              .is_fixed = false};
  Tensor t(new TensorData);
  t->storage = storage;
  t->dtype = kept.dtype;
  t->sizes = kept.sizes;
  t->strides = kept.strides;
  t->offset = kept.offset;
  return t;
}

void Recorder::release(GradNode& node) {
  for (const ops::SavedTensor& kept : node.saved) {
    flush();
    --nodes_[node.id.index()].open_saves;
    builder_.release(kept.save);
  }
  node.saved.clear();
}

// -- ops --

void Recorder::describe(Call& call) {
  flush();
  Described& d = described_;
  d.inputs.clear();
  d.storages.clear();
  // A number that the running node saved of its forward op comes back as the small tensor it became.
  std::vector<std::pair<const char*, step::TensorId>> numbers;
  if (in_task_ && call.row().number != nullptr && current != nullptr && current->id.has_value()) {
    const Value* value = call.find(call.row().number);
    if (value != nullptr && is_number(*value))
      for (const std::uint32_t save : nodes_[current->id.index()].unhooked)
        if (equal_numbers(saves_[save].number, *value)) {
          numbers.assign(1, {call.row().number, saves_[save].tensor});
        }
  }
  for (const ops::Arg& arg : call.args()) {
    const auto add = [&](const Tensor& t) {
      d.inputs.push_back(tensor(t));
      d.storages.push_back(t->storage);
    };
    if (const auto* one = std::get_if<const Tensor*>(&arg.value)) {
      add(**one);
    } else if (const auto* many = std::get_if<std::span<const Tensor>>(&arg.value)) {
      for (const Tensor& t : *many) add(t);
    } else if (const auto* some = std::get_if<ops::Indices>(&arg.value)) {
      for (const Tensor& t : some->items)
        if (t) add(t);
    } else if (!numbers.empty() && std::strcmp(arg.name, numbers.front().first) == 0) {
      d.inputs.push_back(numbers.front().second);
      d.storages.push_back(nullptr);
    }
  }
  d.args = args_of(call, numbers);
}

step::ArgsId Recorder::args_of(const Call& call, const std::vector<std::pair<const char*, step::TensorId>>& numbers) {
  std::string& key = key_;
  key.clear();
  std::uint32_t position = 0;
  const auto is_given_back = [&](const ops::Arg& arg) {
    return !numbers.empty() && std::strcmp(arg.name, numbers.front().first) == 0;
  };
  const auto count_of = [](const Value& value) -> std::uint32_t {
    if (std::holds_alternative<const Tensor*>(value)) return 1;
    if (const auto* many = std::get_if<std::span<const Tensor>>(&value))
      return static_cast<std::uint32_t>(many->size());
    return 0;
  };
  const char* const hidden = call.row().hidden;
  const auto is_hidden = [&](const ops::Arg& arg) {
    return hidden != nullptr && std::string_view(arg.name).starts_with(hidden);
  };
  for (const ops::Arg& arg : call.args()) {
    if (is_hidden(arg)) continue;
    key += arg.name;
    const Value& v = arg.value;
    key += static_cast<char>(is_given_back(arg) ? 100 : v.index());
    if (const auto* b = std::get_if<bool>(&v)) key += *b ? '1' : '0';
    if (const auto* i = std::get_if<std::int64_t>(&v)) append_bytes(key, *i);
    if (const auto* d = std::get_if<double>(&v)) append_bytes(key, *d);
    if (const auto* text = std::get_if<const char*>(&v)) key += *text, key += '\0';
    if (const auto* dims = std::get_if<ops::Dims>(&v)) append_dims(key, *dims);
    if (const auto* list = std::get_if<std::span<const double>>(&v))
      append_bytes(key, list->size()), key.append(reinterpret_cast<const char*>(list->data()), list->size() * 8);
    if (const auto* mask = std::get_if<ops::Mask>(&v))
      for (std::size_t k = 0; k < mask->count; ++k) key += (*mask)[k] ? '1' : '0';
    if (const auto* list = std::get_if<ops::Indices>(&v))
      for (const Tensor& t : list->items) key += t ? '1' : '0';
    append_bytes(key, count_of(v));
  }
  const auto [entry, is_new] = args_.try_emplace(key);
  if (!is_new) return entry->second;

  step::ArgList list;
  for (const ops::Arg& arg : call.args()) {
    if (is_hidden(arg)) continue;
    step::ArgValue out;
    const Value& v = arg.value;
    if (is_given_back(arg)) {
      out.value = step::InputRange{position, position + 1};
      ++position;
    } else if (const std::uint32_t count = count_of(v);
               count > 0 || std::holds_alternative<std::span<const Tensor>>(v)) {
      out.value = step::InputRange{position, position + count};
      position += count;
    } else if (const auto* b = std::get_if<bool>(&v)) {
      out.value = *b;
    } else if (const auto* i = std::get_if<std::int64_t>(&v)) {
      out.value = *i;
    } else if (const auto* d = std::get_if<double>(&v)) {
      out.value = *d;
    } else if (const auto* text = std::get_if<const char*>(&v)) {
      out.value = builder_.intern(*text);
    } else if (const auto* dims = std::get_if<ops::Dims>(&v)) {
      step::ArgValue::List items;
      for (const std::int64_t item : *dims) items.push_back({item});
      out.value = std::move(items);
    } else if (const auto* doubles = std::get_if<std::span<const double>>(&v)) {
      step::ArgValue::List items;
      for (const double item : *doubles) items.push_back({item});
      out.value = std::move(items);
    } else if (const auto* mask = std::get_if<ops::Mask>(&v)) {
      step::ArgValue::List items;
      for (std::size_t k = 0; k < mask->count; ++k) items.push_back({(*mask)[k]});
      out.value = std::move(items);
    } else if (const auto* some = std::get_if<ops::Indices>(&v)) {
      step::ArgValue::List items;
      for (const Tensor& t : some->items) {
        if (!t) {
          items.emplace_back();
        } else {
          items.push_back({step::InputRange{position, position + 1}});
          ++position;
        }
      }
      out.value = std::move(items);
    }
    list.push_back({builder_.intern(arg.name), std::move(out)});
  }
  entry->second = builder_.intern_args(std::move(list));
  return entry->second;
}

void Recorder::ran(Call& call, GradNode* made) {
  Place place;
  place.in_backward = locate();
  bool in_place = false;
  const Row& row = call.row();
  if (place.in_backward) {
    if (current != nullptr) place.node = running_id(*current);
    if (place.node.has_value() && std::strcmp(row.name, "aten.add.Tensor") == 0 && is_engine_sum(place.node))
      place.node = {};
    run_node(place.node);
    const step::NodeId of = place.node.has_value() ? place.node : last_node_;
    if (of.has_value()) place.call = nodes_[of.index()].call;
    const bool has_own_rules =
        place.node.has_value() && current->row != nullptr && !current->row->backward_in_place.empty();
    if (has_own_rules) {
      // Surely in place, unless it broadcasts: what was the first operand lives on without a storage of its own.
      if (made_here(place.node) && is_named(current->row->backward_in_place, row.name) &&
          call.in(0).sizes() == call.made().front().tensor.sizes()) {
        Storage* const first = described_.storages.front();
        hold(call, place);
        settle(true);
        first->id = {};
        return;
      }
    } else if (row.in_place != nullptr) {
      if (place.node.is_none()) {
        release_unhooked();
        in_place = may_add_in_place(call);
      } else {
        in_place = std::strcmp(row.name, "aten.add.Tensor") != 0 && made_here(place.node);
      }
    }
  } else {
    if (!calls_.empty()) place.call = calls_.back();
    if (made != nullptr) {
      place.node = node_id(*made);
      nodes_[place.node.index()].call = place.call;
    }
    in_place = watchful > 0 && row.in_place != nullptr && !described_.storages.empty() &&
               described_.storages.front() != nullptr && !described_.storages.front()->is_fixed;
  }
  if (in_place) {
    hold(call, place);
  } else {
    write(call, place);
  }
}

step::StringId Recorder::name_id(const Row& row) {
  const auto [entry, is_new] = names_.try_emplace(&row);
  if (is_new) entry->second = builder_.intern(row.name);
  return entry->second;
}

// FLOPs, bytes read and bytes written: what the row says. A number that autograd gave back as a tensor is read too.
std::array<std::int64_t, 3> Recorder::costs_of(const Call& call, const Row& row) const {
  constexpr std::int64_t kNumberBytes = 8;
  ops::Moved bytes = ops::moved(row, call);
  if (bytes.read > 0)
    for (const Storage* storage : described_.storages) bytes.read += storage == nullptr ? kNumberBytes : 0;
  return {call.row().flops != nullptr ? call.row().flops(call) : 0, bytes.read, bytes.written};
}

void Recorder::write(Call& call, const Place& place) {
  const step::OpId op(static_cast<std::uint32_t>(builder_.tables().ops.size()));
  builder_.begin(op);
  const std::vector<step::Output> made = outputs(call);
  for (const step::StorageId id : fresh_) builder_.alloc(id);
  const bool keeps_number = place.node.has_value() && !place.in_backward && call.row().saves_number;
  const auto first_save = saves_.size();
  if (keeps_number) save_numbers(call, place.node);
  step::OpFlags flags = call.row().flags;
  if (call.row().is_random != nullptr && call.row().is_random(call)) flags = flags | OpFlag::kRandom;
  add_op(described_, made, place, name_id(call.row()), flags, costs_of(call, call.row()));
  builder_.end(op);
  for (std::size_t i = first_save; i < saves_.size(); ++i) {
    builder_.pack(step::SaveId(static_cast<std::uint32_t>(i)));
    builder_.free(builder_.tables().tensors[saves_[i].tensor.index()].storage);
    nodes_[place.node.index()].unhooked.push_back(static_cast<std::uint32_t>(i));
  }
}

// A number in a tensor's place becomes a tensor that autograd keeps, out of the hooks' sight.
void Recorder::save_numbers(const Call& call, step::NodeId node) {
  const Value* value = call.find(call.row().number);
  if (value == nullptr || !is_number(*value)) return;
  const bool is_float = std::holds_alternative<double>(*value);
  const bool is_bool = std::holds_alternative<bool>(*value);
  Storage storage;
  storage.bytes = is_bool ? 1 : 8;
  const step::StorageId id = add_storage(storage);
  const auto layout = builder_.intern_layout(is_float  ? ops::DType::kFloat64
                                             : is_bool ? ops::DType::kBool
                                                       : ops::DType::kInt64,
                                             {}, {});
  builder_.alloc(id);
  NodeRow& row = nodes_[node.index()];
  saves_.push_back({node, row.slots++, tensor_at(id, 0, layout, 0, false), false, *value});
}

std::vector<step::Output> Recorder::outputs(Call& call) {
  std::vector<step::Output> made;
  fresh_.clear();
  for (const Made& m : call.made())
    if (m.alias == AliasKind::kMutates) {
      bool is_first = true;  // several results may be the same storage
      for (const Made& earlier : call.made()) {
        if (&earlier == &m) break;
        if (earlier.alias == AliasKind::kMutates && earlier.tensor->storage == m.tensor->storage) is_first = false;
      }
      if (is_first) ++m.tensor->storage->version;
    }
  for (const Made& m : call.made()) {
    if (!m.tensor) continue;
    Storage& storage = *m.tensor->storage;
    if (m.alias == AliasKind::kFresh && storage.id.is_none()) {
      storage.made_by = running_;
      fresh_.push_back(add_storage(storage));
    }
    made.push_back({tensor_over(storage, *m.tensor, m.alias == AliasKind::kView), m.alias, m.input});
  }
  // Of several inputs over the storage of a view, the first is named.
  for (step::Output& output : made) {
    if (output.alias != AliasKind::kView) continue;
    const step::StorageId id = builder_.tables().tensors[output.tensor.index()].storage;
    for (std::size_t i = 0; i < described_.storages.size(); ++i)
      if (described_.storages[i] != nullptr && described_.storages[i]->id == id) {
        output.input = static_cast<std::uint32_t>(i);
        break;
      }
  }
  return made;
}

void Recorder::add_op(const Described& described, std::span<const step::Output> outputs, const Place& place,
                      step::StringId name, step::OpFlags flags, const std::array<std::int64_t, 3>& costs) {
  builder_.add_op({.name = {},
                   .pass = pass_,
                   .call = place.call,
                   .node = place.node,
                   .region = place.in_backward ? step::RegionId() : region(place.call),
                   .inputs = described.inputs,
                   .outputs = outputs,
                   .args = described.args,
                   .source = {},
                   .group = {},
                   .flags = flags,
                   .stream = 0,
                   .flops = costs[0],
                   .read_bytes = costs[1],
                   .written_bytes = costs[2]},
                  name, {});
}

step::RegionId Recorder::region(step::CallId call) {
  const bool grad = grad_enabled || pass_kind_ == PassKind::kOptimizer;
  if (grad && autocast == nullptr) return {};
  const auto [entry, is_new] = regions_.try_emplace({call.value(), grad, autocast});
  if (is_new) {
    step::RegionId made;
    if (autocast != nullptr) {
      const auto args = builder_.intern_args({{builder_.intern("dtype"), {builder_.intern(autocast)}}});
      made = builder_.add_region({step::RegionKind::kAutocast, made, call, args, {}});
    }
    if (!grad) made = builder_.add_region({step::RegionKind::kNoGrad, made, call, {}, {}});
    entry->second = made;
  }
  return entry->second;
}

// -- what is done in place when nobody watches --

// Whether the engine adds the gradients of two nodes, or the node itself adds something: the engine has released what
// the node saved by then, and the first gradient was made by an earlier node.
bool Recorder::is_engine_sum(step::NodeId node) const {
  const auto& storages = described_.storages;
  return storages.size() == 2 && storages[0] != nullptr && storages[1] != nullptr &&
         nodes_[node.index()].open_saves == 0 && storages[0]->made_by != node;
}

bool Recorder::may_add_in_place(const Call& call) const {
  if (call.inputs().size() != 2) return false;
  const Tensor& first = call.in(0);
  const Tensor& second = call.in(1);
  const Storage& storage = *first->storage;
  return &storage != second->storage && !storage.is_fixed && storage.save.is_none() && !first->is_view &&
         first.sizes() == second.sizes() && ops::is_dense(first.sizes(), first.strides());
}

bool Recorder::made_here(step::NodeId node) const {
  const Storage* first = described_.storages.empty() ? nullptr : described_.storages.front();
  return first != nullptr && first->made_by == node && first->save.is_none() && !first->is_fixed;
}

void Recorder::hold(Call& call, const Place& place) {
  const Tensor& out = call.made().front().tensor;
  const Row& row = call.row();
  out->storage->made_by = running_;
  pending_ = {.is_open = true,
              .name = name_id(call.row()),
              .described = described_,
              .first = described_.storages.front(),
              .first_id = described_.storages.front()->id,
              .out = out->storage,
              .out_tensor = out.get(),
              .layout = layout(*out),
              .offset = out->offset,
              .call = place.call,
              .node = place.node,
              .in_backward = place.in_backward,
              .flags = row.flags,
              .costs = costs_of(call, row),
              .costs_in_place = costs_of(call, row.in_place != nullptr ? ops::row(row.in_place) : row)};
}

void Recorder::settle(bool in_place) {
  pending_.is_open = false;
  const Pending& p = pending_;
  Storage& out = *p.out;
  const step::OpId op(static_cast<std::uint32_t>(builder_.tables().ops.size()));
  builder_.begin(op);
  if (in_place) {
    out.id = p.first->id;
    out.version = p.first->version + 1;
    out.role = p.first->role;
    out.of = p.first->of;
  } else {
    builder_.alloc(add_storage(out));
  }
  const step::TensorId tensor = tensor_at(out.id, out.version, p.layout, p.offset, false);
  const step::Output output{tensor, in_place ? AliasKind::kMutates : AliasKind::kFresh, 0};
  add_op(p.described, {&output, 1}, {p.call, p.node, p.in_backward}, p.name,
         in_place ? p.flags | OpFlag::kUnwatched : p.flags, in_place ? p.costs_in_place : p.costs);
  builder_.end(op);
}

}  // namespace tidemark::fake
