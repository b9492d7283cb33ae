#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tidemark/step/step_builder.h"

namespace tidemark::test {

// Writes small steps tersely, for tests whose figures are worked out by hand. Every tensor is a row of bytes with a
// storage of its own size, and every save has a node of its own.
//
//   TinyProgram p;
//   const auto x = p.resident(step::Role::kInput, 10);
//   p.pass(step::PassKind::kForward);
//   const auto call = p.enter(p.root, {x});
//   const auto s = p.pack(x);
//   const auto y = p.op("aten.mm.default", {x}, 20);
//   p.exit(call, {y});
//   p.pass(step::PassKind::kBackward);
//   p.backward({s}, 30);                     // node, unpack, an op that makes 30 bytes, drop, done, release
//   const step::Step step = p.finish();
class TinyProgram {
 public:
  TinyProgram();

  step::StepBuilder b;
  step::ModuleId root;
  std::string device = "cpu";  // of storages made from here on
  step::ArgsId args;           // of ops made from here on
  std::int64_t flops = 0;      // the same

  step::ModuleId module(step::ModuleId parent, std::string_view name, std::string_view type);
  step::TensorId resident(step::Role role, std::int64_t bytes);
  void pass(step::PassKind kind, std::uint32_t micro_batch = 0);
  step::CallId enter(step::ModuleId module, const std::vector<step::TensorId>& inputs);
  void exit(step::CallId call, const std::vector<step::TensorId>& outputs);

  // begin, alloc, end; the last op and the new tensor.
  step::TensorId op(std::string_view name, const std::vector<step::TensorId>& inputs, std::int64_t bytes,
                    step::OpFlags flags = {});
  step::TensorId view(step::TensorId input);
  step::TensorId change(step::TensorId input, step::OpFlags flags = {});  // in place
  // An op with the outputs given, of which the fresh ones are allocated.
  step::OpId run(std::string_view name, const std::vector<step::TensorId>& inputs,
                 const std::vector<step::Output>& outputs, step::OpFlags flags = {});
  step::TensorId fresh(std::int64_t bytes);  // a tensor for run()

  step::SaveId pack(step::TensorId tensor, bool hooked = true);
  void free(step::TensorId tensor) { b.free(storage(tensor)); }
  // One backward node: unpacks, runs an op that makes `bytes`, drops, is done, then releases.
  step::TensorId backward(const std::vector<step::SaveId>& saves, std::int64_t bytes);

  step::StorageId storage(step::TensorId tensor) const { return b.tables().tensors[tensor.index()].storage; }
  step::OpId last_op() const { return last_op_; }
  step::Step finish() { return std::move(b).finish(); }

 private:
  step::TensorId tensor(step::StorageId storage, std::uint32_t version, bool is_view);

  step::PassId pass_;
  step::OpId last_op_;
  std::vector<step::CallId> calls_;
};

}  // namespace tidemark::test
