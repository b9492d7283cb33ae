#include "tidemark/nn/training.h"

#include "tidemark/nn/optimizer.h"
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
void make_gradients(Net& net, const std::vector<Tensor>& parameters) {
  for (const Tensor& p : parameters) {
    Tensor grad = net.rt.leaf(p.dtype(), p.sizes(), p.strides(), false);
    net.rt.recorder().know(*grad->storage, step::Role::kGradient, p->storage);
    auto node = std::make_shared<ops::GradNode>();
    node->name = "torch::autograd::AccumulateGrad";
    node->sequence = UINT64_MAX;
    node->leaf = p.get();
    node->outputs = {{p.dtype(), p.sizes(), p.strides()}};
    node->grad = std::move(grad);
    p->accumulator = std::move(node);
  }
}

}  // namespace

step::Step record_step(Net& net, const std::vector<Tensor>& inputs, const std::function<Tensor()>& forward,
                       const Training& training) {
  fake::Recorder& recorder = net.rt.recorder();
  std::vector<Tensor> parameters = net.parameters();
  add_rows(net);
  for (const Tensor& p : parameters) recorder.know(*p->storage, step::Role::kParameter, nullptr);
  for (const Tensor& b : net.buffers()) recorder.know(*b->storage, step::Role::kBuffer, nullptr);
  Optimizer optimizer(net, training, parameters);
  make_gradients(net, parameters);
  for (const Tensor& t : inputs) recorder.know(*t->storage, step::Role::kInput, nullptr);
  recorder.gradients = gradients_of;
  recorder.gradients_of = &parameters;
  recorder.begin();
  add_bindings(net);

  for (const Tensor& p : parameters) p->accumulator->grad.reset();  // zero_grad
  Tensor loss = forward();
  net.rt.backward(loss);
  if (training.optimizer != OptimizerKind::kNone) optimizer.step();
  loss.reset();
  recorder.builder().add_meta("recorded by", "tidemark " TIDEMARK_VERSION);
  return std::move(recorder).end();
}

}  // namespace tidemark::nn
