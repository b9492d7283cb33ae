#include "tidemark/nn/optimizer.h"

#include <cmath>

#include "tidemark/ops/aten.h"
#include "tidemark/ops/autograd.h"

namespace tidemark::nn {

using ops::Op;

namespace {

// Defaults of torch.optim (2.13): Adam, AdamW, SGD with momentum 0.9.
constexpr double kLearningRate = 1e-3;
constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;
constexpr double kWeightDecay = 0.01;
constexpr double kMomentum = 0.9;
constexpr double kStep = 2;

struct AdamNumbers {
  double decay = 1 - kLearningRate * kWeightDecay;
  double step_size = kLearningRate / (1 - std::pow(kBeta1, kStep));
  double correction2_sqrt = std::pow(1 - std::pow(kBeta2, kStep), 0.5);
};

bool is_adam(OptimizerKind kind) { return kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamW; }

}  // namespace

Optimizer::Optimizer(Net& net, const Training& training, const std::vector<Tensor>& parameters)
    : rt_(net.rt), training_(training) {
  if (training_.form == OptimizerForm::kAuto)
    training_.form = rt_.target() == Target::kCuda ? OptimizerForm::kForeach : OptimizerForm::kForLoop;
  const auto state = [&](const Tensor& parameter, DType dtype, const Dims& sizes) {
    Tensor t = rt_.leaf(dtype, sizes, false);
    rt_.recorder().know(*t->storage, step::Role::kOptimizerState, parameter->storage);
    return t;
  };
  if (training.optimizer == OptimizerKind::kNone) return;
  for (const Tensor& p : parameters) {
    if (!p->requires_grad) continue;
    Slot slot{.parameter = p, .updated = p, .grad = {}, .step = {}, .first = {}, .second = {}};
    const bool has_master = training.master_copy && p.dtype() != DType::kFloat32;
    const DType type = has_master ? DType::kFloat32 : p.dtype();
    if (is_adam(training.optimizer)) {
      slot.step = state(p, DType::kFloat32, {});
      slot.first = state(p, type, p.sizes());
      slot.second = state(p, type, p.sizes());
    } else if (training.optimizer == OptimizerKind::kMomentum) {
      slot.first = state(p, type, p.sizes());
    }
    if (has_master) slot.updated = state(p, type, p.sizes());
    slots_.push_back(std::move(slot));
  }
}

void Optimizer::step() {
  rt_.recorder().optimizer_starts();
  {
    const fake::NoGrad no_grad(rt_);
    const bool adam = is_adam(training_.optimizer);
    for (Slot& s : slots_) {
      const Tensor& grad = s.parameter->accumulator->grad;
      s.grad = s.updated.is(s.parameter) ? grad : ops::to_dtype(rt_, grad, DType::kFloat32);
    }
    switch (training_.form) {
      case OptimizerForm::kAuto:  // settled when the optimizer was made
      case OptimizerForm::kForLoop:
        adam ? adam_for_loop() : sgd_for_loop();
        break;
      case OptimizerForm::kForeach:
        adam ? adam_foreach() : sgd_foreach();
        break;
      case OptimizerForm::kFused:
        adam ? adam_fused() : sgd_fused();
        break;
    }
    copy_back();
  }
  rt_.recorder().optimizer_ends();
}

// Parameters get what their master copies have become.
void Optimizer::copy_back() {
  static const Op copy("aten._foreach_copy_.default");
  std::vector<Tensor> parameters;
  std::vector<Tensor> masters;
  for (const Slot& s : slots_) {
    if (s.updated.is(s.parameter)) continue;
    parameters.push_back(s.parameter);
    masters.push_back(s.updated);
  }
  if (!masters.empty()) copy.none(rt_, {{"self", parameters}, {"src", masters}});
  for (std::size_t i = slots_.size(); i-- > 0;) slots_[i].grad.reset();  // a list lets go from its end
}

void Optimizer::adam_for_loop() {
  static const Op add_("aten.add_.Tensor");
  static const Op mul_("aten.mul_.Tensor");
  static const Op lerp_("aten.lerp_.Scalar");
  static const Op addcmul_("aten.addcmul_.default");
  static const Op addcdiv_("aten.addcdiv_.default");
  const AdamNumbers n;
  Tensor denominator;
  for (const Slot& s : slots_) {
    const Tensor& grad = s.grad;
    add_.none(rt_, {{"self", s.step}, {"other", 1}});
    if (training_.optimizer == OptimizerKind::kAdamW) mul_.none(rt_, {{"self", s.updated}, {"other", n.decay}});
    lerp_.none(rt_, {{"self", s.first}, {"end", grad}, {"weight", 1 - kBeta1}});
    mul_.none(rt_, {{"self", s.second}, {"other", kBeta2}});
    addcmul_.none(rt_, {{"self", s.second}, {"tensor1", grad}, {"tensor2", grad}, {"value", 1 - kBeta2}});
    ops::read_by_host(rt_, s.step);  // for the bias corrections
    Tensor fresh = ops::sqrt(rt_, s.second);
    fresh = ops::div(rt_, fresh, n.correction2_sqrt);
    add_.none(rt_, {{"self", fresh}, {"other", kEpsilon}});
    denominator = std::move(fresh);
    addcdiv_.none(rt_, {{"self", s.updated}, {"tensor1", s.first}, {"tensor2", denominator}, {"value", -n.step_size}});
  }
}

std::vector<Tensor> Optimizer::list(Tensor Slot::*member) const {
  std::vector<Tensor> tensors;
  for (const Slot& s : slots_)
    if (s.*member) tensors.push_back(s.*member);
  return tensors;
}

void Optimizer::adam_foreach() {
  static const Op lift("aten.lift_fresh.default");
  static const Op add_tensor("aten._foreach_add_.Tensor");
  static const Op add_scalar("aten._foreach_add_.Scalar");
  static const Op mul_("aten._foreach_mul_.Scalar");
  static const Op lerp_("aten._foreach_lerp_.Scalar");
  static const Op addcmul_("aten._foreach_addcmul_.Scalar");
  static const Op sqrt_op("aten._foreach_sqrt.default");
  static const Op div_("aten._foreach_div_.ScalarList");
  static const Op addcdiv_("aten._foreach_addcdiv_.ScalarList");
  const AdamNumbers n;
  const std::vector<Tensor> parameters = list(&Slot::updated);
  const std::vector<Tensor> steps = list(&Slot::step);
  const std::vector<Tensor> first = list(&Slot::first);
  const std::vector<Tensor> second = list(&Slot::second);
  const std::vector<Tensor> grads = list(&Slot::grad);
  {
    const Tensor one = lift(rt_, {});
    add_tensor.none(rt_, {{"self", steps}, {"other", one}, {"alpha", 1.0}});
  }
  if (training_.optimizer == OptimizerKind::kAdamW) mul_.none(rt_, {{"self", parameters}, {"scalar", n.decay}});
  lerp_.none(rt_, {{"self", first}, {"tensors1", grads}, {"weight", 1 - kBeta1}});
  mul_.none(rt_, {{"self", second}, {"scalar", kBeta2}});
  addcmul_.none(rt_, {{"self", second}, {"tensor1", grads}, {"tensor2", grads}, {"value", 1 - kBeta2}});
  for (int correction = 0; correction < 2; ++correction)
    for (const Tensor& step : steps) ops::read_by_host(rt_, step);
  std::vector<Tensor> denominators = sqrt_op.all(rt_, {{"self", second}});
  const std::vector<double> corrections(slots_.size(), n.correction2_sqrt);
  const std::vector<double> step_sizes(slots_.size(), -n.step_size);
  div_.none(rt_, {{"self", denominators}, {"scalars", corrections}});
  add_scalar.none(rt_, {{"self", denominators}, {"scalar", kEpsilon}});
  addcdiv_.none(rt_, {{"self", parameters}, {"tensor1", first}, {"tensor2", denominators}, {"scalars", step_sizes}});
  while (!denominators.empty()) denominators.pop_back();  // a list lets go from its end
}

void Optimizer::adam_fused() {
  static const Op add_("aten._foreach_add_.Scalar");
  static const Op adamw("aten._fused_adamw_.default");
  static const Op adam("aten._fused_adam_.default");
  const std::vector<Tensor> parameters = list(&Slot::updated);
  const std::vector<Tensor> steps = list(&Slot::step);
  const std::vector<Tensor> first = list(&Slot::first);
  const std::vector<Tensor> second = list(&Slot::second);
  const std::vector<Tensor> grads = list(&Slot::grad);
  const bool decays = training_.optimizer == OptimizerKind::kAdamW;
  add_.none(rt_, {{"self", steps}, {"scalar", 1}});
  (decays ? adamw : adam)
      .none(rt_, {{"self", parameters},
                  {"grads", grads},
                  {"exp_avgs", first},
                  {"exp_avg_sqs", second},
                  {"max_exp_avg_sqs", Dims{}},
                  {"state_steps", steps},
                  {"lr", kLearningRate},
                  {"beta1", kBeta1},
                  {"beta2", kBeta2},
                  {"weight_decay", decays ? kWeightDecay : 0.0},
                  {"eps", kEpsilon},
                  {"amsgrad", false},
                  {"maximize", false}});
}

void Optimizer::sgd_foreach() {
  static const Op mul_("aten._foreach_mul_.Scalar");
  static const Op add_("aten._foreach_add_.List");
  const std::vector<Tensor> parameters = list(&Slot::updated);
  const std::vector<Tensor> buffers = list(&Slot::first);
  const std::vector<Tensor> grads = list(&Slot::grad);
  if (!buffers.empty()) {
    mul_.none(rt_, {{"self", buffers}, {"scalar", kMomentum}});
    add_.none(rt_, {{"self", buffers}, {"other", grads}});
  }
  const std::vector<Tensor>* used = buffers.empty() ? &grads : &buffers;
  add_.none(rt_, {{"self", parameters}, {"other", *used}, {"alpha", -kLearningRate}});
}

void Optimizer::sgd_fused() {
  static const Op op("aten._fused_sgd_.default");
  const std::vector<Tensor> parameters = list(&Slot::updated);
  const std::vector<Tensor> buffers = list(&Slot::first);
  const std::vector<Tensor> grads = list(&Slot::grad);
  const ops::Arg momentum =
      buffers.empty() ? ops::Arg("momentum_buffer_list", Dims{}) : ops::Arg("momentum_buffer_list", buffers);
  op.none(rt_, {{"self", parameters},
                {"grads", grads},
                momentum,
                {"weight_decay", 0.0},
                {"momentum", buffers.empty() ? 0.0 : kMomentum},
                {"lr", kLearningRate},
                {"dampening", 0.0},
                {"nesterov", false},
                {"maximize", false},
                {"is_first_step", false}});
}

void Optimizer::sgd_for_loop() {
  static const Op add_("aten.add_.Tensor");
  static const Op mul_("aten.mul_.Tensor");
  for (const Slot& s : slots_) {
    const Tensor& grad = s.grad;
    if (s.first) {
      mul_.none(rt_, {{"self", s.first}, {"other", kMomentum}});
      add_.none(rt_, {{"self", s.first}, {"other", grad}});
    }
    add_.none(rt_, {{"self", s.updated}, {"other", s.first ? s.first : grad}, {"alpha", -kLearningRate}});
  }
}

}  // namespace tidemark::nn
