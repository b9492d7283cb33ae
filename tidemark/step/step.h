#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/step/records.h"

namespace tidemark::step {

// All tables of a Step, and the pools that rows refer into. Plain data without any promise; a Step is the promise.
struct StepTables {
  Meta meta;
  std::vector<std::string> strings;
  std::vector<Module> modules;
  std::vector<Pass> passes;
  std::vector<Call> calls;
  std::vector<Source> sources;
  std::vector<Layout> layouts;
  std::vector<Storage> storages;
  std::vector<Tensor> tensors;
  std::vector<Binding> bindings;
  std::vector<Node> nodes;
  std::vector<ArgList> args;
  std::vector<Region> regions;
  std::vector<Op> ops;
  std::vector<Save> saves;
  std::vector<Note> notes;
  std::vector<Resize> resizes;
  std::vector<Event> events;
  std::vector<ExtraSection> extras;

  std::vector<std::int64_t> dims_pool;
  std::vector<TensorId> call_input_pool;
  std::vector<TensorId> call_output_pool;
  std::vector<TensorId> held_pool;
  std::vector<TensorId> input_pool;
  std::vector<Output> output_pool;

  friend bool operator==(const StepTables&, const StepTables&) = default;
};

// One recorded training step: forward, loss, backward, optimizer, as tables and one ordered list of events. It is
// the single source of truth: every analysis is a function of a Step, a device and options. A Step is immutable and
// consistent; only StepBuilder makes one (native models, the PyTorch capture and the file reader all use it).
//
// A storage without an alloc event is there before the step begins; one without a free event is there after it ends.
// Free events say when the *program* let go; pack and release events say what autograd held. Intervals and lifetimes
// are derived from the events, never stored.
class Step {
 public:
  const StepTables& tables() const { return tables_; }

  std::string_view text(StringId id) const { return id.is_none() ? std::string_view() : tables_.strings[id.index()]; }
  const Module& operator[](ModuleId id) const { return tables_.modules[id.index()]; }
  const Pass& operator[](PassId id) const { return tables_.passes[id.index()]; }
  const Call& operator[](CallId id) const { return tables_.calls[id.index()]; }
  const Source& operator[](SourceId id) const { return tables_.sources[id.index()]; }
  const Layout& operator[](LayoutId id) const { return tables_.layouts[id.index()]; }
  const Storage& operator[](StorageId id) const { return tables_.storages[id.index()]; }
  const Tensor& operator[](TensorId id) const { return tables_.tensors[id.index()]; }
  const Node& operator[](NodeId id) const { return tables_.nodes[id.index()]; }
  const ArgList& operator[](ArgsId id) const { return tables_.args[id.index()]; }
  const Region& operator[](RegionId id) const { return tables_.regions[id.index()]; }
  const Op& operator[](OpId id) const { return tables_.ops[id.index()]; }
  const Save& operator[](SaveId id) const { return tables_.saves[id.index()]; }
  const Resize& operator[](ResizeId id) const { return tables_.resizes[id.index()]; }

  std::span<const std::int64_t> sizes(const Layout& layout) const;
  std::span<const std::int64_t> strides(const Layout& layout) const;
  std::span<const TensorId> inputs(const Call& call) const;
  std::span<const TensorId> outputs(const Call& call) const;
  std::span<const TensorId> inputs(const Op& op) const;
  std::span<const Output> outputs(const Op& op) const;
  std::span<const TensorId> held(const Region& region) const;

  // "layers.0.mlp"; the root is "".
  std::string fqn(ModuleId module) const;

  friend bool operator==(const Step&, const Step&) = default;

 private:
  friend class StepBuilder;
  explicit Step(StepTables tables) : tables_(std::move(tables)) {}

  StepTables tables_;
};

// The fully qualified name of a module in tables that need not be a valid Step yet, only have parents before children.
std::string fqn_of(const StepTables& tables, ModuleId module);

}  // namespace tidemark::step
