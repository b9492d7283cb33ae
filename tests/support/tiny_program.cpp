#include "tiny_program.h"

#include <algorithm>

namespace tidemark::test {

using namespace step;

TinyProgram::TinyProgram() { root = module({}, "", "Net"); }

ModuleId TinyProgram::module(ModuleId parent, std::string_view name, std::string_view type) {
  return b.add_module({parent, b.intern(name), b.intern(type)});
}

TensorId TinyProgram::tensor(StorageId storage, std::uint32_t version, bool is_view) {
  const std::int64_t sizes[] = {b.tables().storages[storage.index()].bytes};
  const std::int64_t strides[] = {1};
  return b.add_tensor({storage, version, b.intern_layout(DType::kUInt8, sizes, strides), 0, is_view});
}

TensorId TinyProgram::fresh(std::int64_t bytes) {
  return tensor(b.add_storage({bytes, b.intern(device), Role::kPlain, {}}), 0, false);
}

TensorId TinyProgram::resident(Role role, std::int64_t bytes) {
  return tensor(b.add_storage({bytes, b.intern(device), role, {}}), 0, false);
}

void TinyProgram::pass(PassKind kind, std::uint32_t micro_batch) {
  pass_ = b.add_pass({kind, micro_batch, micro_batch, 0});
  b.phase(pass_);
}

CallId TinyProgram::enter(ModuleId module, const std::vector<TensorId>& inputs) {
  const auto& calls = b.tables().calls;
  const auto index = std::count_if(calls.begin(), calls.end(),
                                   [&](const Call& call) { return call.module == module && call.pass == pass_; });
  calls_.push_back(b.add_call(
      {module, calls_.empty() ? CallId() : calls_.back(), static_cast<std::uint32_t>(index), pass_, inputs}));
  b.enter(calls_.back());
  return calls_.back();
}

void TinyProgram::exit(CallId call, const std::vector<TensorId>& outputs) {
  b.set_call_outputs(call, outputs);
  b.exit(call);
  calls_.pop_back();
}

OpId TinyProgram::run(std::string_view name, const std::vector<TensorId>& inputs, const std::vector<Output>& outputs,
                      OpFlags flags) {
  last_op_ = b.add_op({.name = name,
                       .pass = pass_,
                       .call = calls_.empty() ? CallId() : calls_.back(),
                       .node = {},
                       .region = {},
                       .inputs = inputs,
                       .outputs = outputs,
                       .args = args,
                       .source = {},
                       .group = flags.has(OpFlag::kCollective) ? std::string_view("dp") : std::string_view(),
                       .flags = flags,
                       .flops = flops});
  b.begin(last_op_);
  for (const Output& out : outputs)
    if (out.alias == AliasKind::kFresh) b.alloc(storage(out.tensor));
  b.end(last_op_);
  return last_op_;
}

TensorId TinyProgram::op(std::string_view name, const std::vector<TensorId>& inputs, std::int64_t bytes,
                         OpFlags flags) {
  const TensorId made = fresh(bytes);
  run(name, inputs, {{made, AliasKind::kFresh, 0}}, flags);
  return made;
}

TensorId TinyProgram::view(TensorId input) {
  const TensorId made = tensor(storage(input), b.tables().tensors[input.index()].version, true);
  run("aten.view.default", {input}, {{made, AliasKind::kView, 0}});
  return made;
}

TensorId TinyProgram::change(TensorId input, OpFlags flags) {
  const TensorId made = tensor(storage(input), b.tables().tensors[input.index()].version + 1, false);
  run("aten.mul_.Tensor", {input}, {{made, AliasKind::kMutates, 0}}, flags);
  return made;
}

SaveId TinyProgram::pack(TensorId saved, bool hooked) {
  const NodeId node = b.add_node({b.intern("MmBackward0"), 0, pass_});
  const SaveId save = b.add_save({node, 0, saved, hooked});
  b.pack(save);
  return save;
}

TensorId TinyProgram::backward(const std::vector<SaveId>& saves, std::int64_t bytes) {
  const NodeId node = b.tables().saves[saves.front().index()].node;
  b.node(node);
  std::vector<TensorId> inputs;
  for (const SaveId save : saves) {
    b.unpack(save);
    inputs.push_back(b.tables().saves[save.index()].tensor);
  }
  const TensorId made = op("aten.mm.default", inputs, bytes);
  for (const SaveId save : saves) b.drop(save);
  b.done(node);
  for (const SaveId save : saves) b.release(save);
  return made;
}

}  // namespace tidemark::test
