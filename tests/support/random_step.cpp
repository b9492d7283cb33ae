#include "random_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "random.h"
#include "tidemark/step/step_builder.h"

namespace tidemark::test {

namespace {

using namespace step;

using Dims = std::vector<std::int64_t>;

struct RecordedNode {
  NodeId id;
  CallId call;
  std::vector<SaveId> saves;
};

class RandomProgram {
 public:
  RandomProgram(std::uint64_t seed, const RandomStepOptions& options) : random_(seed), options_(options) {}

  Step run() {
    add_meta();
    add_modules();
    add_bindings();
    add_inputs();
    const auto micro_batches = static_cast<std::uint32_t>(random_.between(1, options_.max_micro_batches));
    for (std::uint32_t i = 0; i < micro_batches; ++i) micro_batch(i);
    start_pass(PassKind::kOptimizer, 0);
    random_ops({}, {});
    maybe_free(60);
    add_notes();
    if (options_.with_extras && random_.chance(30)) add_extra();
    return std::move(b_).finish();
  }

 private:
  void add_meta() {
    static const std::vector<std::string> kValues = {"", "plain", "\"quoted\" \\ / \n\t\x01",
                                                     "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8C\x8A"};
    for (std::int64_t i = random_.between(0, 2); i > 0; --i)
      b_.add_meta(fmt::format("key{}", i), random_.pick(kValues));
  }

  void add_modules() {
    static const std::vector<std::string> kTypes = {"Linear", "Block", "Dropout", "\xC3\x89tage", "torch.nn.LSTM"};
    const auto count = static_cast<std::uint32_t>(random_.between(1, options_.max_modules));
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool is_root = i == 0;
      modules_.push_back(b_.add_module({.parent = is_root ? ModuleId() : random_.pick(modules_),
                                        .name = b_.intern(is_root ? "" : fmt::format("m{}", i)),
                                        .type = b_.intern(random_.pick(kTypes))}));
    }
  }

  StorageId add_storage(Role role, StorageId of = {}) {
    static const std::vector<std::int64_t> kSizes = {0, 1, 4, 512, 513, 4096, 1 << 20, std::int64_t{1} << 40};
    const StorageId id = b_.add_storage({.bytes = random_.pick(kSizes),
                                         .device = b_.intern(random_.chance(90) ? "cpu" : "cuda:0"),
                                         .role = role,
                                         .of = of});
    return id;
  }

  // Some tensor that fits the storage.
  TensorId add_tensor(StorageId storage, std::uint32_t version, bool is_view) {
    const auto dtype = static_cast<DType>(random_.below(kDTypeCount));
    std::int64_t room = b_.tables().storages[storage.index()].bytes / item_bytes(dtype);  // elements left
    const std::int64_t offset = room > 1 && random_.chance(30) ? random_.between(0, room / 2) : 0;
    room -= offset;
    Dims sizes;
    Dims strides;
    std::int64_t extent = 1;
    for (std::int64_t d = random_.between(0, 3); d > 0; --d) {
      const std::int64_t stride = random_.between(0, 7);
      const std::int64_t most = stride == 0 ? 5 : std::max<std::int64_t>(0, (room - extent) / stride);
      const std::int64_t size = random_.between(room == 0 ? 0 : 1, std::min<std::int64_t>(5, most + 1));
      extent += size > 0 ? (size - 1) * stride : 0;
      sizes.push_back(room == 0 ? 0 : size);
      strides.push_back(stride);
    }
    if (sizes.empty() && room == 0) {  // a storage of no bytes has only empty tensors
      sizes.push_back(0);
      strides.push_back(1);
    }
    return b_.add_tensor({.storage = storage,
                          .version = version,
                          .layout = b_.intern_layout(dtype, sizes, strides),
                          .offset = offset,
                          .is_view = is_view});
  }

  void add_bindings() {
    for (const ModuleId module : modules_) {
      for (std::int64_t i = random_.between(0, 2); i > 0; --i) {
        const bool tied = !parameters_.empty() && random_.chance(20);
        const TensorId tensor = tied ? random_.pick(parameters_) : add_tensor(add_storage(Role::kParameter), 0, false);
        if (!tied) add_state(tensor);
        parameters_.push_back(tensor);
        b_.add_binding(
            {module, b_.intern(fmt::format("weight{}", i)), tensor, BindingKind::kParameter, random_.chance(80)});
      }
      if (random_.chance(20)) {
        const TensorId tensor = add_tensor(add_storage(Role::kBuffer), 0, false);
        live_.push_back(tensor);
        b_.add_binding({module, b_.intern("buffer"), tensor, BindingKind::kBuffer, false});
      }
    }
    live_.insert(live_.end(), parameters_.begin(), parameters_.end());
  }

  void add_state(TensorId parameter) {
    const StorageId owner = storage_of(parameter);
    if (random_.chance(50)) live_.push_back(add_tensor(add_storage(Role::kOptimizerState, owner), 0, false));
    if (random_.chance(30)) add_storage(Role::kGradient, owner);  // without a tensor, and freed by nobody
  }

  void add_inputs() {
    for (std::int64_t i = random_.between(1, 2); i > 0; --i)
      live_.push_back(add_tensor(add_storage(Role::kInput), 0, false));
  }

  StorageId storage_of(TensorId tensor) const { return b_.tables().tensors[tensor.index()].storage; }

  void start_pass(PassKind kind, std::uint32_t micro_batch) {
    pass_ = b_.add_pass({kind, micro_batch, micro_batch, 0});
    call_counts_.assign(modules_.size(), 0);
    b_.phase(pass_);
  }

  void micro_batch(std::uint32_t index) {
    nodes_.clear();
    start_pass(PassKind::kForward, index);
    call_module(modules_.front(), {}, 0);
    start_pass(PassKind::kLoss, index);
    random_ops({}, {});
    start_pass(PassKind::kBackward, index);
    backward();
  }

  void call_module(ModuleId module, CallId parent, int depth) {
    const std::vector<TensorId> inputs = some_live();
    const CallId call = b_.add_call({module, parent, call_counts_[module.index()]++, pass_, inputs});
    b_.enter(call);
    const RegionId region = random_.chance(25) ? add_region(call) : RegionId();
    random_ops(call, region);
    for (std::int64_t i = depth < 3 ? random_.between(0, 2) : 0; i > 0; --i)
      call_module(random_.pick(modules_), call, depth + 1);
    if (random_.chance(50)) random_ops(call, {});
    b_.set_call_outputs(call, some_live());
    b_.exit(call);
    maybe_free(30);
  }

  std::vector<TensorId> some_live() {
    std::vector<TensorId> tensors;
    for (std::int64_t i = random_.between(0, 2); i > 0; --i) tensors.push_back(random_.pick(live_));
    return tensors;
  }

  RegionId add_region(CallId call) {
    const std::vector<TensorId> held = some_live();
    const RegionId parent = !regions_.empty() && random_.chance(30) ? random_.pick(regions_) : RegionId();
    regions_.push_back(b_.add_region({static_cast<RegionKind>(random_.below(kRegionKindNames.size())), parent, call,
                                      random_.chance(30) ? random_args(0) : ArgsId(), held}));
    return regions_.back();
  }

  void random_ops(CallId call, RegionId region) {
    for (std::int64_t i = random_.between(0, options_.max_ops_per_call); i > 0; --i) {
      const bool differentiable = call.has_value() && random_.chance(70);
      RecordedNode node;
      if (differentiable) {
        node.id = b_.add_node({b_.intern(random_.chance(50) ? "MmBackward0" : "AddBackward0"), sequence_++, pass_});
        node.call = call;
      }
      run_op(call, region, differentiable ? &node : nullptr, {});
      if (differentiable) nodes_.push_back(node);
      maybe_free(15);
    }
  }

  void backward() {
    for (; !nodes_.empty(); nodes_.pop_back()) {
      const RecordedNode& node = nodes_.back();
      b_.node(node.id);
      std::vector<TensorId> saved;
      for (const SaveId save : node.saves) {
        b_.unpack(save);
        saved.push_back(b_.tables().saves[save.index()].tensor);
      }
      run_op(node.call, {}, nullptr, saved, node.id);
      for (const SaveId save : node.saves) b_.drop(save);
      b_.done(node.id);
      for (const SaveId save : node.saves)
        if (random_.chance(95)) b_.release(save);
      maybe_free(30);
    }
  }

  void pack(RecordedNode& node, TensorId tensor) {
    const SaveId save =
        b_.add_save({node.id, static_cast<std::uint32_t>(node.saves.size()), tensor, random_.chance(90)});
    b_.pack(save);
    node.saves.push_back(save);
  }

  void run_op(CallId call, RegionId region, RecordedNode* node, std::vector<TensorId> inputs, NodeId runs_for = {}) {
    static const std::vector<std::string> kNames = {"aten.mm.default", "aten.add.Tensor", "aten.view.default",
                                                    "aten.native_dropout.default", "my::op.\"x\""};
    for (std::int64_t i = random_.between(0, 3); i > 0; --i) inputs.push_back(random_.pick(live_));
    if (node != nullptr && !inputs.empty() && random_.chance(60)) pack(*node, inputs.front());
    std::vector<Output> outputs;
    std::vector<StorageId> made;
    for (std::int64_t i = random_.between(0, 2); i > 0; --i) outputs.push_back(random_output(inputs, made));
    const bool collective = random_.chance(5);
    OpFlags flags;
    for (const OpFlagName& flag : kOpFlagNames)
      if (flag.flag != OpFlag::kCollective && flag.flag != OpFlag::kUnwatched && random_.chance(5))
        flags = flags | flag.flag;
    const bool is_in_place = outputs.size() == 1 && outputs[0].alias == AliasKind::kMutates && outputs[0].input == 0;
    if (is_in_place && random_.chance(30)) flags = flags | OpFlag::kUnwatched;
    if (collective) flags = flags | OpFlag::kCollective;
    const OpId op = b_.add_op({.name = random_.pick(kNames),
                               .pass = pass_,
                               .call = call,
                               .node = node != nullptr ? node->id : runs_for,
                               .region = region,
                               .inputs = inputs,
                               .outputs = outputs,
                               .args = random_.chance(50) ? random_args(inputs.size()) : ArgsId(),
                               .source = random_.chance(50) ? random_source() : SourceId(),
                               .group = collective ? std::string_view("dp") : std::string_view(),
                               .flags = flags,
                               .stream = static_cast<std::uint16_t>(random_.chance(5) ? 1 : 0),
                               .flops = random_.chance(50) ? random_.between(0, 1 << 30) : Op::kUnknown,
                               .read_bytes = random_.chance(50) ? random_.between(0, 1 << 30) : Op::kUnknown,
                               .written_bytes = random_.chance(50) ? random_.between(0, 1 << 30) : Op::kUnknown});
    b_.begin(op);
    for (const StorageId storage : made) b_.alloc(storage);
    b_.end(op);
    for (const Output& out : outputs)
      if (!freed_[storage_of(out.tensor)]) live_.push_back(out.tensor);  // not a view of what only autograd holds
    if (node != nullptr && !outputs.empty() && random_.chance(40)) pack(*node, outputs.front().tensor);
    if (random_.chance(5)) {
      const StorageId storage = storage_of(random_.pick(live_));  // drawn first: compilers order arguments as they like
      b_.resize(storage, random_.between(0, 1 << 20));
    }
  }

  Output random_output(const std::vector<TensorId>& inputs, std::vector<StorageId>& made) {
    const auto input = static_cast<std::uint32_t>(inputs.empty() ? 0 : random_.below(inputs.size()));
    const std::uint64_t kind = inputs.empty() ? 0 : random_.below(10);
    if (kind == 8) {
      const Tensor base = b_.tables().tensors[inputs[input].index()];
      return {add_tensor(base.storage, base.version, true), AliasKind::kView, input};
    }
    if (kind == 9) {
      const Tensor base = b_.tables().tensors[inputs[input].index()];
      return {add_tensor(base.storage, base.version + 1, base.is_view), AliasKind::kMutates, input};
    }
    if (kind == 7) return {add_tensor(storage_of(random_.pick(live_)), 0, false), AliasKind::kExisting, 0};
    made.push_back(add_storage(Role::kPlain));
    return {add_tensor(made.back(), 0, false), AliasKind::kFresh, 0};
  }

  ArgsId random_args(std::size_t input_count) {
    ArgList list;
    for (std::int64_t i = random_.between(0, 2); i > 0; --i)
      list.push_back({b_.intern(fmt::format("arg{}", i)), random_value(0, input_count)});
    return b_.intern_args(std::move(list));
  }

  ArgValue random_value(int depth, std::size_t input_count) {
    static const std::vector<double> kFloats = {0.0,
                                                -0.0,
                                                0.1,
                                                1.0,
                                                1e300,
                                                5e-324,
                                                1e22,
                                                std::numeric_limits<double>::infinity(),
                                                -std::numeric_limits<double>::infinity(),
                                                std::numeric_limits<double>::quiet_NaN()};
    static const std::vector<std::int64_t> kInts = {0, -1, 1, std::numeric_limits<std::int64_t>::max(),
                                                    std::numeric_limits<std::int64_t>::min()};
    switch (random_.below(depth < 3 ? 7 : 6)) {
      case 0:
        return {};
      case 1:
        return {random_.chance(50)};
      case 2:
        return {random_.pick(kInts)};
      case 3:
        return {random_.pick(kFloats)};
      case 4:
        return {b_.intern("sum")};
      case 5: {
        const auto end = static_cast<std::uint32_t>(random_.below(input_count + 1));
        return {InputRange{static_cast<std::uint32_t>(random_.below(end + 1)), end}};
      }
      default:
        break;
    }
    ArgValue::List list;
    for (std::int64_t i = random_.between(0, 2); i > 0; --i) list.push_back(random_value(depth + 1, input_count));
    return {std::move(list)};
  }

  SourceId random_source() {
    return b_.add_source({b_.intern("train.py"), static_cast<std::uint32_t>(random_.below(100)), b_.intern("forward")});
  }

  // The program lets go of some value; the tensors of a storage go together.
  void maybe_free(int percent) {
    if (live_.size() < 4 || !random_.chance(percent)) return;
    const StorageId storage = storage_of(random_.pick(live_));
    std::vector<TensorId> rest;
    for (const TensorId tensor : live_)
      if (storage_of(tensor) != storage) rest.push_back(tensor);
    if (rest.empty()) return;
    live_ = std::move(rest);
    b_.free(storage);
    freed_[storage] = true;
  }

  void add_notes() {
    if (!random_.chance(30)) return;
    const bool has_ops = !b_.tables().ops.empty();
    b_.add_note({b_.intern("placeholder"), b_.intern("loss.item() read as 1.0"),
                 has_ops && random_.chance(50) ? OpId(0) : OpId()});
  }

  void add_extra() {
    ExtraSection extra{"x-later", {}};
    for (std::int64_t i = random_.between(0, 2); i > 0; --i)
      extra.rows.emplace_back(random_.chance(50) ? R"({"a": [1, 2.50]})" : "[null]");
    b_.add_extra(std::move(extra));
  }

  Random random_;
  RandomStepOptions options_;
  StepBuilder b_;
  PassId pass_;
  std::int64_t sequence_ = 0;
  std::vector<ModuleId> modules_;
  std::vector<RegionId> regions_;
  std::vector<TensorId> parameters_;
  std::vector<TensorId> live_;  // values that the program can still use; what it freed is taken out
  std::map<StorageId, bool> freed_;
  std::vector<RecordedNode> nodes_;
  std::vector<std::uint32_t> call_counts_;
};

}  // namespace

Step random_step(std::uint64_t seed, const RandomStepOptions& options) { return RandomProgram(seed, options).run(); }

}  // namespace tidemark::test
