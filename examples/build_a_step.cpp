// Records, by hand, one training step of a two-layer perceptron and writes it to the file named on the command line:
//
//   model = Sequential(Linear(8, 16), ReLU(), Linear(16, 4)); loss = mse_loss(model(x), y); SGD, batch of 2
//
// It shows every kind of call a recorder makes on a StepBuilder. The ops, their order and what autograd saves are
// those of PyTorch 2.13.0 on a CPU (a Python test compares them), less the detach ops, which move no data. The result
// ships as examples/steps/two_layer_mlp.step.jsonl.

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tidemark/step/step_builder.h"
#include "tidemark/step/write_step.h"

using namespace tidemark::step;

namespace {

using Dims = std::vector<std::int64_t>;

std::int64_t count(const Dims& sizes) {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes) n *= size;
  return n;
}

Dims contiguous(const Dims& sizes) {
  Dims strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

// Keeps what the functions below share: the pass, call and node that ops belong to.
struct Recorder {
  StepBuilder b;
  PassId pass;
  CallId call;
  NodeId node;

  StorageId storage(const Dims& sizes, Role role, StorageId of = {}) {
    return b.add_storage({.bytes = 4 * count(sizes), .device = b.intern("cpu"), .role = role, .of = of});
  }

  TensorId tensor(StorageId storage, const Dims& sizes, const Dims& strides, bool is_view, std::uint32_t version = 0) {
    return b.add_tensor({.storage = storage,
                         .version = version,
                         .layout = b.intern_layout(DType::kFloat32, sizes, strides),
                         .offset = 0,
                         .is_view = is_view});
  }

  TensorId resident(const Dims& sizes, Role role) {
    return tensor(storage(sizes, role), sizes, contiguous(sizes), false);
  }

  StorageId storage_of(TensorId id) const { return b.tables().tensors[id.index()].storage; }

  void run(const char* name, const std::vector<TensorId>& inputs, const std::vector<Output>& outputs, ArgList args = {},
           std::int64_t flops = 0) {
    const OpId op = b.add_op({.name = name,
                              .pass = pass,
                              .call = call,
                              .node = node,
                              .region = {},
                              .inputs = inputs,
                              .outputs = outputs,
                              .args = b.intern_args(std::move(args)),
                              .source = {},
                              .group = {},
                              .flags = {},
                              .stream = 0,
                              .flops = flops});
    b.begin(op);
    for (const Output& out : outputs)
      if (out.alias == AliasKind::kFresh) b.alloc(storage_of(out.tensor));
    b.end(op);
  }

  // An op that makes one new tensor.
  TensorId make(const char* name, const std::vector<TensorId>& inputs, const Dims& sizes, std::int64_t flops = 0,
                ArgList args = {}) {
    const TensorId out = tensor(storage(sizes, Role::kPlain), sizes, contiguous(sizes), false);
    run(name, inputs, {{out, AliasKind::kFresh, 0}}, std::move(args), flops);
    return out;
  }

  TensorId view(const char* name, TensorId input, const Dims& sizes, const Dims& strides, ArgList args = {}) {
    const std::uint32_t version = b.tables().tensors[input.index()].version;
    const TensorId out = tensor(storage_of(input), sizes, strides, true, version);
    run(name, {input}, {{out, AliasKind::kView, 0}}, std::move(args));
    return out;
  }

  TensorId transpose(TensorId input, const Dims& sizes, const Dims& strides) {
    return view("aten.t.default", input, sizes, strides);
  }

  SaveId save(NodeId saver, std::uint32_t slot, TensorId saved) {
    const SaveId id = b.add_save({.node = saver, .slot = slot, .tensor = saved, .hooked = true});
    b.pack(id);
    return id;
  }

  NodeId make_node(const char* name, std::int64_t sequence) {
    return b.add_node({.name = b.intern(name), .sequence = sequence, .pass = pass});
  }

  void start_pass(PassKind kind) {
    pass = b.add_pass({.kind = kind, .micro_batch = 0, .graph_task = 0, .rank = 0});
    call = {};
    node = {};
    b.phase(pass);
  }

  CallId enter(ModuleId module, CallId parent, TensorId input) {
    call = b.add_call({.module = module, .parent = parent, .index = 0, .pass = pass, .inputs = std::span(&input, 1)});
    b.enter(call);
    return call;
  }

  void exit(CallId which, CallId parent, TensorId output) {
    b.set_call_outputs(which, std::span(&output, 1));
    b.exit(which);
    call = parent;
  }

  Arg arg(const char* name, ArgValue value) { return {b.intern(name), std::move(value)}; }
};

// What one linear layer leaves behind for the rest of the step.
struct Linear {
  ModuleId module;
  TensorId weight;
  TensorId bias;
  std::int64_t in = 0;
  std::int64_t out = 0;
  CallId call;
  NodeId node;
  std::vector<SaveId> saves;
  TensorId weight_gradient;
  TensorId bias_gradient;
};

constexpr std::int64_t kBatch = 2;

Linear make_linear(Recorder& r, ModuleId root, const char* name, std::int64_t in, std::int64_t out) {
  Linear linear;
  linear.in = in;
  linear.out = out;
  linear.module = r.b.add_module({.parent = root, .name = r.b.intern(name), .type = r.b.intern("Linear")});
  linear.weight = r.resident({out, in}, Role::kParameter);
  linear.bias = r.resident({out}, Role::kParameter);
  r.b.add_binding({linear.module, r.b.intern("weight"), linear.weight, BindingKind::kParameter, true});
  r.b.add_binding({linear.module, r.b.intern("bias"), linear.bias, BindingKind::kParameter, true});
  return linear;
}

// y = x W^T + b. Autograd keeps x for the weight's gradient, and W^T only when x itself needs a gradient.
TensorId forward(Recorder& r, Linear& linear, CallId parent, TensorId x, bool x_needs_gradient, std::int64_t sequence) {
  linear.call = r.enter(linear.module, parent, x);
  const TensorId transposed = r.transpose(linear.weight, {linear.in, linear.out}, {1, linear.in});
  linear.node = r.make_node("AddmmBackward0", sequence);
  linear.saves.push_back(r.save(linear.node, 0, x));  // inputs are packed before the op runs
  if (x_needs_gradient) linear.saves.push_back(r.save(linear.node, 1, transposed));
  r.node = linear.node;
  const TensorId y = r.make("aten.addmm.default", {linear.bias, x, transposed}, {kBatch, linear.out},
                            2 * kBatch * linear.in * linear.out);
  r.node = {};
  r.exit(linear.call, parent, y);
  return y;
}

// The gradients of a linear layer from that of its output, in the order in which PyTorch's engine makes them.
// Returns the gradient of x, when there is one.
TensorId backward(Recorder& r, Linear& linear, TensorId grad, TensorId x, bool x_needs_gradient) {
  const std::int64_t flops = 2 * kBatch * linear.in * linear.out;
  r.call = linear.call;
  r.node = linear.node;
  r.b.node(linear.node);
  for (const SaveId save : linear.saves) r.b.unpack(save);
  TensorId grad_x;
  if (x_needs_gradient) {
    const TensorId saved = r.b.tables().saves[linear.saves[1].index()].tensor;
    const TensorId weight = r.transpose(saved, {linear.out, linear.in}, {linear.in, 1});
    grad_x = r.make("aten.mm.default", {grad, weight}, {kBatch, linear.in}, flops);
  }
  const TensorId grad_t = r.transpose(grad, {linear.out, kBatch}, {1, linear.out});
  const TensorId product = r.make("aten.mm.default", {grad_t, x}, {linear.out, linear.in}, flops);
  const TensorId product_t = r.transpose(product, {linear.in, linear.out}, {1, linear.in});
  for (std::size_t i = linear.saves.size(); i-- > 0;) r.b.drop(linear.saves[i]);
  r.b.done(linear.node);

  r.node = {};  // the engine itself fits the bias's gradient to its shape
  const TensorId sum = r.make("aten.sum.dim_IntList", {grad}, {1, linear.out}, 0,
                              {r.arg("dim", {ArgValue::List{{std::int64_t{0}}}}), r.arg("keepdim", {true})});
  linear.bias_gradient =
      r.view("aten.view.default", sum, {linear.out}, {1}, {r.arg("size", {ArgValue::List{{linear.out}}})});
  r.b.free(r.storage_of(grad));
  for (const SaveId save : linear.saves) r.b.release(save);
  linear.weight_gradient = r.transpose(product_t, {linear.out, linear.in}, {linear.in, 1});
  r.b.set_storage_role(r.storage_of(sum), Role::kGradient, r.storage_of(linear.bias));
  r.b.set_storage_role(r.storage_of(product), Role::kGradient, r.storage_of(linear.weight));
  return grad_x;
}

void update(Recorder& r, TensorId parameter, TensorId gradient) {
  const Tensor old = r.b.tables().tensors[parameter.index()];
  const TensorId updated = r.b.add_tensor({old.storage, old.version + 1, old.layout, 0, false});
  r.run("aten.add_.Tensor", {parameter, gradient}, {{updated, AliasKind::kMutates, 0}}, {r.arg("alpha", {-0.1})});
}

Step record() {
  Recorder r;
  r.b.add_meta("recorded_by", "examples/build_a_step.cpp");
  r.b.add_meta("model", "Sequential(Linear(8, 16), ReLU(), Linear(16, 4))");
  const ModuleId root = r.b.add_module({.parent = {}, .name = r.b.intern(""), .type = r.b.intern("Sequential")});
  Linear first = make_linear(r, root, "0", 8, 16);
  const ModuleId relu = r.b.add_module({.parent = root, .name = r.b.intern("1"), .type = r.b.intern("ReLU")});
  Linear second = make_linear(r, root, "2", 16, 4);
  const TensorId x = r.resident({kBatch, 8}, Role::kInput);
  const TensorId y = r.resident({kBatch, 4}, Role::kInput);

  // The gradients of the step before are there until zero_grad() lets them go.
  std::vector<StorageId> old_gradients;
  for (const Linear* linear : {&first, &second}) {
    old_gradients.push_back(r.storage({linear->out, linear->in}, Role::kGradient, r.storage_of(linear->weight)));
    old_gradients.push_back(r.storage({linear->out}, Role::kGradient, r.storage_of(linear->bias)));
  }

  r.start_pass(PassKind::kForward);
  for (const StorageId gradient : old_gradients) r.b.free(gradient);
  const CallId model = r.enter(root, {}, x);
  const TensorId hidden = forward(r, first, model, x, false, 0);
  const CallId relu_call = r.enter(relu, model, hidden);
  const NodeId relu_node = r.make_node("ReluBackward0", 1);
  r.node = relu_node;
  const TensorId active = r.make("aten.relu.default", {hidden}, {kBatch, 16});
  r.node = {};
  const SaveId relu_save = r.save(relu_node, 0, active);
  r.exit(relu_call, model, active);
  r.b.free(r.storage_of(hidden));
  const TensorId out = forward(r, second, model, active, true, 2);
  r.b.free(r.storage_of(active));  // autograd holds it on
  r.exit(model, {}, out);

  r.start_pass(PassKind::kLoss);
  const NodeId loss_node = r.make_node("MseLossBackward0", 3);
  const std::vector<SaveId> loss_saves = {r.save(loss_node, 0, out), r.save(loss_node, 1, y)};
  r.node = loss_node;
  // The kernel squares element by element into what becomes the loss and then shrinks it: the storage stays as large.
  const TensorId loss = r.tensor(r.storage({kBatch, 4}, Role::kPlain), {}, {}, false);
  r.run("aten.mse_loss.default", {out, y}, {{loss, AliasKind::kFresh, 0}});
  r.b.free(r.storage_of(out));

  r.start_pass(PassKind::kBackward);
  const TensorId one = r.make("aten.ones_like.default", {loss}, {});
  r.node = loss_node;
  r.b.node(loss_node);
  for (const SaveId save : loss_saves) r.b.unpack(save);
  const TensorId grad_out =
      r.make("aten.mse_loss_backward.default", {one, out, y}, {kBatch, 4}, 0, {r.arg("reduction", {std::int64_t{1}})});
  for (std::size_t i = loss_saves.size(); i-- > 0;) r.b.drop(loss_saves[i]);
  r.b.done(loss_node);
  for (const SaveId save : loss_saves) r.b.release(save);
  const TensorId grad_active = backward(r, second, grad_out, active, true);

  r.call = relu_call;
  r.node = relu_node;
  r.b.node(relu_node);
  r.b.unpack(relu_save);
  const TensorId grad_hidden = r.make("aten.threshold_backward.default", {grad_active, active}, {kBatch, 16}, 0,
                                      {r.arg("threshold", {std::int64_t{0}})});
  r.b.drop(relu_save);
  r.b.done(relu_node);
  r.b.free(r.storage_of(grad_active));
  r.b.release(relu_save);
  backward(r, first, grad_hidden, x, false);
  r.b.free(r.storage_of(one));

  r.start_pass(PassKind::kOptimizer);
  for (const Linear* linear : {&first, &second}) {
    update(r, linear->weight, linear->weight_gradient);
    update(r, linear->bias, linear->bias_gradient);
  }
  r.b.free(r.storage_of(loss));
  return std::move(r.b).finish();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s OUTPUT.step.jsonl\n", argv[0]);
    return 2;
  }
  try {
    write_step(record(), argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
