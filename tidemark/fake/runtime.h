#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tidemark/fake/recorder.h"

namespace tidemark::fake {

// Which kernels a device offers. "cpu" and "cuda" make the choices that PyTorch makes there.
enum class Target { kCpu, kCuda };

// Which kernel attention takes. `kAuto` is what PyTorch chooses for the inputs on the target.
enum class AttentionKernel { kAuto, kMath, kFlash, kEfficient };

// Runs ops on tensors without data, builds the autograd graph as PyTorch does, and tells the recorder. One step, one
// Runtime.
//
//   Runtime rt(Target::kCpu);
//   Tensor w = rt.parameter({4, 4}, DType::kFloat32);
//   ...
//   rt.begin();  Tensor loss = ...;  rt.backward(loss);
//   step::Step step = std::move(rt).finish();
class Runtime final : public ops::Runner {
 public:
  explicit Runtime(Target target);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Target target() const { return target_; }
  AttentionKernel attention = AttentionKernel::kAuto;
  Recorder& recorder() { return recorder_; }

  void run(Call& call) override;
  Storage* new_storage(std::int64_t bytes) override;

  // A tensor that is there before the step. It is written down when the runtime is told its role.
  Tensor leaf(ops::DType dtype, const ops::Dims& sizes, bool requires_grad);
  Tensor leaf(ops::DType dtype, const ops::Dims& sizes, const ops::Dims& strides, bool requires_grad);

  // Runs the autograd graph of `loss` backward, with the gradient of ones that PyTorch starts from. Leaves get their
  // gradients.
  void backward(const Tensor& loss);

  bool grad_enabled() const { return recorder_.grad_enabled; }

  // The type that autocast lowers to; none: it is off, or an op that it has lowered is running.
  std::optional<ops::DType> autocast() const { return autocast_; }
  // What autocast keeps of a parameter that it has cast: empty, to be filled. Requires: autocast() is on.
  Tensor& cast_of(const Tensor& parameter);

 private:
  friend class Autocast;
  friend class AutocastOff;

  std::shared_ptr<GradNode> make_node(Call& call, Tensor& original);
  void refuse_lost_gradient(const Call& call) const;
  void attach(Call& call, std::shared_ptr<GradNode> node);
  ops::Edge edge_of(const Tensor& t);

  Target target_;
  Recorder recorder_;
  std::uint64_t sequence_ = 0;
  std::optional<ops::DType> autocast_;
  std::unordered_map<const ops::TensorData*, std::size_t> cast_index_;
  std::vector<Tensor> casts_;  // in the order in which they were made
};

// While it lives, ops that autocast knows run in the given type; as torch.autocast(dtype). Parameters are cast once.
class Autocast {
 public:
  Autocast(Runtime& rt, ops::DType dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  Runtime& rt_;
};

// While it lives, autocast lowers nothing: inside an op that it has lowered.
class AutocastOff {
 public:
  explicit AutocastOff(Runtime& rt) : rt_(rt), was_(std::exchange(rt.autocast_, std::nullopt)) {}
  ~AutocastOff() { rt_.autocast_ = was_; }
  AutocastOff(const AutocastOff&) = delete;
  AutocastOff& operator=(const AutocastOff&) = delete;

 private:
  Runtime& rt_;
  std::optional<ops::DType> was_;
};

// While it lives, no graph is built; as torch.no_grad().
class NoGrad {
 public:
  explicit NoGrad(Runtime& rt) : recorder_(rt.recorder()), was_(rt.recorder().grad_enabled) {
    recorder_.grad_enabled = false;
  }
  ~NoGrad() { recorder_.grad_enabled = was_; }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  Recorder& recorder_;
  bool was_;
};

// While it lives, some ops write in place unless somebody watches; around the functions of PyTorch that do so.
class Watchful {
 public:
  explicit Watchful(Runtime& rt) : recorder_(rt.recorder()) { ++recorder_.watchful; }
  ~Watchful() { --recorder_.watchful; }
  Watchful(const Watchful&) = delete;
  Watchful& operator=(const Watchful&) = delete;

 private:
  Recorder& recorder_;
};

}  // namespace tidemark::fake
