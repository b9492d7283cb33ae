#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tidemark/step/step.h"
#include "tidemark/step/violation.h"

namespace tidemark::step {

// What add_call, add_op and add_region are told; lists are copied.
struct CallSpec {
  ModuleId module;
  CallId parent;
  std::uint32_t index = 0;
  PassId pass;
  std::span<const TensorId> inputs = {};
};

struct OpSpec {
  std::string_view name;
  PassId pass;
  CallId call;
  NodeId node;
  RegionId region;
  std::span<const TensorId> inputs;
  std::span<const Output> outputs;
  ArgsId args;
  SourceId source;
  std::string_view group;
  OpFlags flags;
  std::uint16_t stream = 0;
  std::int64_t flops = Op::kUnknown;
  std::int64_t read_bytes = Op::kUnknown;
  std::int64_t written_bytes = Op::kUnknown;
};

struct RegionSpec {
  RegionKind kind = RegionKind::kNoGrad;
  RegionId parent;
  CallId call;
  ArgsId args;
  std::span<const TensorId> held;
};

// Makes a Step, row by row and event by event, in the order in which things happen. Rows may refer only to rows that
// exist when finish() is called; parents come before children. finish() validates the whole.
//
//   StepBuilder builder;
//   const auto root = builder.add_module({.parent = {}, .name = builder.intern(""), .type = builder.intern("MLP")});
//   ...
//   Step step = std::move(builder).finish();   // throws Error: [ops[3].inputs[1]] ...
class StepBuilder {
 public:
  // The id of a string, layout or argument list; equal ones share an id. Strides of dimensions with one element, which
  // mean nothing, become those of a tensor without gaps.
  StringId intern(std::string_view text);
  LayoutId intern_layout(DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides);
  ArgsId intern_args(ArgList args);

  // Rows without looking for an equal one, for a reader that must keep ids as they are.
  StringId add_string(std::string_view text);
  LayoutId add_layout(DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides);
  ArgsId add_args(ArgList args);

  void add_meta(std::string key, std::string value);
  ModuleId add_module(const Module& row);
  PassId add_pass(const Pass& row);
  CallId add_call(const CallSpec& spec);
  SourceId add_source(const Source& row);
  StorageId add_storage(const Storage& row);
  TensorId add_tensor(const Tensor& row);
  void add_binding(const Binding& row);
  NodeId add_node(const Node& row);
  RegionId add_region(const RegionSpec& spec);
  OpId add_op(const OpSpec& spec);
  OpId add_op(const OpSpec& spec, StringId name, StringId group);  // name and group already interned
  SaveId add_save(const Save& row);
  void add_note(const Note& row);
  // Throws: Error when the section could not be read back: a name that is taken, a row that is not one line of JSON.
  void add_extra(ExtraSection section);

  // What a call returns is known only when it ends.
  void set_call_outputs(CallId call, std::span<const TensorId> outputs);
  // Which parameter a gradient or optimizer state belongs to is often known only later.
  void set_storage_role(StorageId storage, Role role, StorageId of);
  // The node that a forward op makes is known only after it ran.
  void set_op_node(OpId op, NodeId node);

  void phase(PassId pass) { push(EventKind::kPhase, pass.value()); }
  void enter(CallId call) { push(EventKind::kEnter, call.value()); }
  void exit(CallId call) { push(EventKind::kExit, call.value()); }
  void begin(OpId op) { push(EventKind::kBegin, op.value()); }
  void end(OpId op) { push(EventKind::kEnd, op.value()); }
  void alloc(StorageId storage) { push(EventKind::kAlloc, storage.value()); }
  void free(StorageId storage) { push(EventKind::kFree, storage.value()); }
  void resize(StorageId storage, std::int64_t bytes);
  void pack(SaveId save) { push(EventKind::kPack, save.value()); }
  void unpack(SaveId save) { push(EventKind::kUnpack, save.value()); }
  void drop(SaveId save) { push(EventKind::kDrop, save.value()); }
  void release(SaveId save) { push(EventKind::kRelease, save.value()); }
  void node(NodeId node) { push(EventKind::kNode, node.value()); }
  void done(NodeId node) { push(EventKind::kDone, node.value()); }
  void push(EventKind kind, std::uint32_t id);

  const StepTables& tables() const { return tables_; }

  // The finished Step. Throws: Error whose place is the record and field, when anything is inconsistent.
  Step finish() &&;
  // The same, with the place of an error told by the caller (a reader knows lines).
  Step finish(const PlaceOf& place_of) &&;

 private:
  using LayoutKey = std::pair<DType, std::vector<std::int64_t>>;

  StepTables tables_;
  std::vector<std::vector<TensorId>> call_outputs_;  // by call; joins the tables, in the order of ids, in finish()
  std::unordered_map<std::string, StringId> string_ids_;
  std::map<LayoutKey, LayoutId> layout_ids_;
  std::unordered_map<std::string, ArgsId> args_ids_;
};

}  // namespace tidemark::step
