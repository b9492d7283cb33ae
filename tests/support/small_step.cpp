#include "small_step.h"

namespace tidemark::test {

using namespace step;

SmallStep::SmallStep() {
  const std::int64_t sizes[] = {2, 2};
  const std::int64_t strides[] = {2, 1};
  root = b.add_module({{}, b.intern(""), b.intern("Net")});
  forward = b.add_pass({PassKind::kForward, 0, 0, 0});
  backward = b.add_pass({PassKind::kBackward, 0, 0, 0});
  layout = b.intern_layout(DType::kFloat32, sizes, strides);
  input_storage = b.add_storage({16, b.intern("cpu"), Role::kInput, {}});
  made_storage = b.add_storage({16, b.intern("cpu"), Role::kPlain, {}});
  gradient_storage = b.add_storage({16, b.intern("cpu"), Role::kPlain, {}});
  input = b.add_tensor({input_storage, 0, layout, 0, false});
  made = b.add_tensor({made_storage, 0, layout, 0, false});
  gradient = b.add_tensor({gradient_storage, 0, layout, 0, false});
  const TensorId given[] = {input};
  const TensorId returned[] = {made};
  call = b.add_call({root, {}, 0, forward, given});
  b.set_call_outputs(call, returned);
  node = b.add_node({b.intern("ExpBackward0"), 0, forward});
  const TensorId inputs[] = {input};
  const Output outputs[] = {{made, AliasKind::kFresh, 0}};
  op = b.add_op({.name = "aten.exp.default",
                 .pass = forward,
                 .call = call,
                 .node = node,
                 .region = {},
                 .inputs = inputs,
                 .outputs = outputs,
                 .args = {},
                 .source = {},
                 .group = {},
                 .flags = {}});
  const TensorId backward_inputs[] = {made};
  const Output backward_outputs[] = {{gradient, AliasKind::kFresh, 0}};
  backward_op = b.add_op({.name = "aten.mul.Tensor",
                          .pass = backward,
                          .call = call,
                          .node = node,
                          .region = {},
                          .inputs = backward_inputs,
                          .outputs = backward_outputs,
                          .args = {},
                          .source = {},
                          .group = {},
                          .flags = {}});
  save = b.add_save({node, 0, made, true});
}

void SmallStep::add_events() {
  b.phase(forward);
  b.enter(call);
  b.begin(op);
  b.alloc(made_storage);
  b.end(op);
  b.pack(save);
  b.exit(call);
  b.free(made_storage);
  b.phase(backward);
  b.node(node);
  b.unpack(save);
  b.begin(backward_op);
  b.alloc(gradient_storage);
  b.end(backward_op);
  b.drop(save);
  b.done(node);
  b.release(save);
}

}  // namespace tidemark::test
