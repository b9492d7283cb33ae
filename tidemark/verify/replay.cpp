#include "tidemark/verify/replay.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tidemark/base/checked.h"
#include "tidemark/base/error.h"

namespace tidemark::verify {

namespace {

using namespace step;

constexpr std::int64_t kRngStateBytes = 5056;

[[noreturn]] void refuse(std::string problem) {
  throw Error({.kind = ErrorKind::kInput,
               .place = "plan",
               .problem = std::move(problem),
               .expected = "a plan for this step",
               .got = {},
               .remedy = {}});
}

template <class T>
void add_once(std::vector<T>& list, const T& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

// A storage as the record speaks of it, or as a recompute makes it.
struct Instance {
  StorageId storage;
  bool is_copy = false;

  friend auto operator<=>(const Instance&, const Instance&) = default;
};

std::string name_of(const Instance& instance) {
  return (instance.is_copy ? "copy " : "original ") + std::to_string(instance.storage.value());
}

// An op between its begin and its end.
struct RunningOp {
  OpId op;
  std::vector<std::int64_t> workspace;  // every one that came
  std::set<std::size_t> gone;           // which of them have gone
  std::set<StorageId> made_by_row;      // alloc events to skip
};

struct CacheEntry {
  OpId op;
  StorageId storage;

  friend bool operator==(const CacheEntry&, const CacheEntry&) = default;
};

// A unit: first what the page calls its words, then what has happened to it.
struct UnitState {
  std::uint32_t number = 0;
  CallId call;
  std::set<OpId> saved_ops;
  bool preserve_rng = false;
  bool early_stop = false;
  std::uint32_t enter = 0;
  std::uint32_t exit = 0;
  std::set<StorageId> inside;
  std::set<SaveId> saves;
  std::uint32_t last_pack = 0;  // position of the last of its saves
  std::vector<StorageId> inputs;

  std::vector<CacheEntry> cache;  // what the frame holds of it now
  bool has_recomputed = false;
  bool is_left = false;
  bool is_frame_dead = false;
};

class Replay {
 public:
  Replay(const Step& step, const plan::Plan& plan, const Options& options)
      : step_(step), events_(step.tables().events), options_(options) {
    look_at_events();
    look_at_workspace();
    for (const plan::Unit& unit : plan.units) add_unit(unit);
    for (const UnitState& a : units_)
      for (const UnitState& b : units_)
        if (a.number != b.number && a.enter <= b.enter && b.enter < a.exit) refuse("a unit lies inside another");
  }

  Replayed run() {
    start();
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      event_ = i;
      happen(events_[i]);
    }
    list_leftovers();
    list_runners_up();
    result_.end_bytes = total_;
    return std::move(result_);
  }

 private:
  // ---- What the record says ----

  void look_at_events() {
    OpId op;
    PassId pass;
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (event.kind == EventKind::kPhase) pass = PassId(event.id);
      if (event.kind == EventKind::kEnter) enter_at_[CallId(event.id)] = i;
      if (event.kind == EventKind::kExit) exit_at_[CallId(event.id)] = i;
      if (event.kind == EventKind::kBegin) op = OpId(event.id);
      if (event.kind == EventKind::kBegin) begin_at_[op] = i;
      if (event.kind == EventKind::kEnd) op = OpId();
      if (event.kind != EventKind::kAlloc) continue;
      alloc_at_[StorageId(event.id)] = i;
      alloc_pass_[StorageId(event.id)] = pass;
      if (op.has_value()) alloc_op_[StorageId(event.id)] = op;
      if (op.has_value()) allocs_of_[op].push_back(StorageId(event.id));
    }
    for (const Save& save : step_.tables().saves) saved_anywhere_.insert(step_[save.tensor].storage);
  }

  void look_at_workspace() {
    if (options_.workspace == nullptr) return;
    for (const memory::WorkspaceRow& row : options_.workspace->rows) rows_[row.key] = row.steps;
  }

  void add_unit(const plan::Unit& unit) {
    if (!enter_at_.contains(unit.call)) refuse("a unit is not a call of the step");
    const PassKind kind = step_[step_[unit.call].pass].kind;
    if (kind != PassKind::kForward && kind != PassKind::kLoss) refuse("a unit is not of a forward or loss pass");
    UnitState u;
    u.number = static_cast<std::uint32_t>(units_.size());
    u.call = unit.call;
    u.saved_ops = {unit.saved_ops.begin(), unit.saved_ops.end()};
    u.preserve_rng = unit.preserve_rng && options_.preserve_rng;
    u.early_stop = unit.early_stop && options_.early_stop;
    u.enter = enter_at_.at(unit.call);
    u.exit = exit_at_.at(unit.call);
    for (const OpId op : u.saved_ops)
      if (!begin_at_.contains(op) || begin_at_.at(op) <= u.enter || begin_at_.at(op) >= u.exit)
        refuse("a saved op does not begin in its unit");
    for (const TensorId tensor : step_.inputs(step_[u.call])) add_input(u, tensor);
    for (std::uint32_t i = u.enter + 1; i < u.exit; ++i) look_at_region(u, i);
    units_.push_back(std::move(u));
  }

  void look_at_region(UnitState& u, std::uint32_t position) {
    const Event& event = events_[position];
    switch (event.kind) {
      case EventKind::kNode:
      case EventKind::kDone:
      case EventKind::kUnpack:
      case EventKind::kDrop:
        refuse("a unit has backward in its region");
      case EventKind::kAlloc:
        u.inside.insert(StorageId(event.id));
        return;
      case EventKind::kBegin:
        for (const TensorId tensor : step_.inputs(step_[OpId(event.id)])) add_input(u, tensor);
        return;
      case EventKind::kPack:
        if (!step_[SaveId(event.id)].hooked) return;
        add_input(u, step_[SaveId(event.id)].tensor);
        u.saves.insert(SaveId(event.id));
        u.last_pack = position;
        return;
      default:
        return;
    }
  }

  void add_input(UnitState& u, TensorId tensor) const {
    const StorageId storage = step_[tensor].storage;
    if (alloc_at_.contains(storage) && alloc_at_.at(storage) >= u.enter) return;
    add_once(u.inputs, storage);
  }

  // The storages of all outputs of an op.
  std::vector<StorageId> cache_of(OpId op) const {
    std::vector<StorageId> storages;
    for (const Output& output : step_.outputs(step_[op])) add_once(storages, step_[output.tensor].storage);
    if (options_.mutation == Mutation::kCacheKeepsFirstOutputOnly && storages.size() > 1) storages.resize(1);
    return storages;
  }

  bool is_in_cache_of(OpId op, StorageId storage) const {
    const std::vector<StorageId> cache = cache_of(op);
    return std::find(cache.begin(), cache.end(), storage) != cache.end();
  }

  // What a storage means in the recompute of a unit.
  Instance inst(const UnitState& u, StorageId storage) const {
    if (!u.inside.contains(storage)) return {storage, false};
    const auto op = alloc_op_.find(storage);
    if (op != alloc_op_.end() && u.saved_ops.contains(op->second) && is_in_cache_of(op->second, storage))
      return {storage, false};
    return {storage, true};
  }

  UnitState* unit_of_save(SaveId save) {
    for (UnitState& u : units_)
      if (u.saves.contains(save)) return &u;
    return nullptr;
  }

  // The unit in whose region the position is.
  UnitState* unit_around(std::uint32_t position) {
    for (UnitState& u : units_)
      if (u.enter < position && position < u.exit) return &u;
    return nullptr;
  }

  StorageId storage_of(SaveId save) const { return step_[step_[save].tensor].storage; }

  // ---- Memory ----

  std::int64_t rounded(std::int64_t bytes) const {
    const std::int64_t rest = bytes % options_.round_to_bytes;
    return rest == 0 ? bytes : sum(bytes, options_.round_to_bytes - rest);
  }

  static std::int64_t sum(std::int64_t a, std::int64_t b) {
    const auto result = checked_add(a, b);
    if (!result)
      throw Error({.kind = ErrorKind::kLimit,
                   .place = "replay",
                   .problem = "more bytes are alive than fit 63 bits",
                   .expected = {},
                   .got = {},
                   .remedy = {}});
    return *result;
  }

  void change(bool comes, std::int64_t bytes, const std::string& block, const std::string& category) {
    const std::int64_t signed_bytes = comes ? bytes : -bytes;
    total_ = sum(total_, signed_bytes);
    by_category_[category] += signed_bytes;
    result_.changes.push_back({comes, signed_bytes, total_, block, category, event_, running_op_, module_call_, pass_,
                               recomputing_, stretch_});
    if (options_.is_detailed)
      for (const CallId call : open_calls_) raise(result_.calls[call].forward_bytes);
    note_backward();
    if (total_ <= result_.peak_bytes) return;
    result_.peak_bytes = total_;
    result_.peak_change = result_.changes.size();
    note_peak_categories();
  }

  void raise(std::optional<std::int64_t>& most) const { most = std::max(most.value_or(total_), total_); }

  // The total counts for the module call and those around it, when backward is running.
  void note_backward() {
    if (pass_.is_none() || !options_.is_detailed) return;
    if (step_[pass_].kind != PassKind::kBackward && step_[pass_].kind != PassKind::kRecompute) return;
    for (CallId call = module_call_; call.has_value(); call = step_[call].parent)
      raise(result_.calls[call].backward_bytes);
  }

  void be_in(CallId call) {
    if (call != module_call_) ++stretch_;
    module_call_ = call;
    note_backward();
  }

  void note_peak_categories() {
    if (!options_.is_detailed) return;
    result_.peak_by_category.clear();
    for (const auto& [category, bytes] : by_category_)
      if (bytes != 0) result_.peak_by_category[category] = bytes;
  }

  std::string category_of(const Instance& instance) const {
    if (!options_.is_detailed) return {};
    if (instance.is_copy) return "recomputed";
    const StorageId storage = instance.storage;
    const Role role = step_[storage].role;
    if (role != Role::kPlain) return std::string(step::name_of(role));
    if (!alloc_at_.contains(storage)) return "other";
    const PassId pass = alloc_pass_.at(storage);
    if (pass.is_none()) return "temporary";
    const PassKind kind = step_[pass].kind;
    if (kind == PassKind::kRecompute) return "recomputed";
    const bool is_forward = kind == PassKind::kForward || kind == PassKind::kLoss;
    return is_forward && is_kept(storage) ? "activation" : "temporary";
  }

  // By a save of the record, or by the frame of a unit.
  bool is_kept(StorageId storage) const {
    if (saved_anywhere_.contains(storage)) return true;
    for (const UnitState& u : units_) {
      if (std::find(u.inputs.begin(), u.inputs.end(), storage) != u.inputs.end()) return true;
      for (const OpId op : u.saved_ops)
        if (is_in_cache_of(op, storage)) return true;
    }
    return false;
  }

  std::int64_t size_of(const Instance& instance) const {
    const auto resized = sizes_.find(instance);
    return rounded(resized != sizes_.end() ? resized->second : step_[instance.storage].bytes);
  }

  bool is_alive(const Instance& instance) const {
    const auto found = holders_.find(instance);
    return found != holders_.end() && !found->second.empty();
  }

  bool is_held_by(const Instance& instance, const std::string& holder) const {
    const auto found = holders_.find(instance);
    return found != holders_.end() && found->second.contains(holder);
  }

  void take(const Instance& instance, const std::string& holder) {
    const bool was_alive = is_alive(instance);
    holders_[instance].insert(holder);
    if (!was_alive) change(true, size_of(instance), name_of(instance), category_of(instance));
  }

  void let_go(const Instance& instance, const std::string& holder) {
    TIDEMARK_CHECK(is_held_by(instance, holder), holder + " holds what it lets go of");
    holders_[instance].erase(holders_[instance].find(holder));
    if (!is_alive(instance)) change(false, size_of(instance), name_of(instance), category_of(instance));
  }

  void resize_to(const Instance& instance, std::int64_t bytes) {
    if (is_alive(instance)) change(false, size_of(instance), name_of(instance), category_of(instance));
    sizes_[instance] = bytes;
    if (is_alive(instance)) change(true, size_of(instance), name_of(instance), category_of(instance));
  }

  void rng_state(bool comes, const UnitState& u, int part) {
    change(comes, rounded(kRngStateBytes), "rng_state " + std::to_string(u.number) + " part " + std::to_string(part),
           "other");
  }

  static std::string program() { return "program"; }
  static std::string save_of(SaveId save) { return "save " + std::to_string(save.value()); }
  static std::string unpacked(SaveId save) { return "unpacked from save " + std::to_string(save.value()); }
  static std::string frame(const UnitState& u) { return "frame of unit " + std::to_string(u.number); }
  static std::string cache(const UnitState& u, OpId op) {
    return frame(u) + ", cache of op " + std::to_string(op.value());
  }
  static std::string recompute(const UnitState& u) { return "recompute of unit " + std::to_string(u.number); }
  static std::string graph(SaveId save) { return "recomputed graph, save " + std::to_string(save.value()); }

  // ---- Workspace ----

  void workspace_piece(bool comes, const RunningOp& running, std::size_t part) {
    change(comes, rounded(running.workspace[part]),
           "workspace " + std::to_string(running.op.value()) + " part " + std::to_string(part), "workspace");
  }

  // What happens inside an op, if a row says so. `around` is the unit in whose region the op is, `recomputed` the same
  // in a recompute.
  std::vector<memory::WorkspaceStep> row_of(OpId op, const UnitState* around, const UnitState* recomputed) const {
    const bool is_watched = around != nullptr && !around->saved_ops.empty();
    if (is_watched && step_[op].flags.has(OpFlag::kUnwatched) &&
        options_.mutation != Mutation::kUnwatchedStaysInPlace) {
      const StorageId output = step_[step_.outputs(step_[op]).front().tensor].storage;
      const Instance instance = recomputed == nullptr ? Instance{output, false} : inst(*recomputed, output);
      return {{memory::WorkspaceStepKind::kTake, size_of(instance)}};
    }
    if (rows_.empty()) return {};
    const std::string key = memory::workspace_key(step_, op);
    if (is_watched && rows_.contains(key + " watched") && options_.mutation != Mutation::kWatchedRowIgnored)
      return rows_.at(key + " watched");
    return rows_.contains(key) ? rows_.at(key) : std::vector<memory::WorkspaceStep>();
  }

  // `around` is the unit of the op, if any; `recomputed` the same in a recompute, else nullptr.
  void begin_op(RunningOp& running, OpId op, const UnitState* around, const UnitState* recomputed) {
    running = {op, {}, {}, {}};
    for (const memory::WorkspaceStep& step : row_of(op, around, recomputed)) {
      const auto value = static_cast<std::size_t>(step.value);
      switch (step.kind) {
        case memory::WorkspaceStepKind::kMake: {
          const std::vector<StorageId>& allocs = allocs_of_[op];
          if (value >= allocs.size() || running.made_by_row.contains(allocs[value])) break;
          running.made_by_row.insert(allocs[value]);
          make(allocs[value], recomputed);
          break;
        }
        case memory::WorkspaceStepKind::kTake:
          running.workspace.push_back(step.value);
          workspace_piece(true, running, running.workspace.size() - 1);
          break;
        case memory::WorkspaceStepKind::kGive:
          running.gone.insert(value);
          workspace_piece(false, running, value);
          break;
      }
    }
  }

  void make(StorageId storage, const UnitState* recomputed) {
    if (recomputed == nullptr) {
      take({storage, false}, program());
    } else {
      take(inst(*recomputed, storage), recompute(*recomputed));
      made_in_recompute_.push_back(storage);
    }
  }

  // What has not gone yet goes, in the order in which it came.
  void end_workspace(RunningOp& running) {
    for (std::size_t part = 0; part < running.workspace.size(); ++part)
      if (!running.gone.contains(part)) workspace_piece(false, running, part);
    running = {};
  }

  // ---- Events ----

  void start() {
    for (std::uint32_t i = 0; i < step_.tables().storages.size(); ++i) {
      const Instance original{StorageId(i), false};
      if (alloc_at_.contains(original.storage)) continue;
      holders_[original].insert(program());
      total_ = sum(total_, size_of(original));
      by_category_[category_of(original)] += size_of(original);
    }
    result_.start_bytes = total_;
    result_.peak_bytes = total_;
    note_peak_categories();
  }

  void happen(const Event& event) {
    switch (event.kind) {
      case EventKind::kPhase:
        return on_phase(PassId(event.id));
      case EventKind::kEnter:
        return on_enter(CallId(event.id));
      case EventKind::kExit:
        return on_exit(CallId(event.id));
      case EventKind::kBegin:
        return on_begin(OpId(event.id));
      case EventKind::kEnd:
        return on_end(OpId(event.id));
      case EventKind::kAlloc:
        return on_alloc(StorageId(event.id));
      case EventKind::kFree:
        return let_go({StorageId(event.id), false}, program());
      case EventKind::kResize: {
        const Resize& resize = step_[ResizeId(event.id)];
        return resize_to({resize.storage, false}, resize.bytes);
      }
      case EventKind::kPack:
        return on_pack(SaveId(event.id));
      case EventKind::kUnpack:
        return on_unpack(SaveId(event.id));
      case EventKind::kDrop:
        return on_drop(SaveId(event.id));
      case EventKind::kRelease:
        return on_release(SaveId(event.id));
      case EventKind::kNode:
      case EventKind::kDone:
        return;
    }
  }

  void on_phase(PassId pass) {
    ++stretch_;
    pass_ = pass;
    note_backward();
  }

  void on_enter(CallId call) {
    ++stretch_;
    be_in(call);
    open_calls_.push_back(call);
    raise(result_.calls[call].forward_bytes);
    for (const UnitState& u : units_) {
      if (u.call != call) continue;
      for (const StorageId input : u.inputs) take({input, false}, frame(u));
      if (u.preserve_rng) rng_state(true, u, 0);
    }
  }

  void on_exit(CallId call) {
    ++stretch_;
    be_in(call);
    for (UnitState& u : units_) {
      if (u.call != call) continue;
      u.is_left = true;
      if (are_all_released(u)) frame_dies(u);
    }
    open_calls_.pop_back();
    be_in(step_[call].parent);
  }

  void on_begin(OpId op) {
    running_op_ = op;
    if (step_[op].call.has_value()) be_in(step_[op].call);
    begin_op(running_, op, unit_around(event_), nullptr);
  }

  void on_end(OpId op) {
    end_workspace(running_);
    UnitState* u = unit_around(event_);
    if (u != nullptr && u->saved_ops.contains(op)) {
      for (const StorageId storage : cache_of(op)) {
        take({storage, false}, cache(*u, op));
        u->cache.push_back({op, storage});
      }
    }
    running_op_ = OpId();
  }

  void on_alloc(StorageId storage) {
    if (!running_.made_by_row.contains(storage)) make(storage, nullptr);
  }

  void on_pack(SaveId save) {
    if (unit_of_save(save) != nullptr) return;
    take(held_outside(save), save_of(save));
  }

  // What a save that belongs to no unit refers to.
  Instance held_outside(SaveId save) {
    const StorageId storage = storage_of(save);
    const auto made = alloc_at_.find(storage);
    const bool is_inside = made != alloc_at_.end() && unit_around(made->second) != nullptr;
    return {storage, is_inside && options_.mutation == Mutation::kOutsideSaveHoldsCopy};
  }

  void on_unpack(SaveId save) {
    UnitState* u = unit_of_save(save);
    if (u == nullptr) return take(held_outside(save), unpacked(save));
    if (!u->has_recomputed) run_again(*u);
    const Instance instance = inst(*u, storage_of(save));
    take(instance, unpacked(save));
    if (options_.mutation == Mutation::kSaveKeepsWhatItHandsOver) return;
    if (is_held_by(instance, save_of(save))) let_go(instance, save_of(save));
  }

  void on_drop(SaveId save) {
    const UnitState* u = unit_of_save(save);
    let_go(u == nullptr ? held_outside(save) : inst(*u, storage_of(save)), unpacked(save));
  }

  void on_release(SaveId save) {
    released_.insert(save);
    UnitState* u = unit_of_save(save);
    if (u == nullptr) return let_go(held_outside(save), save_of(save));
    const Instance instance = inst(*u, storage_of(save));
    if (is_held_by(instance, save_of(save))) let_go(instance, save_of(save));
    const bool is_enough = are_all_released(*u) || options_.mutation == Mutation::kFrameLetsGoEarly;
    if (u->is_left && is_enough) frame_dies(*u);
  }

  bool are_all_released(const UnitState& u) const {
    return std::includes(released_.begin(), released_.end(), u.saves.begin(), u.saves.end());
  }

  void frame_dies(UnitState& u) {
    if (u.is_frame_dead) return;  // only a mutation asks twice
    u.is_frame_dead = true;
    for (const StorageId input : u.inputs) let_go({input, false}, frame(u));
    cache_goes(u);
    if (u.preserve_rng) rng_state(false, u, 0);
  }

  void cache_goes(UnitState& u) {
    for (const CacheEntry& entry : u.cache) let_go({entry.storage, false}, cache(u, entry.op));
    u.cache.clear();
  }

  // ---- Recompute ----

  void run_again(UnitState& u) {
    u.has_recomputed = true;
    const std::uint32_t event_before = event_;
    const OpId op_before = running_op_;
    const CallId call_before = module_call_;
    recomputing_ = u.number;
    running_op_ = OpId();
    ++stretch_;
    be_in(u.call);
    const bool has_rng_state = u.preserve_rng && options_.mutation != Mutation::kForgetRngState;
    if (has_rng_state) rng_state(true, u, 1);

    RunningOp running;
    std::vector<SaveId> in_graph;  // packs of the recomputed graph, in order
    for (std::uint32_t i = u.enter + 1; i < u.exit; ++i) {
      event_ = i;
      happen_again(u, events_[i], running, in_graph);
      if (u.early_stop && is_stop(u, i)) break;
    }

    event_ = event_before;
    if (options_.mutation != Mutation::kCutWorkspaceGoesLast) end_workspace(running);
    running_op_ = OpId();  // the stop may have cut one short
    for (const StorageId storage : std::exchange(made_in_recompute_, {})) let_go(inst(u, storage), recompute(u));
    for (const SaveId save : in_graph) let_go(inst(u, storage_of(save)), graph(save));
    end_workspace(running);
    if (options_.mutation == Mutation::kUnreachedCacheGoesWithStop) cache_goes(u);
    if (has_rng_state) rng_state(false, u, 1);

    recomputing_.reset();
    running_op_ = op_before;
    ++stretch_;
    be_in(call_before);
  }

  // Whether a recompute with early stop ends after the event at this position.
  bool is_stop(const UnitState& u, std::uint32_t position) const {
    if (options_.mutation == Mutation::kEarlyStopOneOpLate)
      return position > u.last_pack && events_[position].kind == EventKind::kEnd;
    return position == u.last_pack;
  }

  void happen_again(UnitState& u, const Event& event, RunningOp& running, std::vector<SaveId>& in_graph) {
    switch (event.kind) {
      case EventKind::kEnter:
        return be_in(CallId(event.id));
      case EventKind::kExit:
        return be_in(step_[CallId(event.id)].parent);
      case EventKind::kBegin:
        return begin_again(u, OpId(event.id), running);
      case EventKind::kEnd:
        return end_again(u, OpId(event.id), running);
      case EventKind::kAlloc:
        return alloc_again(u, StorageId(event.id), running);
      case EventKind::kFree:
        return free_again(u, StorageId(event.id));
      case EventKind::kResize: {
        const Resize& resize = step_[ResizeId(event.id)];
        const Instance instance = inst(u, resize.storage);
        if (instance.is_copy) resize_to(instance, resize.bytes);
        return;
      }
      case EventKind::kPack:
        return pack_again(u, SaveId(event.id), in_graph);
      case EventKind::kRelease:
        return release_again(u, SaveId(event.id), in_graph);
      default:
        return;
    }
  }

  void begin_again(UnitState& u, OpId op, RunningOp& running) {
    running_op_ = op;
    if (step_[op].call.has_value()) be_in(step_[op].call);
    if (u.saved_ops.contains(op))
      running = {op, {}, {}, {}};
    else
      begin_op(running, op, &u, &u);
  }

  void end_again(UnitState& u, OpId op, RunningOp& running) {
    end_workspace(running);
    if (u.saved_ops.contains(op)) {
      for (const StorageId storage : cache_of(op)) {
        let_go({storage, false}, cache(u, op));
        std::erase(u.cache, CacheEntry{op, storage});
      }
    }
    running_op_ = OpId();
  }

  void alloc_again(UnitState& u, StorageId storage, const RunningOp& running) {
    if (running.made_by_row.contains(storage)) return;
    if (u.saved_ops.contains(running.op) && !is_in_cache_of(running.op, storage)) return;
    make(storage, &u);
  }

  void free_again(const UnitState& u, StorageId storage) {
    if (options_.mutation == Mutation::kRecomputeKeepsTemporaries) return;
    const auto found = std::find(made_in_recompute_.begin(), made_in_recompute_.end(), storage);
    if (found == made_in_recompute_.end()) return;
    made_in_recompute_.erase(found);
    let_go(inst(u, storage), recompute(u));
  }

  void pack_again(const UnitState& u, SaveId save, std::vector<SaveId>& in_graph) {
    const Instance instance = inst(u, storage_of(save));
    if (u.saves.contains(save) && !released_.contains(save)) return take(instance, save_of(save));
    if (!u.saves.contains(save) && options_.mutation == Mutation::kUnhookedSaveNotRecomputed) return;
    take(instance, graph(save));
    in_graph.push_back(save);
  }

  void release_again(const UnitState& u, SaveId save, std::vector<SaveId>& in_graph) {
    const auto found = std::find(in_graph.begin(), in_graph.end(), save);
    if (found == in_graph.end()) return;
    in_graph.erase(found);
    let_go(inst(u, storage_of(save)), graph(save));
  }

  // ---- The end ----

  void list_leftovers() {
    for (const auto& [instance, holders] : holders_)
      if (!holders.empty()) result_.alive_at_end[name_of(instance)] = {size_of(instance), reason_of(instance, holders)};
    for (const UnitState& u : units_)
      if (u.preserve_rng && !u.is_frame_dead)
        result_.alive_at_end["rng_state " + std::to_string(u.number) + " part 0"] = {rounded(kRngStateBytes), "frame"};
  }

  // The highest moment of every stretch but that of the peak; the start is in no stretch.
  void list_runners_up() {
    std::optional<std::uint32_t> peak_stretch;
    if (result_.peak_change > 0) peak_stretch = result_.changes[result_.peak_change - 1].stretch;
    std::map<std::uint32_t, std::size_t> highest;  // by stretch
    for (std::size_t i = 0; i < result_.changes.size(); ++i) {
      const Change& change = result_.changes[i];
      if (!change.comes || change.stretch == peak_stretch) continue;
      const auto [found, is_first] = highest.emplace(change.stretch, i + 1);
      if (!is_first && change.total_bytes > total_after(found->second)) found->second = i + 1;
    }
    for (const auto& [stretch, changes] : highest) result_.runners_up.push_back(changes);
    std::stable_sort(result_.runners_up.begin(), result_.runners_up.end(),
                     [this](std::size_t a, std::size_t b) { return total_after(a) > total_after(b); });
  }

  std::int64_t total_after(std::size_t changes) const { return result_.changes[changes - 1].total_bytes; }

  std::string reason_of(const Instance& instance, const std::multiset<std::string>& holders) const {
    if (holders.contains(program())) return alloc_at_.contains(instance.storage) ? "program" : "resident";
    for (const std::string& holder : holders)
      if (holder.starts_with("save ")) return "save";
    for (const std::string& holder : holders)
      if (holder.starts_with("unpacked ")) return "unpacked";
    return "frame";
  }

  const Step& step_;
  const std::vector<Event>& events_;
  const Options& options_;

  // What the record says, by position in the events.
  std::map<CallId, std::uint32_t> enter_at_;
  std::map<CallId, std::uint32_t> exit_at_;
  std::map<OpId, std::uint32_t> begin_at_;
  std::map<StorageId, std::uint32_t> alloc_at_;
  std::map<StorageId, PassId> alloc_pass_;
  std::map<StorageId, OpId> alloc_op_;  // the op around the alloc event, if any
  std::map<OpId, std::vector<StorageId>> allocs_of_;
  std::set<StorageId> saved_anywhere_;
  std::map<std::string, std::vector<memory::WorkspaceStep>> rows_;
  std::vector<UnitState> units_;  // as the plan lists them

  // What is alive.
  std::map<Instance, std::multiset<std::string>> holders_;  // a save may be unpacked twice
  std::map<Instance, std::int64_t> sizes_;                  // of those that were resized
  std::set<SaveId> released_;
  std::vector<StorageId> made_in_recompute_;  // and held by it, in the order in which it took them
  RunningOp running_;
  std::int64_t total_ = 0;
  std::map<std::string, std::int64_t> by_category_;

  // Where we are.
  std::uint32_t event_ = 0;
  OpId running_op_;
  CallId module_call_;
  PassId pass_;
  std::optional<std::uint32_t> recomputing_;
  std::vector<CallId> open_calls_;
  std::uint32_t stretch_ = 0;
  Replayed result_;
};

}  // namespace

Replayed replay(const Step& step, const plan::Plan& plan, const Options& options) {
  return Replay(step, plan, options).run();
}

}  // namespace tidemark::verify
