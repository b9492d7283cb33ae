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

const Tensor& grad_of(const Tensor& parameter) { return parameter->accumulator->grad; }

}  // namespace

Optimizer::Optimizer(Net& net, const Training& training, const std::vector<Tensor>& parameters)
    : rt_(net.rt), training_(training) {
  const auto state = [&](const Tensor& parameter, DType dtype, const Dims& sizes) {
    Tensor t = rt_.leaf(dtype, sizes, false);
    rt_.recorder().know(*t->storage, step::Role::kOptimizerState, parameter->storage);
    return t;
  };
  if (training.optimizer == OptimizerKind::kNone) return;
  for (const Tensor& p : parameters) {
    Slot slot{.parameter = p, .step = {}, .first = {}, .second = {}};
    if (is_adam(training.optimizer)) {
      slot.step = state(p, DType::kFloat32, {});
      slot.first = state(p, p.dtype(), p.sizes());
      slot.second = state(p, p.dtype(), p.sizes());
    } else if (training.optimizer == OptimizerKind::kMomentum) {
      slot.first = state(p, p.dtype(), p.sizes());
    }
    slots_.push_back(std::move(slot));
  }
}

void Optimizer::step() {
  rt_.recorder().optimizer_starts();
  {
    const fake::NoGrad no_grad(rt_);
    if (is_adam(training_.optimizer)) {
      adam_for_loop();
    } else if (training_.optimizer != OptimizerKind::kNone) {
      sgd_for_loop();
    }
  }
  rt_.recorder().optimizer_ends();
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
    const Tensor& grad = grad_of(s.parameter);
    add_.none(rt_, {{"self", s.step}, {"other", 1}});
    if (training_.optimizer == OptimizerKind::kAdamW) mul_.none(rt_, {{"self", s.parameter}, {"other", n.decay}});
    lerp_.none(rt_, {{"self", s.first}, {"end", grad}, {"weight", 1 - kBeta1}});
    mul_.none(rt_, {{"self", s.second}, {"other", kBeta2}});
    addcmul_.none(rt_, {{"self", s.second}, {"tensor1", grad}, {"tensor2", grad}, {"value", 1 - kBeta2}});
    Tensor fresh = ops::sqrt(rt_, s.second);
    fresh = ops::div(rt_, fresh, n.correction2_sqrt);
    add_.none(rt_, {{"self", fresh}, {"other", kEpsilon}});
    denominator = std::move(fresh);
    addcdiv_.none(rt_,
                  {{"self", s.parameter}, {"tensor1", s.first}, {"tensor2", denominator}, {"value", -n.step_size}});
  }
}

void Optimizer::sgd_for_loop() {
  static const Op add_("aten.add_.Tensor");
  static const Op mul_("aten.mul_.Tensor");
  for (const Slot& s : slots_) {
    const Tensor& grad = grad_of(s.parameter);
    if (s.first) {
      mul_.none(rt_, {{"self", s.first}, {"other", kMomentum}});
      add_.none(rt_, {{"self", s.first}, {"other", grad}});
    }
    add_.none(rt_, {{"self", s.parameter}, {"other", s.first ? s.first : grad}, {"alpha", -kLearningRate}});
  }
}

}  // namespace tidemark::nn
