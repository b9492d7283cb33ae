#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tidemark/base/id.h"
#include "tidemark/step/dtype.h"
#include "tidemark/step/kinds.h"

// The rows of a Step's tables. A row refers to other rows by id; the id of a row is its position in its table.

namespace tidemark::step {

using StringId = Id<struct StringTag>;
using ModuleId = Id<struct ModuleTag>;
using PassId = Id<struct PassTag>;
using CallId = Id<struct CallTag>;
using SourceId = Id<struct SourceTag>;
using LayoutId = Id<struct LayoutTag>;
using StorageId = Id<struct StorageTag>;
using TensorId = Id<struct TensorTag>;
using NodeId = Id<struct NodeTag>;
using ArgsId = Id<struct ArgsTag>;
using RegionId = Id<struct RegionTag>;
using OpId = Id<struct OpTag>;
using SaveId = Id<struct SaveTag>;
using ResizeId = Id<struct ResizeTag>;

// A part of one of the Step's pools, each of which holds the lists of one kind of row, in the order of the rows.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

// A module of the tree. The fully qualified name follows from the parents; the root's own name is empty.
struct Module {
  ModuleId parent;
  StringId name;  // the attribute it is reached by
  StringId type;  // its class
  friend bool operator==(const Module&, const Module&) = default;
};

struct Pass {
  PassKind kind = PassKind::kForward;
  std::uint32_t micro_batch = 0;
  std::uint32_t graph_task = 0;  // which backward() of the step
  std::uint32_t rank = 0;
  friend bool operator==(const Pass&, const Pass&) = default;
};

// One run of a module's forward. Its inputs are the tensors in its arguments, positional and by keyword, also inside
// containers: a checkpoint around the call holds them. Its outputs are the tensors it returned.
struct Call {
  ModuleId module;
  CallId parent;
  std::uint32_t index = 0;  // how many calls of this module came before it in the same pass
  PassId pass;
  Range inputs;   // in the pool of call inputs
  Range outputs;  // in the pool of call outputs
  friend bool operator==(const Call&, const Call&) = default;
};

// A place in the user's program.
struct Source {
  StringId file;
  std::uint32_t line = 0;
  StringId function;
  friend bool operator==(const Source&, const Source&) = default;
};

// Element type, sizes and strides (in elements), shared by all tensors that have them.
struct Layout {
  DType dtype = DType::kFloat32;
  Range dims;  // in the dims pool: the sizes, then as many strides
  friend bool operator==(const Layout&, const Layout&) = default;
};

struct Storage {
  std::int64_t bytes = 0;  // exactly what the program asked for, before any rounding by an allocator
  StringId device;
  Role role = Role::kPlain;
  StorageId of;  // gradient, optimizer state: the parameter it belongs to
  friend bool operator==(const Storage&, const Storage&) = default;
};

// A value: a storage at a version, seen through a layout. Two tensors hold the same value iff storage and version
// agree.
struct Tensor {
  StorageId storage;
  std::uint32_t version = 0;
  LayoutId layout;
  std::int64_t offset = 0;  // in elements
  bool is_view = false;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// A parameter or buffer of a module. A tied weight has several bindings to one storage.
struct Binding {
  ModuleId module;
  StringId name;
  TensorId tensor;
  BindingKind kind = BindingKind::kParameter;
  bool trainable = false;
  friend bool operator==(const Binding&, const Binding&) = default;
};

// A node of the autograd graph.
struct Node {
  StringId name;              // "AddmmBackward0"
  std::int64_t sequence = 0;  // PyTorch's sequence number; repeats, so nodes are paired by id
  PassId pass;                // in which it was made
  friend bool operator==(const Node&, const Node&) = default;
};

// Inputs [begin, end) of the op that the argument list belongs to.
struct InputRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  friend bool operator==(const InputRange&, const InputRange&) = default;
};

// A non-tensor argument of an op, or the tensors given for a named argument.
struct ArgValue {
  using List = std::vector<ArgValue>;
  std::variant<std::monostate, bool, std::int64_t, double, StringId, InputRange, List> value;
};
bool operator==(const ArgValue& a, const ArgValue& b);  // floats are equal when their bits are

struct Arg {
  StringId name;
  ArgValue value;
  friend bool operator==(const Arg&, const Arg&) = default;
};
using ArgList = std::vector<Arg>;

struct Region {
  RegionKind kind = RegionKind::kNoGrad;
  RegionId parent;
  CallId call;
  ArgsId args;
  Range held;  // in the held pool: what the region keeps alive for itself
  friend bool operator==(const Region&, const Region&) = default;
};

struct Output {
  TensorId tensor;
  AliasKind alias = AliasKind::kFresh;
  std::uint32_t input = 0;  // for view and mutates
  friend bool operator==(const Output&, const Output&) = default;
};

// One op as the dispatcher saw it. Outputs list every value it makes, also a mutated input that it does not return.
struct Op {
  StringId name;  // "aten.addmm.default"
  PassId pass;
  CallId call;      // the module call it belongs to; for backward ops that of their forward op
  NodeId node;      // forward: the node it made; backward: the node it runs for
  RegionId region;  // innermost
  ArgsId args;
  Range inputs;   // in the input pool, in schema order
  Range outputs;  // in the output pool
  SourceId source;
  StringId group;  // collectives: who takes part
  OpFlags flags;
  std::uint16_t stream = 0;
  std::int64_t flops = kUnknown;
  std::int64_t read_bytes = kUnknown;
  std::int64_t written_bytes = kUnknown;
  friend bool operator==(const Op&, const Op&) = default;

  static constexpr std::int64_t kUnknown = -1;
};

// A tensor that autograd keeps for a node.
struct Save {
  NodeId node;
  std::uint32_t slot = 0;
  TensorId tensor;
  bool hooked = true;  // false: kept where saved-tensor hooks do not see it
  friend bool operator==(const Save&, const Save&) = default;
};

struct Resize {
  StorageId storage;
  std::int64_t bytes = 0;
  friend bool operator==(const Resize&, const Resize&) = default;
};

// `id` is a position in the table that the kind names; for kResize, in the list of resizes.
struct Event {
  EventKind kind = EventKind::kPhase;
  std::uint32_t id = 0;
  friend bool operator==(const Event&, const Event&) = default;
};

// Something the recorder wants a reader to know: what was imitated, replaced or left out.
struct Note {
  StringId kind;  // "imitated", "placeholder", "missing", ...
  StringId text;
  OpId op;
  friend bool operator==(const Note&, const Note&) = default;
};

// A section of the file that this version does not know, kept as it came.
struct ExtraSection {
  std::string name;
  std::vector<std::string> rows;  // each one line of JSON
  friend bool operator==(const ExtraSection&, const ExtraSection&) = default;
};

using Meta = std::vector<std::pair<std::string, std::string>>;

}  // namespace tidemark::step
