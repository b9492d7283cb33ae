#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tidemark/ops/call.h"
#include "tidemark/step/step_builder.h"

namespace tidemark::fake {

using ops::Call;
using ops::GradNode;
using ops::Storage;
using ops::Tensor;

// Turns what happens during a step into the rows and events of a Step, by the same rules as the recorder of the
// PyTorch capture (python/tidemark/_capture/recorder.py), so that the two records of one step are equal. It is told by
// the runtime and the engine and knows nothing of them.
//
// A storage is freed when its last tensor dies. What autograd saves is taken out of the program's hands: pack keeps a
// description, unpack makes another tensor, so that the death of a storage is that of the program's last reference.
class Recorder final : public ops::StorageWatcher {
 public:
  explicit Recorder(std::string device) : device_(std::move(device)) {}

  step::StepBuilder& builder() { return builder_; }

  // -- what is there before the step --
  void know(Storage& storage, step::Role role, const Storage* of);
  void begin();
  step::Step end() &&;
  void add_note(const std::string& kind, const std::string& text);
  step::TensorId tensor(const Tensor& t);

  // -- modules --
  void enter(step::ModuleId module, std::span<const Tensor* const> inputs);
  void leave(std::span<const Tensor* const> outputs);

  // -- passes --
  void optimizer_starts();
  void optimizer_ends();
  void backward_starts();
  void backward_ends();  // the engine has left; the pass ends with what happens next
  // Told which gradients there are when a backward has ended: pairs of parameter and gradient.
  std::vector<std::pair<const Tensor*, const Tensor*>> (*gradients)(void*) = nullptr;
  void* gradients_of = nullptr;

  // -- ops --
  void describe(Call& call);  // before it runs: afterwards inputs may have another version
  void ran(Call& call, GradNode* node);

  // -- what autograd saves --
  // `latest`: a node that was made meanwhile. The save counts as that one's until its own node runs, as in a capture,
  // which knows nodes by their numbers.
  void pack(GradNode& node, const Tensor& t, const char* name, GradNode* latest = nullptr);
  Tensor unpack(GradNode& node, std::size_t saved);
  void release(GradNode& node);  // all it saved

  void died(Storage& storage) override;

  // -- what the program does --
  bool grad_enabled = true;
  int watchful = 0;                // inside functions that write in place when nobody watches
  const char* autocast = nullptr;  // the type of the open autocast region
  GradNode* current = nullptr;     // the node that the engine runs

 private:
  struct NodeRow {
    const char* name = "";
    step::PassId pass;
    step::CallId call;
    std::uint32_t slots = 0;
    std::int32_t open_saves = 0;
    std::vector<std::uint32_t> unhooked;  // saves that no hook sees
  };
  struct SaveRow {
    step::NodeId node;
    std::uint32_t slot = 0;
    step::TensorId tensor;
    bool hooked = true;
    ops::Value number = ops::None{};
  };
  // An op before it runs.
  struct Described {
    std::vector<step::TensorId> inputs;
    std::vector<Storage*> storages;  // none for a number that autograd gave back
    step::ArgsId args;
  };
  // An op that PyTorch does in place when nobody watches and nothing else holds its first operand: what happens next
  // tells.
  struct Pending {
    bool is_open = false;
    step::StringId name;
    Described described;
    Storage* first = nullptr;
    step::StorageId first_id;
    Storage* out = nullptr;
    const ops::TensorData* out_tensor = nullptr;
    step::LayoutId layout;
    std::int64_t offset = 0;
    step::CallId call;
    step::NodeId node;
    bool in_backward = false;
    step::OpFlags flags;
    std::array<std::int64_t, 3> costs{};
    std::array<std::int64_t, 3> costs_in_place{};
  };

  // Where an op stands.
  struct Place {
    step::CallId call;
    step::NodeId node;
    bool in_backward = false;
  };

  void set_pass(step::PassKind kind);
  bool locate();
  void leave_backward();
  void leave_backward_if_left();
  step::NodeId node_id(GradNode& node);
  step::NodeId running_id(GradNode& node);
  void run_node(step::NodeId node);
  void release_unhooked();
  step::StorageId add_storage(Storage& storage);
  step::LayoutId layout(const ops::TensorData& t);
  step::TensorId tensor_over(const Storage& storage, const ops::TensorData& t, bool is_view);
  step::TensorId tensor_at(step::StorageId id, std::uint32_t version, step::LayoutId layout, std::int64_t offset,
                           bool is_view);
  bool is_engine_sum(step::NodeId node) const;
  bool may_add_in_place(const Call& call) const;
  bool made_here(step::NodeId node) const;
  void write(Call& call, const Place& place);
  void hold(Call& call, const Place& place);
  void settle(bool in_place);
  void flush() {
    if (pending_.is_open) settle(false);
  }
  std::vector<step::Output> outputs(Call& call);
  void add_op(const Described& described, std::span<const step::Output> outputs, const Place& place,
              step::StringId name, step::OpFlags flags, const std::array<std::int64_t, 3>& costs);
  void save_numbers(const Call& call, step::NodeId node);
  step::RegionId region(step::CallId call);
  step::ArgsId args_of(const Call& call, const std::vector<std::pair<const char*, step::TensorId>>& numbers);
  step::StringId name_id(const ops::Row& row);
  std::array<std::int64_t, 3> costs_of(const Call& call, const ops::Row& row) const;

  std::string device_;
  step::StringId device_id_;
  step::StepBuilder builder_;
  bool is_recording_ = false;
  Pending pending_;
  Described described_;

  std::vector<NodeRow> nodes_;
  std::vector<SaveRow> saves_;
  step::NodeId running_;
  step::NodeId last_node_;
  step::NodeId finished_;  // has run, and its unhooked saves are not released yet

  std::map<std::tuple<step::PassKind, std::uint32_t, std::uint32_t>, step::PassId> passes_;
  std::optional<step::PassKind> pass_kind_;
  step::PassId pass_;
  std::uint32_t micro_batch_ = 0;
  std::uint32_t backwards_ = 0;
  bool left_module_ = false;
  bool after_backward_ = false;
  bool in_optimizer_ = false;
  bool in_task_ = false;      // the engine runs
  bool saw_in_task_ = false;  // and something of it was recorded

  std::vector<step::CallId> calls_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> call_counts_;
  std::map<std::tuple<std::uint32_t, bool, const char*>, step::RegionId> regions_;

  struct Known {
    std::uint32_t version;
    step::LayoutId layout;
    std::int64_t offset;
    step::TensorId tensor;
  };
  std::vector<std::vector<Known>> tensors_;  // by storage
  std::unordered_map<std::string, step::LayoutId> layouts_;
  std::unordered_map<std::string, step::ArgsId> args_;
  std::unordered_map<const ops::Row*, step::StringId> names_;
  std::vector<step::StorageId> fresh_;
  std::string key_;
};

}  // namespace tidemark::fake
