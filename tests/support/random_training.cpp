#include "random_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "random.h"
#include "tidemark/step/step_builder.h"

namespace tidemark::test {

namespace {

using namespace step;

class Program {
 public:
  Program(std::uint64_t seed, const RandomTrainingOptions& options) : random_(seed), options_(options) {
    scale_ = static_cast<int>(random_.below(4));
  }

  RandomTraining run() {
    add_modules();
    for (int i = 0; i < 2; ++i)
      parameters_.push_back(tensor(b_.add_storage({bytes(), device(), Role::kParameter, {}})));
    input_ = tensor(b_.add_storage({bytes(), device(), Role::kInput, {}}));
    const int micro_batches = random_.chance(15) ? 2 : 1;
    for (int i = 0; i < micro_batches; ++i) micro_batch(static_cast<std::uint32_t>(i));
    start_pass(PassKind::kOptimizer, 0);
    run_op({}, "aten.add.Tensor", {parameters_[0]}, {fresh()}, {}, {});
    for (const StorageId storage : at_end_) b_.free(storage);
    for (const SaveId save : late_) b_.release(save);
    planner::Times times;
    for (std::uint32_t i = 0; i < b_.tables().ops.size(); ++i) times.op_ps.push_back(OpId(i) == free_op_ ? 0 : time());
    times.region_ps = random_.chance(60) ? 0 : random_.between(0, 3);
    times.region_save_ps = random_.chance(70) ? 0 : random_.between(0, 2);
    times.region_rng_ps = random_.chance(60) ? 0 : random_.between(0, 2);
    return {std::move(b_).finish(), std::move(times)};
  }

 private:
  struct Node {
    NodeId id;
    CallId call;
    std::vector<SaveId> saves;
  };

  StringId device() { return b_.intern("cpu"); }

  std::int64_t bytes() { return options_.bytes_factor * some_bytes(); }

  std::int64_t some_bytes() {
    switch (scale_) {
      case 0:
        return random_.between(0, 4);  // ties, zeros
      case 1:
        return random_.between(1, 1000);
      case 2:
        return (std::int64_t{1} << 53) + random_.between(0, 9);
      default:
        return random_.chance(20) ? 0 : std::int64_t{8} << random_.below(6);
    }
  }

  std::int64_t time() {
    if (random_.chance(15)) return 0;
    return scale_ == 0 ? random_.between(0, 3) : random_.between(0, 100);
  }

  TensorId tensor(StorageId storage, std::uint32_t version = 0, bool is_view = false) {
    const std::int64_t sizes[] = {b_.tables().storages[storage.index()].bytes};
    const std::int64_t strides[] = {1};
    return b_.add_tensor({storage, version, b_.intern_layout(DType::kUInt8, sizes, strides), 0, is_view});
  }
  StorageId storage_of(TensorId t) const { return b_.tables().tensors[t.index()].storage; }

  // A gradient.
  Output made_in_backward() {
    const std::int64_t size = options_.light_backward ? bytes() / 8 : bytes();
    return {tensor(b_.add_storage({size, device(), Role::kPlain, {}})), AliasKind::kFresh, 0};
  }

  Output fresh() { return {tensor(b_.add_storage({bytes(), device(), Role::kPlain, {}})), AliasKind::kFresh, 0}; }

  void add_modules() {
    const auto add = [&](ModuleId parent, int i) {
      return b_.add_module(
          {parent, b_.intern(parent.is_none() ? "" : fmt::format("{}{}", options_.name, i)), b_.intern("Block")});
    };
    tree_.push_back({add({}, 0), {}});
    const auto children = random_.between(1, options_.max_children);
    for (std::int64_t i = 0; i < children; ++i) {
      const std::size_t child = tree_.size();
      tree_.push_back({add(tree_[0].first, static_cast<int>(i)), {}});
      tree_[0].second.push_back(child);
      if (random_.chance(12)) tree_[0].second.push_back(child);  // called twice
      for (std::int64_t k = random_.chance(35) ? random_.between(1, 2) : 0; k > 0; --k) {
        tree_.push_back({add(tree_[child].first, static_cast<int>(k)), {}});
        tree_[child].second.push_back(tree_.size() - 1);
      }
    }
    counts_.assign(tree_.size(), 0);
  }

  void start_pass(PassKind kind, std::uint32_t micro_batch) {
    pass_ = b_.add_pass({kind, micro_batch, micro_batch, 0});
    counts_.assign(tree_.size(), 0);
    b_.phase(pass_);
  }

  void micro_batch(std::uint32_t index) {
    nodes_.clear();
    live_ = {input_};
    start_pass(PassKind::kForward, index);
    call(0, {});
    start_pass(PassKind::kLoss, index);
    ops({}, 1);
    for (const TensorId cast : casts_) b_.free(storage_of(cast));
    casts_.clear();
    start_pass(PassKind::kBackward, index);
    backward();
    for (const TensorId t : live_)
      if (t != input_) free_once(t);
    live_.clear();
  }

  void call(std::size_t module, CallId parent) {
    const std::vector<TensorId> inputs = {live_.back()};
    const CallId id = b_.add_call({tree_[module].first, parent, counts_[module]++, pass_, inputs});
    b_.enter(id);
    if (module != 0 || random_.chance(50)) ops(id, options_.max_ops);
    for (const std::size_t child : tree_[module].second) {
      call(child, id);
      if (random_.chance(30)) ops(id, 1);
    }
    b_.set_call_outputs(id, std::vector<TensorId>{live_.back()});
    b_.exit(id);
    maybe_free(40);
  }

  void ops(CallId id, int most) {
    for (std::int64_t i = random_.between(1, most); i > 0; --i) {
      op(id);
      maybe_free(options_.freed_percent);
      if (forward_ops_++ == options_.free_op) add_free_op(id);
    }
  }

  // Nothing of it depends on chance, so that the rest of the step stays the same.
  void add_free_op(CallId id) {
    const StorageId storage = b_.add_storage({0, device(), Role::kPlain, {}});
    free_op_ = b_.add_op({.name = "aten.mm.default",
                          .pass = pass_,
                          .call = id,
                          .node = {},
                          .region = {},
                          .inputs = std::vector<TensorId>{live_.back()},
                          .outputs = std::vector<Output>{{tensor(storage), AliasKind::kFresh, 0}},
                          .args = {},
                          .source = {},
                          .group = {},
                          .flags = {}});
    b_.begin(free_op_);
    b_.alloc(storage);
    b_.end(free_op_);
    b_.free(storage);
  }

  TensorId some_live() {
    // Mostly the newest: skips are the exception.
    return random_.chance(70) ? live_.back() : random_.pick(live_);
  }

  void op(CallId id) {
    std::vector<TensorId> inputs = {some_live()};
    if (random_.chance(30)) inputs.push_back(some_live());
    if (random_.chance(30)) inputs.push_back(random_.pick(parameters_));
    if (options_.has_casts && random_.chance(60)) inputs.push_back(cast(id));
    const std::uint64_t kind = random_.below(100);
    if (kind < 8) {
      const Tensor& base = b_.tables().tensors[inputs[0].index()];
      live_.push_back(tensor(base.storage, base.version, true));
      run_op(id, "aten.view.default", inputs, {{live_.back(), AliasKind::kView, 0}}, {}, {});
      return;
    }
    OpFlags flags;
    if (random_.chance(9) && options_.is_random) flags = flags | OpFlag::kRandom;
    if (random_.chance(3)) flags = flags | OpFlag::kMustSave;
    Node node;
    const bool has_node = random_.chance(85);
    if (has_node) {
      node.id = b_.add_node({b_.intern("MmBackward0"), sequence_++, pass_});
      node.call = id;
      for (const TensorId input : inputs)
        if (random_.chance(options_.saved_percent)) pack(node, input);
    }
    if (kind < 13 && inputs[0] != input_) {
      const Tensor base = b_.tables().tensors[inputs[0].index()];
      live_.push_back(tensor(base.storage, base.version + 1, base.is_view));
      run_op(id, "aten.mul_.Tensor", inputs, {{live_.back(), AliasKind::kMutates, 0}}, flags, node.id);
    } else {
      std::vector<Output> outputs = {fresh()};
      if (random_.chance(10)) outputs.push_back(fresh());
      run_op(id, "aten.mm.default", inputs, outputs, flags, node.id);
      for (std::size_t i = outputs.size(); i-- > 0;) live_.push_back(outputs[i].tensor);
    }
    if (!has_node) return;
    if (random_.chance(options_.saved_percent)) pack(node, live_.back());
    nodes_.push_back(node);
  }

  // Seldom one that somebody else has asked for already.
  TensorId cast(CallId id) {
    if (!casts_.empty() && random_.chance(10)) return random_.pick(casts_);
    const Output made = fresh();
    run_op(id, "aten._to_copy.default", {random_.pick(parameters_)}, {made}, {}, {});
    casts_.push_back(made.tensor);
    return made.tensor;
  }

  void pack(Node& node, TensorId t) {
    const SaveId save = b_.add_save({node.id, static_cast<std::uint32_t>(node.saves.size()), t, !random_.chance(3)});
    b_.pack(save);
    node.saves.push_back(save);
  }

  // Sometimes with a temporary inside.
  OpId run_op(CallId id, std::string_view name, const std::vector<TensorId>& inputs, const std::vector<Output>& outputs,
              OpFlags flags, NodeId node) {
    const OpId op = b_.add_op({.name = name,
                               .pass = pass_,
                               .call = id,
                               .node = node,
                               .region = {},
                               .inputs = inputs,
                               .outputs = outputs,
                               .args = {},
                               .source = {},
                               .group = {},
                               .flags = flags});
    b_.begin(op);
    StorageId temporary;
    if (random_.chance(12)) {
      temporary = b_.add_storage({bytes(), device(), Role::kPlain, {}});
      b_.alloc(temporary);
    }
    for (const Output& out : outputs)
      if (out.alias == AliasKind::kFresh) b_.alloc(storage_of(out.tensor));
    if (temporary.has_value()) b_.free(temporary);
    b_.end(op);
    return op;
  }

  void free_once(TensorId t) {
    const StorageId storage = storage_of(t);
    if (storage == storage_of(input_)) return;
    if (std::find(freed_.begin(), freed_.end(), storage) != freed_.end()) return;
    freed_.push_back(storage);
    b_.free(storage);
  }

  // The program lets go of something that is not the newest.
  void maybe_free(int percent) {
    if (live_.size() < 2 || !random_.chance(percent)) return;
    const TensorId t = live_[random_.below(live_.size() - 1)];
    const StorageId storage = storage_of(t);
    if (storage == storage_of(input_) || storage == storage_of(live_.back())) return;
    std::erase_if(live_, [&](TensorId other) { return storage_of(other) == storage; });
    free_once(t);
  }

  void backward() {
    TensorId gradient;
    if (random_.chance(60)) forget_live();
    for (; !nodes_.empty(); nodes_.pop_back()) {
      const Node& node = nodes_.back();
      if (options_.may_be_odd && random_.chance(6)) {  // its output was not used
        for (const SaveId save : node.saves)
          if (random_.chance(70)) let_go_unused(save);
        continue;
      }
      b_.node(node.id);
      std::vector<TensorId> inputs;
      if (gradient.has_value()) inputs.push_back(gradient);
      for (const SaveId save : node.saves) {
        b_.unpack(save);
        inputs.push_back(b_.tables().saves[save.index()].tensor);
      }
      const Output made = made_in_backward();
      run_op(node.call, "aten.mm.default", inputs, {made}, {}, node.id);
      if (random_.chance(25)) {
        const Output weight = made_in_backward();
        run_op(node.call, "aten.mm.default", inputs, {weight}, {}, node.id);
        if (random_.chance(70))
          at_end_.push_back(storage_of(weight.tensor));
        else
          b_.free(storage_of(weight.tensor));
      }
      for (const SaveId save : node.saves) b_.drop(save);
      b_.done(node.id);
      if (gradient.has_value()) b_.free(storage_of(gradient));
      gradient = made.tensor;
      for (const SaveId save : node.saves)
        if (!options_.may_be_odd || random_.chance(97)) b_.release(save);
    }
    if (gradient.has_value()) b_.free(storage_of(gradient));
  }

  void let_go_unused(SaveId save) {
    if (random_.chance(50))
      late_.push_back(save);
    else
      b_.release(save);
  }

  // The program keeps only the last value during backward.
  void forget_live() {
    for (std::size_t i = 0; i + 1 < live_.size(); ++i)
      if (live_[i] != input_ && storage_of(live_[i]) != storage_of(live_.back())) free_once(live_[i]);
    live_ = {live_.back()};
  }

  Random random_;
  RandomTrainingOptions options_;
  int scale_ = 0;
  StepBuilder b_;
  PassId pass_;
  std::int64_t sequence_ = 0;
  int forward_ops_ = 0;
  OpId free_op_;
  std::vector<std::pair<ModuleId, std::vector<std::size_t>>> tree_;
  std::vector<std::uint32_t> counts_;
  std::vector<TensorId> parameters_;
  TensorId input_;
  std::vector<TensorId> live_;
  std::vector<TensorId> casts_;
  std::vector<StorageId> freed_;
  std::vector<StorageId> at_end_;
  std::vector<SaveId> late_;
  std::vector<Node> nodes_;
};

}  // namespace

RandomTraining random_training(std::uint64_t seed, const RandomTrainingOptions& options) {
  return Program(seed, options).run();
}

}  // namespace tidemark::test
