#include "tidemark/nn/training.h"

#include <fmt/format.h>

#include "tidemark/base/error.h"
#include "tidemark/nn/optimizer.h"
#include "tidemark/ops/aten.h"
#include "tidemark/ops/autograd.h"
#include "tidemark/version.h"

namespace tidemark::nn {

namespace {

using Pairs = std::vector<std::pair<const Tensor*, const Tensor*>>;

// Parameters that have a gradient, with it.
Pairs gradients_of(void* parameters) {
  Pairs pairs;
  for (const Tensor& p : *static_cast<const std::vector<Tensor>*>(parameters))
    if (p->accumulator != nullptr && p->accumulator->grad) pairs.emplace_back(&p, &p->accumulator->grad);
  return pairs;
}

void add_rows(Net& net) {
  step::StepBuilder& builder = net.rt.recorder().builder();
  for (const Net::ModuleRow& module : net.modules())
    builder.add_module({module.parent, builder.intern(module.name), builder.intern(module.type)});
}

void add_bindings(Net& net) {
  fake::Recorder& recorder = net.rt.recorder();
  for (const Net::Binding& b : net.bindings())
    recorder.builder().add_binding({b.module, recorder.builder().intern(b.name), recorder.tensor(b.tensor), b.kind,
                                    b.kind == step::BindingKind::kParameter && b.tensor->requires_grad});
}

// The gradients that the step before left.
void make_gradients(Net& net, const std::vector<Tensor>& parameters, const std::vector<LeftGradient>& left) {
  std::size_t trained = 0;
  for (const Tensor& p : parameters) {
    if (!p->requires_grad) continue;
    Tensor grad = net.rt.leaf(p.dtype(), p.sizes(), p.strides(), false);
    if (!left.empty()) {
      grad->strides = left[trained].strides;
      grad->offset = left[trained].offset;
      grad->storage->bytes = left[trained].storage_bytes;
    }
    ++trained;
    net.rt.recorder().know(*grad->storage, step::Role::kGradient, p->storage);
    auto node = std::make_shared<ops::GradNode>();
    node->name = "torch::autograd::AccumulateGrad";
    node->sequence = UINT64_MAX;
    node->leaf = p.get();
    node->outputs = {ops::Meta(p)};
    node->grad = std::move(grad);
    p->accumulator = std::move(node);
  }
}

// The loss of one micro-batch; the one before dies while autocast is still on.
void run_forward(Runtime& rt, const std::function<Tensor()>& forward, const Training& training, Tensor& loss) {
  static const ops::Op div("aten.div.Tensor");
  std::optional<fake::Autocast> autocast;
  if (training.autocast) autocast.emplace(rt, *training.autocast);
  Tensor fresh = forward();
  if (training.micro_batches != 1) fresh = div(rt, {{"self", fresh}, {"other", training.micro_batches}});
  loss = std::move(fresh);
}

// As torch.nn.utils.clip_grad_norm_ with the norms of all gradients in one list op.
void clip_gradients(Runtime& rt, const std::vector<Tensor>& parameters, double largest) {
  static const ops::Op norms_of("aten._foreach_norm.Scalar");
  static const ops::Op stack("aten.stack.default");
  static const ops::Op norm("aten.linalg_vector_norm.default");
  static const ops::Op reciprocal("aten.reciprocal.default");
  static const ops::Op clamp("aten.clamp.default");
  static const ops::Op scale("aten._foreach_mul_.Tensor");
  const fake::NoGrad no_grad(rt);
  std::vector<Tensor> gradients;
  for (const Tensor& p : parameters)
    if (p->requires_grad) gradients.push_back(p->accumulator->grad);
  Tensor total;
  {
    std::vector<Tensor> norms = norms_of.all(rt, {{"self", gradients}, {"ord", 2.0}});
    Tensor joined = stack(rt, {{"tensors", norms}});
    total = norm(rt, {{"self", joined}, {"ord", 2.0}});
    joined.reset();
    while (!norms.empty()) norms.pop_back();  // a list lets go from its end
  }
  Tensor factor;
  {
    Tensor sum = ops::add(rt, total, 1e-6);
    Tensor inverse = reciprocal(rt, {{"self", sum}});
    factor = ops::mul(rt, inverse, largest);
    ops::drop(inverse, sum);
  }
  Tensor bounded = clamp(rt, {{"self", factor}, {"min", ops::None{}}, {"max", 1.0}});
  scale.none(rt, {{"self", gradients}, {"other", bounded}});
  ops::drop(factor, bounded, total);
}

// A parameter that no loss reaches has no gradient and no optimizer state; whether it is one is known too late here.
void require_gradients(const Net& net) {
  for (const Net::Binding& b : net.bindings()) {
    if (b.kind != step::BindingKind::kParameter || !b.tensor->requires_grad || b.tensor->accumulator->grad) continue;
    std::string name = b.name;
    for (step::ModuleId m = b.module; m.has_value(); m = net.modules()[m.index()].parent)
      if (!net.modules()[m.index()].name.empty()) name = fmt::format("{}.{}", net.modules()[m.index()].name, name);
    throw Error({.kind = ErrorKind::kInput,
                 .place = name,
                 .problem = "the loss does not depend on this parameter",
                 .expected = {},
                 .got = {},
                 .remedy = "leave it out of the net, or freeze it (requires_grad = false)"});
  }
}

}  // namespace

step::Step record_step(Net& net, const std::vector<Tensor>& inputs, const std::function<Tensor()>& forward,
                       const Training& training) {
  std::vector<LeftGradient> left;
  return record_step(net, inputs, forward, training, left);
}

step::Step record_step(Net& net, const std::vector<Tensor>& inputs, const std::function<Tensor()>& forward,
                       const Training& training, std::vector<LeftGradient>& left) {
  fake::Recorder& recorder = net.rt.recorder();
  std::vector<Tensor> parameters = net.parameters();
  add_rows(net);
  for (const Tensor& p : parameters) recorder.know(*p->storage, step::Role::kParameter, nullptr);
  for (const Tensor& b : net.buffers()) recorder.know(*b->storage, step::Role::kBuffer, nullptr);
  Optimizer optimizer(net, training, parameters);
  make_gradients(net, parameters, left);
  for (const Tensor& t : inputs) recorder.know(*t->storage, step::Role::kInput, nullptr);
  recorder.gradients = gradients_of;
  recorder.gradients_of = &parameters;
  recorder.begin();
  add_bindings(net);

  for (const Tensor& p : parameters)
    if (p->requires_grad) p->accumulator->grad.reset();  // zero_grad
  Tensor loss;
  for (std::int64_t i = 0; i < training.micro_batches; ++i) {
    run_forward(net.rt, forward, training, loss);
    net.rt.backward(loss);
  }
  require_gradients(net);
  if (training.clip_norm > 0) clip_gradients(net.rt, parameters, training.clip_norm);
  if (training.optimizer != OptimizerKind::kNone) optimizer.step();
  loss.reset();
  left.clear();
  for (const Tensor& p : parameters) {
    if (!p->requires_grad) continue;
    const Tensor& grad = p->accumulator->grad;
    const std::int64_t own_bytes = ops::bytes_of(p.dtype(), p.sizes(), p.strides());
    left.push_back({grad->storage->bytes, grad.strides(), grad->offset, grad->storage->bytes == own_bytes});
  }
  recorder.builder().add_meta("recorded by", "tidemark " TIDEMARK_VERSION);
  return std::move(recorder).end();
}

}  // namespace tidemark::nn
