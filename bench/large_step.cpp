#include "large_step.h"

#include <fmt/format.h>

#include <vector>

#include "tidemark/step/step_builder.h"

namespace tidemark::bench {

namespace {

using namespace step;

constexpr std::size_t kForwardOps = 12;                    // per layer
constexpr std::size_t kOpsPerLayer = 3 * kForwardOps + 4;  // with two backward ops each and four optimizer ops

struct SavedOp {
  NodeId node;
  CallId call;
  std::vector<SaveId> saves;
  TensorId saved;
};

class LayerStack {
 public:
  explicit LayerStack(std::size_t layers) : layers_(layers) {}

  Step run() {
    layout_ = b_.intern_layout(DType::kFloat32, kSizes, kStrides);
    flat_ = b_.intern_layout(DType::kFloat32, kFlatSizes, kFlatStrides);
    source_ = b_.add_source({b_.intern("model.py"), 42, b_.intern("forward")});
    const ModuleId root = b_.add_module({{}, b_.intern(""), b_.intern("Model")});
    for (std::size_t i = 0; i < layers_; ++i) {
      modules_.push_back(b_.add_module({root, b_.intern(fmt::format("layer{}", i)), b_.intern("Block")}));
      weights_.push_back(add_tensor(Role::kParameter));
      b_.add_binding({modules_.back(), b_.intern("weight"), weights_.back(), BindingKind::kParameter, true});
    }
    forward(root);
    backward();
    optimizer();
    return std::move(b_).finish();
  }

 private:
  static constexpr std::int64_t kSizes[] = {8, 1024, 768};
  static constexpr std::int64_t kStrides[] = {786432, 768, 1};
  static constexpr std::int64_t kFlatSizes[] = {8192, 768};
  static constexpr std::int64_t kFlatStrides[] = {768, 1};

  TensorId add_tensor(Role role) {
    const StorageId storage = b_.add_storage({8 * 1024 * 768 * 4, b_.intern("cuda:0"), role, {}});
    return b_.add_tensor({storage, 0, layout_, 0, false});
  }

  StorageId storage_of(TensorId id) const { return b_.tables().tensors[id.index()].storage; }

  void start_pass(PassKind kind) {
    pass_ = b_.add_pass({kind, 0, 0, 0});
    b_.phase(pass_);
  }

  void run_op(std::string_view name, std::span<const TensorId> inputs, Output output, CallId call, NodeId node) {
    const OpId op = b_.add_op({.name = name,
                               .pass = pass_,
                               .call = call,
                               .node = node,
                               .region = {},
                               .inputs = inputs,
                               .outputs = std::span(&output, 1),
                               .args = {},
                               .source = source_,
                               .group = {},
                               .flags = {},
                               .stream = 0,
                               .flops = 9663676416,
                               .read_bytes = 50331648,
                               .written_bytes = 25165824});
    b_.begin(op);
    if (output.alias == AliasKind::kFresh) b_.alloc(storage_of(output.tensor));
    b_.end(op);
  }

  void forward(ModuleId root) {
    TensorId x = add_tensor(Role::kInput);
    start_pass(PassKind::kForward);
    const CallId model = b_.add_call({root, {}, 0, pass_});
    b_.enter(model);
    for (std::size_t i = 0; i < layers_; ++i) {
      const CallId call = b_.add_call({modules_[i], model, 0, pass_, std::span(&x, 1)});
      b_.enter(call);
      for (std::size_t k = 0; k < kForwardOps; ++k) x = forward_op(x, weights_[i], call, k);
      b_.set_call_outputs(call, std::span(&x, 1));
      b_.exit(call);
    }
    b_.exit(model);
  }

  // Every third op is a view; the others save their input and make a new tensor.
  TensorId forward_op(TensorId x, TensorId weight, CallId call, std::size_t k) {
    SavedOp saved;
    saved.node = b_.add_node({b_.intern("MmBackward0"), sequence_++, pass_});
    saved.call = call;
    saved.saved = x;
    const TensorId inputs[] = {x, weight};
    if (k % 3 == 2) {
      const TensorId view = b_.add_tensor({storage_of(x), 0, flat_, 0, true});
      run_op("aten.view.default", std::span(inputs, 1), {view, AliasKind::kView, 0}, call, saved.node);
      x = view;
    } else {
      saved.saves.push_back(b_.add_save({saved.node, 0, x, true}));
      b_.pack(saved.saves.back());
      const TensorId y = add_tensor(Role::kPlain);
      run_op("aten.mm.default", inputs, {y, AliasKind::kFresh, 0}, call, saved.node);
      if (b_.tables().storages[storage_of(x).index()].role == Role::kPlain) b_.free(storage_of(x));
      x = y;
    }
    saved_.push_back(std::move(saved));
    return x;
  }

  void backward() {
    start_pass(PassKind::kBackward);
    TensorId gradient = add_tensor(Role::kPlain);
    run_op("aten.ones_like.default", {}, {gradient, AliasKind::kFresh, 0}, {}, {});
    for (; !saved_.empty(); saved_.pop_back()) {
      const SavedOp& saved = saved_.back();
      b_.node(saved.node);
      for (const SaveId save : saved.saves) b_.unpack(save);
      TensorId next = gradient;
      for (int k = 0; k < 2; ++k) {
        const TensorId inputs[] = {gradient, saved.saves.empty() ? gradient : saved.saved};
        next = add_tensor(Role::kPlain);
        run_op("aten.mm.default", inputs, {next, AliasKind::kFresh, 0}, saved.call, saved.node);
        if (k == 0) b_.free(storage_of(next));
      }
      b_.free(storage_of(gradient));
      gradient = next;
      for (const SaveId save : saved.saves) b_.drop(save);
      b_.done(saved.node);
      for (const SaveId save : saved.saves) b_.release(save);
    }
  }

  void optimizer() {
    start_pass(PassKind::kOptimizer);
    for (const TensorId weight : weights_) {
      TensorId value = weight;
      for (std::uint32_t k = 1; k <= 4; ++k) {
        const TensorId inputs[] = {value};
        value = b_.add_tensor({storage_of(weight), k, layout_, 0, false});
        run_op("aten.add_.Tensor", inputs, {value, AliasKind::kMutates, 0}, {}, {});
      }
    }
  }

  std::size_t layers_;
  StepBuilder b_;
  LayoutId layout_, flat_;
  SourceId source_;
  PassId pass_;
  std::int64_t sequence_ = 0;
  std::vector<ModuleId> modules_;
  std::vector<TensorId> weights_;
  std::vector<SavedOp> saved_;
};

}  // namespace

Step large_step(std::size_t op_count) { return LayerStack((op_count + kOpsPerLayer - 1) / kOpsPerLayer).run(); }

}  // namespace tidemark::bench
