#include "tidemark/memory/reference_tracker.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tidemark/base/rounding.h"
#include "tidemark/memory/replay.h"

namespace tidemark::memory {

namespace {

using namespace step;

constexpr std::uint32_t kNever = 0xFFFFFFFFu;

bool is_backward(PassKind kind) { return kind == PassKind::kBackward || kind == PassKind::kRecompute; }

// Where the backward of each call begins and ends, and when storages turn into gradients; all in positions of events.
struct Schedule {
  std::vector<std::uint32_t> backward_begins;  // by call
  std::vector<std::uint32_t> backward_ends;
  std::multimap<std::uint32_t, StorageId> retags;
};

class Scheduler {
 public:
  explicit Scheduler(const Step& step) : step_(step), t_(step.tables()) {}

  Schedule run() {
    s_.backward_begins.assign(t_.calls.size(), kNever);
    s_.backward_ends.assign(t_.calls.size(), kNever);
    last_write_.assign(t_.storages.size(), kNever);
    written_in_.assign(t_.storages.size(), PassId());
    node_calls_.resize(t_.nodes.size());
    for (const Op& op : t_.ops)
      if (op.node.has_value() && !is_backward(step_[op.pass].kind)) node_calls_[op.node.index()] = op.call;
    for (std::uint32_t at = 0; at < t_.events.size(); ++at) look_at(t_.events[at], at);
    spread_to_parents();
    for (std::uint32_t i = 0; i < last_write_.size(); ++i)
      if (last_write_[i] != kNever) s_.retags.emplace(last_write_[i], StorageId(i));
    return std::move(s_);
  }

 private:
  void look_at(const Event& event, std::uint32_t at) {
    switch (event.kind) {
      case EventKind::kPhase:
        pass_ = PassId(event.id);
        break;
      case EventKind::kNode:
        open_nodes_.push_back({NodeId(event.id), {}});
        if (const CallId call = node_calls_[event.id]; call.has_value() && s_.backward_begins[call.index()] == kNever)
          s_.backward_begins[call.index()] = at;
        break;
      case EventKind::kDone:
        for (const StorageId storage : open_nodes_.back().written) last_write_[storage.index()] = at;
        open_nodes_.pop_back();
        if (const CallId call = node_calls_[event.id]; call.has_value()) s_.backward_ends[call.index()] = at;
        break;
      case EventKind::kEnd:
        note_writes(OpId(event.id), at);
        break;
      default:
        break;
    }
  }

  // Only the backward in which a gradient is first written counts: later ones add to what is a gradient already.
  void note_writes(OpId op, std::uint32_t at) {
    if (pass_.is_none() || step_[pass_].kind != PassKind::kBackward) return;
    for (const Output& out : step_.outputs(step_[op])) {
      const StorageId storage = step_[out.tensor].storage;
      if (step_[storage].role != Role::kGradient) continue;
      PassId& first = written_in_[storage.index()];
      if (first.is_none()) first = pass_;
      if (first != pass_) continue;
      if (open_nodes_.empty()) {
        last_write_[storage.index()] = at;
      } else {
        open_nodes_.back().written.push_back(storage);
      }
    }
  }

  void spread_to_parents() {
    for (std::size_t i = t_.calls.size(); i-- > 0;) {
      const CallId parent = t_.calls[i].parent;
      if (parent.is_none() || s_.backward_begins[i] == kNever) continue;
      std::uint32_t& begin = s_.backward_begins[parent.index()];
      std::uint32_t& end = s_.backward_ends[parent.index()];
      begin = std::min(begin, s_.backward_begins[i]);
      end = end == kNever ? s_.backward_ends[i] : std::max(end, s_.backward_ends[i]);
    }
  }

  struct OpenNode {
    NodeId node;
    std::vector<StorageId> written;
  };

  const Step& step_;
  const StepTables& t_;
  Schedule s_;
  PassId pass_;
  std::vector<CallId> node_calls_;
  std::vector<OpenNode> open_nodes_;
  std::vector<std::uint32_t> last_write_;
  std::vector<PassId> written_in_;
};

class Tracker {
 public:
  Tracker(const Step& step, const ReferenceOptions& options)
      : step_(step), t_(step.tables()), options_(options), schedule_(Scheduler(step).run()) {}

  ReferenceRecord run() {
    start();
    find_backward_bounds();
    const Timeline timeline = replay(step_, {}, {.keep_changes = true, .keep_alive_at_peak = false});
    std::size_t next = 0;
    for (std::uint32_t at = 0; at < t_.events.size(); ++at) {
      before(t_.events[at], at);
      for (; next < timeline.changes.size() && timeline.changes[next].event == at; ++next)
        apply(timeline.changes[next]);
      after(t_.events[at], at);
    }
    record_.current = now_;
    return std::move(record_);
  }

 private:
  struct Known {
    ReferenceCategory category = ReferenceCategory::kOther;
    std::int64_t bytes = 0;
    bool is_alive = false;
    bool is_met = false;
  };

  bool is_counted(StorageId storage) const {
    return options_.device.empty() || step_.text(step_[storage].device) == options_.device;
  }

  std::int64_t rounded(StorageId storage, std::int64_t bytes) const {
    if (!step_.text(step_[storage].device).starts_with("cuda")) return bytes;
    return round_up(bytes, kCudaRoundingBytes);
  }

  void add(ReferenceCategory category, std::int64_t bytes) {
    now_.bytes[static_cast<std::size_t>(category)] += bytes;
    now_.total_bytes += bytes;
  }

  static ReferenceCategory by_role(Role role) {
    switch (role) {
      case Role::kParameter:
        return ReferenceCategory::kParameter;
      case Role::kBuffer:
        return ReferenceCategory::kBuffer;
      case Role::kGradient:
        return ReferenceCategory::kGradient;
      case Role::kOptimizerState:
        return ReferenceCategory::kOptState;
      case Role::kInput:
      case Role::kPlain:
        break;
    }
    return ReferenceCategory::kOther;
  }

  ReferenceCategory category_of_new() const {
    if (pass_.is_none()) return ReferenceCategory::kActivation;
    const PassKind kind = step_[pass_].kind;
    if (kind == PassKind::kOptimizer) return ReferenceCategory::kOptState;
    return kind == PassKind::kBackward ? ReferenceCategory::kTemp : ReferenceCategory::kActivation;
  }

  void start() {
    known_.resize(t_.storages.size());
    record_of_.assign(t_.modules.size(), kNever);
    measure_bindings();
    std::vector<bool> is_made(t_.storages.size(), false);
    for (const Event& event : t_.events)
      if (event.kind == EventKind::kAlloc) is_made[event.id] = true;
    for (std::uint32_t i = 0; i < t_.storages.size(); ++i)
      if (!is_made[i]) start_with(StorageId(i));
    record_.peak = now_;
  }

  void start_with(StorageId storage) {
    const Role role = step_[storage].role;
    if (role == Role::kInput || (role == Role::kPlain && !options_.counts_stale)) return;
    come(storage, step_[storage].bytes, role == Role::kPlain ? ReferenceCategory::kActivation : by_role(role));
  }

  // An op that returns a view of a tensor from outside, or writes to it, makes it known.
  void meet_outputs(OpId op) {
    for (const Output& out : step_.outputs(step_[op])) {
      const StorageId storage = step_[out.tensor].storage;
      if (!known_[storage.index()].is_met) come(storage, step_[storage].bytes, category_of_new());
    }
  }

  void come(StorageId storage, std::int64_t bytes, ReferenceCategory category) {
    if (!is_counted(storage)) return;
    known_[storage.index()] = {category, rounded(storage, bytes), true, true};
    add(category, known_[storage.index()].bytes);
  }

  void apply(const Change& change) {
    const StorageId storage(change.block.id);
    Known& known = known_[storage.index()];
    if (change.kind == ChangeKind::kAlloc) {
      const bool is_resize = t_.events[change.event].kind == EventKind::kResize;
      come(storage, change.bytes, is_resize ? known.category : category_of_new());
    } else if (known.is_alive) {
      known.is_alive = false;
      add(known.category, -known.bytes);
    }
  }

  // By event, the calls whose backward begins there, outermost first, and ends there.
  void find_backward_bounds() {
    for (std::uint32_t i = 0; i < t_.calls.size(); ++i) {
      if (is_backward(step_[t_.calls[i].pass].kind) || schedule_.backward_begins[i] == kNever) continue;
      begins_.emplace(schedule_.backward_begins[i], CallId(i));
      ends_.emplace(schedule_.backward_ends[i], CallId(i));
    }
  }

  void before(const Event& event, std::uint32_t at) {
    if (event.kind == EventKind::kPhase) pass_ = PassId(event.id);
    if (event.kind == EventKind::kEnter) enter(CallId(event.id));
    for (auto [it, end] = begins_.equal_range(at); it != end; ++it) {
      snapshot(it->second, ReferenceState::kPreBackward);
      snapshot(it->second, ReferenceState::kPeakBackward);
      in_backward_.insert(step_[it->second].module);
      record_.backward_pre.push_back(step_[it->second].module);
    }
  }

  void after(const Event& event, std::uint32_t at) {
    if (event.kind == EventKind::kEnd) {
      meet_outputs(OpId(event.id));
      look_for_peaks();
    }
    for (auto [it, end] = schedule_.retags.equal_range(at); it != end; ++it) retag(it->second);
    if (event.kind == EventKind::kExit) exit_call(CallId(event.id));
    for (auto [it, end] = ends_.equal_range(at); it != end; ++it) {
      snapshot(it->second, ReferenceState::kPostBackward);
      in_backward_.erase(in_backward_.find(step_[it->second].module));
      record_.backward_post.push_back(step_[it->second].module);
    }
  }

  void retag(StorageId storage) {
    Known& known = known_[storage.index()];
    if (!known.is_alive) return;
    add(known.category, -known.bytes);
    known.category = ReferenceCategory::kGradient;
    add(known.category, known.bytes);
  }

  ReferenceModule& record_of(ModuleId module) {
    std::uint32_t& position = record_of_[module.index()];
    if (position == kNever) {
      position = static_cast<std::uint32_t>(record_.modules.size());
      record_.modules.push_back({.module = module,
                                 .parameter_bytes = parameter_bytes_[module.index()],
                                 .buffer_bytes = buffer_bytes_[module.index()],
                                 .snapshots = {}});
    }
    return record_.modules[position];
  }

  // Adds every parameter and buffer to the module that has it and to all modules above it, each storage once.
  void measure_bindings() {
    parameter_bytes_.assign(t_.modules.size(), 0);
    buffer_bytes_.assign(t_.modules.size(), 0);
    std::set<std::pair<ModuleId, StorageId>> seen;
    for (const Binding& binding : t_.bindings) {
      const StorageId storage = step_[binding.tensor].storage;
      auto& bytes = binding.kind == BindingKind::kParameter ? parameter_bytes_ : buffer_bytes_;
      for (ModuleId module = binding.module; module.has_value(); module = step_[module].parent)
        if (seen.emplace(module, storage).second) bytes[module.index()] += rounded(storage, step_[storage].bytes);
    }
  }

  template <class Tensors>
  std::int64_t known_bytes(const Tensors& tensors) const {
    std::int64_t bytes = 0;
    for (const TensorId tensor : tensors) {
      const Known& known = known_[step_[tensor].storage.index()];
      if (known.is_alive) bytes += known.bytes;
    }
    return bytes;
  }

  void snapshot(CallId call, ReferenceState state) {
    record_of(step_[call].module).snapshots[static_cast<std::size_t>(state)].push_back(now_);
  }

  bool runs_again() const { return pass_.has_value() && is_backward(step_[pass_].kind); }

  void enter(CallId call) {
    if (runs_again()) return snapshot(call, ReferenceState::kPreForwardAc);
    record_of(step_[call].module).input_bytes = known_bytes(step_.inputs(step_[call]));
    snapshot(call, ReferenceState::kPreForward);
    snapshot(call, ReferenceState::kPeakForward);
    in_forward_.push_back(step_[call].module);
  }

  void exit_call(CallId call) {
    if (runs_again()) return snapshot(call, ReferenceState::kPostForwardAc);
    record_of(step_[call].module).output_bytes = known_bytes(step_.outputs(step_[call]));
    snapshot(call, ReferenceState::kPostForward);
    in_forward_.pop_back();
    record_.forward_post.push_back(step_[call].module);
  }

  // A snapshot that is exceeded is replaced; the first of several equal ones stays.
  void look_for_peaks() {
    if (now_.total_bytes > record_.peak.total_bytes) record_.peak = now_;
    const ReferenceState state = runs_again() ? ReferenceState::kPeakBackward : ReferenceState::kPeakForward;
    const auto raise = [&](ModuleId module) {
      auto& list = record_of(module).snapshots[static_cast<std::size_t>(state)];
      if (!list.empty() && list.back().total_bytes < now_.total_bytes) list.back() = now_;
    };
    if (runs_again()) {
      for (const ModuleId module : in_backward_) raise(module);
    } else {
      for (const ModuleId module : in_forward_) raise(module);
    }
  }

  const Step& step_;
  const StepTables& t_;
  const ReferenceOptions& options_;
  const Schedule schedule_;
  ReferenceRecord record_;
  ReferenceSnapshot now_;
  PassId pass_;
  std::vector<Known> known_;              // by storage
  std::vector<std::uint32_t> record_of_;  // by module
  std::vector<ModuleId> in_forward_;
  std::multiset<ModuleId> in_backward_;        // once for each of its calls
  std::vector<std::int64_t> parameter_bytes_;  // by module
  std::vector<std::int64_t> buffer_bytes_;
  std::multimap<std::uint32_t, CallId> begins_;
  std::multimap<std::uint32_t, CallId> ends_;
};

}  // namespace

ReferenceRecord track_like_reference(const Step& step, const ReferenceOptions& options) {
  return Tracker(step, options).run();
}

}  // namespace tidemark::memory
