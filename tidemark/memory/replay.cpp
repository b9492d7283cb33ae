#include "tidemark/memory/replay.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/base/rounding.h"
#include "tidemark/memory/ledger.h"
#include "tidemark/memory/replay_setup.h"

// The replay keeps a number of holders for every instance of a storage and walks the events once. A recompute walks the
// events of its unit's region again, with instances of its own. What is alive, and nothing else, is told to the ledger.

namespace tidemark::memory {

namespace {

using namespace step;
using detail::Ledger;
using detail::Setup;
using detail::UnitFacts;

constexpr std::size_t kMaxRunnersUp = 64;

// Originals come first, by storage; then, when there are units, copies.
using InstanceId = std::uint32_t;

struct Instance {
  std::int64_t bytes = 0;
  std::uint32_t holders = 0;
  Category category = Category::kOther;
  bool program_holds = false;
};

struct SaveState {
  InstanceId instance = 0;
  std::uint32_t unpacked = 0;  // tensors given out and not dropped
  bool holds = false;          // the save itself
  bool graph_holds = false;    // the graph that a recompute builds
  bool released = false;
};

struct FrameState {
  bool has_left = false;
  bool is_recomputed = false;
  std::array<bool, 2> has_rng = {};  // of the frame, of its recompute
  std::uint32_t unreleased = 0;
};

struct Hidden {
  std::int64_t bytes = 0;
  bool is_alive = false;
};

// The op that is running, when it has a row in the workspace table.
struct RowState {
  OpId op;
  std::vector<Hidden> hidden;
  std::vector<std::uint32_t> allocs;  // its alloc events
  std::vector<std::uint8_t> is_made;  // of these, the ones that the row has made happen
  std::size_t next_alloc = 0;         // the alloc event that comes next where it stands
};

class Replay {
 public:
  Replay(const Step& step, const Setup& setup, const ReplayOptions& options, const detail::LedgerOptions& ledger)
      : step_(step),
        t_(step.tables()),
        setup_(setup),
        options_(options),
        ledger_(step, ledger),
        storage_count_(static_cast<std::uint32_t>(t_.storages.size())),
        saves_(t_.saves.size()),
        frames_(setup.units.size()) {
    instances_.reserve(std::size_t{storage_count_} * (setup.has_units() ? 2 : 1));
    for (std::uint32_t i = 0; i < storage_count_; ++i)
      instances_.push_back({rounded(t_.storages[i].bytes), 0, setup.categories[i], false});
    if (!setup.has_units()) return;
    for (std::uint32_t i = 0; i < storage_count_; ++i)
      instances_.push_back({instances_[i].bytes, 0, Category::kRecomputed, false});
    recompute_holds_.assign(storage_count_, 0);
    is_cache_held_.assign(t_.ops.size(), 0);
  }

  void run() {
    start();
    const auto count = static_cast<std::uint32_t>(t_.events.size());
    for (std::uint32_t at = 0; at < count; ++at) {
      ledger_.at.event = at;
      happen(t_.events[at]);
      if (ledger_.has_passed_watched()) return;
    }
  }

  // Runs up to a change (0: the start) and tells what is alive right after it.
  std::vector<Alive> run_to_watched(std::int64_t watched_change) {
    std::vector<Alive> found;
    ledger_.when_watched = [&] { found = alive(); };
    if (watched_change > 0) {
      run();
    } else {
      start();
      found = alive();
    }
    return found;
  }

  void finish(Timeline& timeline) {
    ledger_.finish(timeline);
    timeline.alive_at_end = leftovers();
  }

 private:
  // --- sizes and blocks

  std::int64_t rounded(std::int64_t bytes) const { return round_up(bytes, options_.round_to_bytes); }
  std::int64_t rng_bytes() const { return rounded(kRngStateBytes); }

  bool is_copy(InstanceId instance) const { return instance >= storage_count_; }
  StorageId storage_of(InstanceId instance) const {
    return StorageId(is_copy(instance) ? instance - storage_count_ : instance);
  }
  BlockId block_of(InstanceId instance) const {
    return {is_copy(instance) ? BlockKind::kCopy : BlockKind::kOriginal, storage_of(instance).value(), 0};
  }

  // Everything alive now, largest first.
  std::vector<Alive> alive() const {
    std::vector<Alive> list;
    for (std::uint32_t i = 0; i < instances_.size(); ++i) {
      const Instance& instance = instances_[i];
      if (instance.holders == 0 || instance.bytes == 0) continue;
      list.push_back({block_of(i), instance.bytes, instance.category, setup_.index.allocators[storage_of(i).index()]});
    }
    for_each_rng([&](const BlockId& rng) { list.push_back({rng, rng_bytes(), Category::kOther, {}}); });
    for (const RowState* row : {&outer_row_, &row_})
      for (std::uint32_t i = 0; i < row->hidden.size(); ++i)
        if (row->hidden[i].is_alive && row->hidden[i].bytes > 0)
          list.push_back(
              {{BlockKind::kWorkspace, row->op.value(), i}, row->hidden[i].bytes, Category::kWorkspace, row->op});
    std::stable_sort(list.begin(), list.end(), [&](const Alive& a, const Alive& b) { return is_before(a, b); });
    return list;
  }

  // By size, then by when it was made; ids come last, since they may be numbered in any way.
  bool is_before(const Alive& a, const Alive& b) const {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    const auto made = [&](const Alive& x) {
      const bool is_storage = x.block.kind == BlockKind::kOriginal || x.block.kind == BlockKind::kCopy;
      return is_storage ? setup_.index.allocs[x.block.id] : 0;
    };
    return std::pair(made(a), a.block) < std::pair(made(b), b.block);
  }

  // --- holders

  void hold(InstanceId id) {
    Instance& instance = instances_[id];
    if (instance.holders++ == 0) ledger_.came(instance.category, block_of(id), instance.bytes);
  }

  void let_go(InstanceId id) {
    Instance& instance = instances_[id];
    if (--instance.holders == 0) ledger_.went(instance.category, block_of(id), instance.bytes);
  }

  void resize(InstanceId id, std::int64_t bytes) {
    Instance& instance = instances_[id];
    if (instance.holders > 0) ledger_.went(instance.category, block_of(id), instance.bytes);
    instance.bytes = rounded(bytes);
    if (instance.holders > 0) ledger_.came(instance.category, block_of(id), instance.bytes);
  }

  void take_rng(std::uint32_t unit, std::uint32_t part) {
    frames_[unit].has_rng[part] = true;
    ledger_.came(Category::kOther, {BlockKind::kRngState, unit, part}, rng_bytes());
  }

  void give_rng(std::uint32_t unit, std::uint32_t part) {
    frames_[unit].has_rng[part] = false;
    ledger_.went(Category::kOther, {BlockKind::kRngState, unit, part}, rng_bytes());
  }

  template <class Visit>
  void for_each_rng(const Visit& visit) const {
    for (std::uint32_t unit = 0; unit < frames_.size(); ++unit)
      for (std::uint32_t part = 0; part < frames_[unit].has_rng.size(); ++part)
        if (frames_[unit].has_rng[part]) visit(BlockId{BlockKind::kRngState, unit, part});
  }

  InstanceId original(StorageId storage) const { return storage.value(); }
  InstanceId saved_original(std::uint32_t save) const { return original(step_[t_.saves[save].tensor].storage); }

  // --- the record

  void start() {
    for (std::uint32_t i = 0; i < storage_count_; ++i) {
      if (setup_.index.allocs[i] != plan::EventIndex::kNever) continue;
      instances_[i].holders = 1;
      instances_[i].program_holds = true;
      ledger_.start_with(instances_[i].category, instances_[i].bytes);
    }
    ledger_.start();
  }

  void happen(const Event& event) {
    const std::uint32_t id = event.id;
    switch (event.kind) {
      case EventKind::kPhase:
        return ledger_.set_pass(PassId(id));
      case EventKind::kEnter:
        return on_enter(CallId(id));
      case EventKind::kExit:
        return on_exit(CallId(id));
      case EventKind::kBegin:
        return on_begin(OpId(id));
      case EventKind::kEnd:
        return on_end(OpId(id));
      case EventKind::kAlloc:
        if (!is_made_already()) program_takes(id);
        return;
      case EventKind::kFree:
        instances_[id].program_holds = false;
        return let_go(id);
      case EventKind::kResize:
        return resize(original(t_.resizes[id].storage), t_.resizes[id].bytes);
      case EventKind::kPack:
        return on_pack(id);
      case EventKind::kUnpack:
        return on_unpack(id);
      case EventKind::kDrop:
        --saves_[id].unpacked;
        return let_go(saves_[id].instance);
      case EventKind::kRelease:
        return on_release(id);
      case EventKind::kNode:
      case EventKind::kDone:
        return;
    }
  }

  void program_takes(InstanceId id) {
    instances_[id].program_holds = true;
    hold(id);
  }

  std::uint32_t unit_of(CallId call) const { return setup_.has_units() ? setup_.unit_of_call[call.index()] : kNoUnit; }
  std::uint32_t unit_of_save(std::uint32_t save) const {
    return setup_.has_units() ? setup_.unit_of_save[save] : kNoUnit;
  }
  bool is_watched(OpId op) const { return setup_.has_units() && setup_.is_watched_op[op.index()] != 0; }
  bool is_saved(OpId op) const { return setup_.has_units() && setup_.is_saved_op[op.index()] != 0; }

  void on_enter(CallId call) {
    ledger_.enter(call);
    if (const std::uint32_t unit = unit_of(call); unit != kNoUnit) open_frame(unit);
  }

  void on_exit(CallId call) {
    if (const std::uint32_t unit = unit_of(call); unit != kNoUnit) {
      frames_[unit].has_left = true;
      if (frames_[unit].unreleased == 0) close_frame(unit);
    }
    ledger_.leave(call);
  }

  void on_begin(OpId op) {
    ledger_.at.op = op;
    if (step_[op].call.has_value()) ledger_.set_call(step_[op].call);
    if (is_watched(op)) return make_second_storage(op, original(written_by(op)));
    if (has_row(op)) run_row(op, [this](std::uint32_t storage) { program_takes(storage); });
  }

  void on_end(OpId op) {
    if (row_.op.has_value()) end_row();
    if (is_saved(op)) fill_cache(op);
    ledger_.at.op = {};
  }

  void on_pack(std::uint32_t save) {
    SaveState& state = saves_[save];
    const std::uint32_t unit = unit_of_save(save);
    if (unit != kNoUnit) {
      ++frames_[unit].unreleased;
      return;
    }
    state.instance = saved_original(save);
    state.holds = true;
    hold(state.instance);
  }

  void on_unpack(std::uint32_t save) {
    const std::uint32_t unit = unit_of_save(save);
    SaveState& state = saves_[save];
    if (unit != kNoUnit && !frames_[unit].is_recomputed) recompute(unit);
    ++state.unpacked;
    hold(state.instance);
    if (unit != kNoUnit && state.holds) {  // handed over: from here on only the node holds it
      state.holds = false;
      let_go(state.instance);
    }
  }

  void on_release(std::uint32_t save) {
    SaveState& state = saves_[save];
    state.released = true;
    if (state.holds) {
      state.holds = false;
      let_go(state.instance);
    }
    const std::uint32_t unit = unit_of_save(save);
    if (unit == kNoUnit) return;
    FrameState& frame = frames_[unit];
    if (--frame.unreleased == 0 && frame.has_left) close_frame(unit);
  }

  // --- frames

  void open_frame(std::uint32_t unit) {
    for (const StorageId input : setup_.units[unit].inputs) hold(original(input));
    if (setup_.units[unit].preserve_rng) take_rng(unit, 0);
  }

  void close_frame(std::uint32_t unit) {
    const UnitFacts& facts = setup_.units[unit];
    for (const StorageId input : facts.inputs) let_go(original(input));
    for (const OpId op : facts.saved_ops) drop_cache(op);
    if (facts.preserve_rng) give_rng(unit, 0);
  }

  void fill_cache(OpId op) {
    detail::distinct_outputs(step_, op, outputs_);
    for (const StorageId storage : outputs_) hold(original(storage));
    is_cache_held_[op.index()] = 1;
  }

  void drop_cache(OpId op) {
    if (is_cache_held_[op.index()] == 0) return;
    is_cache_held_[op.index()] = 0;
    detail::distinct_outputs(step_, op, outputs_);
    for (const StorageId storage : outputs_) let_go(original(storage));
  }

  // --- recompute

  void recompute(std::uint32_t unit) {
    const UnitFacts& facts = setup_.units[unit];
    const detail::Position before = ledger_.at;
    frames_[unit].is_recomputed = true;
    std::swap(row_, outer_row_);  // an op may be running already
    ledger_.set_call(facts.call, unit);
    ledger_.at.op = {};
    if (facts.preserve_rng) take_rng(unit, 1);
    region_ = facts.region;
    const std::uint32_t stop = facts.early_stop ? facts.last_pack + 1 : facts.region.end;
    for (std::uint32_t at = facts.region.begin; at < stop; ++at) {
      ledger_.at.event = at;
      happen_again(t_.events[at]);
    }
    ledger_.at.event = before.event;
    end_recompute(unit);
    std::swap(row_, outer_row_);
    ledger_.set_call(before.call, before.unit);
    ledger_.at.op = before.op;
  }

  void end_recompute(std::uint32_t unit) {
    if (row_.op.has_value()) end_row();  // of an op that early stop has cut short
    ledger_.at.op = {};
    for (const std::uint32_t storage : recomputed_) recompute_lets_go(storage);
    recomputed_.clear();
    for (const std::uint32_t save : graph_saves_) graph_lets_go(save);
    graph_saves_.clear();
    if (setup_.units[unit].preserve_rng) give_rng(unit, 1);
  }

  InstanceId instance_of(StorageId storage) const {
    const bool is_fresh =
        region_.contains(setup_.index.allocs[storage.index()]) && setup_.is_cached[storage.index()] == 0;
    return is_fresh ? storage.value() + storage_count_ : storage.value();
  }

  void happen_again(const Event& event) {
    const std::uint32_t id = event.id;
    switch (event.kind) {
      case EventKind::kEnter:
        return ledger_.set_call(CallId(id));
      case EventKind::kExit:
        return ledger_.set_call(step_[CallId(id)].parent);
      case EventKind::kBegin:
        return begin_again(OpId(id));
      case EventKind::kEnd:
        return end_again(OpId(id));
      case EventKind::kAlloc:
        return alloc_again(id);
      case EventKind::kFree:
        return recompute_lets_go(id);
      case EventKind::kResize: {
        const InstanceId instance = instance_of(t_.resizes[id].storage);
        if (is_copy(instance)) resize(instance, t_.resizes[id].bytes);
        return;
      }
      case EventKind::kPack:
        return pack_again(id);
      case EventKind::kRelease:
        return graph_lets_go(id);
      default:
        return;
    }
  }

  void begin_again(OpId op) {
    ledger_.at.op = op;
    ledger_.set_call(step_[op].call);
    if (is_saved(op)) return;  // not run again
    if (is_watched(op)) return make_second_storage(op, instance_of(written_by(op)));
    if (has_row(op)) run_row(op, [this](std::uint32_t storage) { recompute_takes(storage); });
  }

  void end_again(OpId op) {
    if (row_.op.has_value()) end_row();
    if (is_saved(op)) drop_cache(op);
    ledger_.at.op = {};
  }

  void alloc_again(std::uint32_t storage) {
    if (is_made_already()) return;
    const bool is_skipped = ledger_.at.op.has_value() && is_saved(ledger_.at.op) && setup_.is_cached[storage] == 0;
    if (!is_skipped) recompute_takes(storage);
  }

  void recompute_takes(std::uint32_t storage) {
    recompute_holds_[storage] = 1;
    recomputed_.push_back(storage);
    hold(instance_of(StorageId(storage)));
  }

  void recompute_lets_go(std::uint32_t storage) {
    if (recompute_holds_[storage] == 0) return;
    recompute_holds_[storage] = 0;
    let_go(instance_of(StorageId(storage)));
  }

  void pack_again(std::uint32_t save) {
    SaveState& state = saves_[save];
    const InstanceId instance = instance_of(step_[t_.saves[save].tensor].storage);
    hold(instance);
    if (unit_of_save(save) != kNoUnit) state.instance = instance;
    if (unit_of_save(save) != kNoUnit && !state.released) {
      state.holds = true;
    } else {
      state.graph_holds = true;
      graph_saves_.push_back(save);
    }
  }

  void graph_lets_go(std::uint32_t save) {
    if (!saves_[save].graph_holds) return;
    saves_[save].graph_holds = false;
    let_go(instance_of(step_[t_.saves[save].tensor].storage));
  }

  // --- workspace

  bool has_row(OpId op) const { return !setup_.row_of_op.empty() && setup_.row_of_op[op.index()] != kNoRow; }

  // Whether the alloc event that is reached has happened at the op's begin, by its row.
  bool is_made_already() {
    if (row_.op.is_none()) [[likely]]
      return false;
    return row_.is_made[row_.next_alloc++] != 0;
  }

  template <class Make>
  void run_row(OpId op, const Make& make) {
    row_.op = op;
    find_allocs(ledger_.at.event);
    for (const WorkspaceStep& s : options_.workspace->rows[setup_.row_of_op[op.index()]].steps) {
      const auto value = static_cast<std::size_t>(s.value);
      if (s.kind == WorkspaceStepKind::kTake) {
        row_.hidden.push_back({rounded(s.value), true});
        ledger_.came(Category::kWorkspace, hidden_block(row_.hidden.size() - 1), row_.hidden.back().bytes);
      } else if (s.kind == WorkspaceStepKind::kGive) {
        give_hidden(value);
      } else if (value < row_.allocs.size() && row_.is_made[value] == 0) {
        row_.is_made[value] = 1;
        make(t_.events[row_.allocs[value]].id);
      }
    }
  }

  // An op that would write in place makes a new storage instead. Its input dies right after, so that from then on it
  // does not matter which of the two is alive: the second one lives as long as the op.
  void make_second_storage(OpId op, InstanceId first) {
    row_.op = op;
    find_allocs(ledger_.at.event);
    row_.hidden.push_back({instances_[first].bytes, true});
    ledger_.came(Category::kWorkspace, hidden_block(0), row_.hidden.back().bytes);
  }

  StorageId written_by(OpId op) const { return step_[step_.outputs(step_[op]).front().tensor].storage; }

  // The alloc events of the op that begins at `begin`.
  void find_allocs(std::uint32_t begin) {
    for (std::uint32_t at = begin + 1; t_.events[at].kind != EventKind::kEnd; ++at)
      if (t_.events[at].kind == EventKind::kAlloc) row_.allocs.push_back(at);
    row_.is_made.assign(row_.allocs.size(), 0);
  }

  BlockId hidden_block(std::size_t part) const {
    return {BlockKind::kWorkspace, row_.op.value(), static_cast<std::uint32_t>(part)};
  }

  void give_hidden(std::size_t part) {
    if (!row_.hidden[part].is_alive) return;
    row_.hidden[part].is_alive = false;
    ledger_.went(Category::kWorkspace, hidden_block(part), row_.hidden[part].bytes);
  }

  void end_row() {
    for (std::size_t i = 0; i < row_.hidden.size(); ++i) give_hidden(i);
    row_.op = {};
    row_.hidden.clear();
    row_.allocs.clear();
    row_.is_made.clear();
    row_.next_alloc = 0;
  }

  // --- the end

  std::vector<Leftover> leftovers() const {
    std::vector<std::uint8_t> is_saved_now(instances_.size(), 0);
    std::vector<std::uint8_t> is_unpacked(instances_.size(), 0);
    for (const SaveState& save : saves_) {
      if (save.holds) is_saved_now[save.instance] = 1;
      if (save.unpacked > 0) is_unpacked[save.instance] = 1;
    }
    std::vector<Leftover> list;
    for (std::uint32_t i = 0; i < instances_.size(); ++i) {
      const Instance& instance = instances_[i];
      if (instance.holders == 0) continue;
      EndReason reason = EndReason::kFrame;
      if (instance.program_holds) {
        const bool was_made = setup_.index.allocs[i] != plan::EventIndex::kNever;
        reason = was_made ? EndReason::kProgram : EndReason::kResident;
      } else if (is_saved_now[i] != 0) {
        reason = EndReason::kSave;
      } else if (is_unpacked[i] != 0) {
        reason = EndReason::kUnpacked;
      }
      list.push_back({block_of(i), instance.bytes, reason});
    }
    for_each_rng([&](const BlockId& rng) { list.push_back({rng, rng_bytes(), EndReason::kFrame}); });
    return list;
  }

  const Step& step_;
  const StepTables& t_;
  const Setup& setup_;
  const ReplayOptions& options_;
  Ledger ledger_;
  std::uint32_t storage_count_;
  std::vector<Instance> instances_;
  std::vector<SaveState> saves_;
  std::vector<FrameState> frames_;
  std::vector<std::uint8_t> is_cache_held_;  // by op
  std::vector<StorageId> outputs_;           // scratch

  // The recompute that is running.
  plan::EventRange region_;
  std::vector<std::uint8_t> recompute_holds_;  // by storage
  std::vector<std::uint32_t> recomputed_;      // storages, in the order of being taken
  std::vector<std::uint32_t> graph_saves_;     // in the order of their packs

  RowState row_;
  RowState outer_row_;  // of the op that a recompute interrupts
};

void check_options(const ReplayOptions& options) {
  constexpr std::int64_t kMaxRounding = std::int64_t{1} << 40;
  const bool is_sound = options.round_to_bytes >= 1 && options.round_to_bytes <= kMaxRounding;
  if (is_sound && options.runner_up_count <= kMaxRunnersUp) return;
  throw Error(
      {.kind = ErrorKind::kInput,
       .place = is_sound ? "runner_up_count" : "round_to_bytes",
       .problem = "the option is out of range",
       .expected = is_sound ? "at most 64" : "from 1 to 2^40",
       .got = std::to_string(is_sound ? static_cast<std::int64_t>(options.runner_up_count) : options.round_to_bytes),
       .remedy = {}});
}

Timeline replay_one(const Step& step, const plan::Plan& plan, const ReplayOptions& options,
                    const detail::Common& common) {
  const Setup setup = detail::prepare(step, plan, options, common);
  Timeline timeline;
  Replay whole(step, setup, options, {options.keep_changes, options.runner_up_count});
  whole.run();
  whole.finish(timeline);
  if (!options.keep_alive_at_peak) return timeline;
  Replay up_to_peak(step, setup, options, {.watched_change = timeline.peak_change});
  timeline.alive_at_peak = up_to_peak.run_to_watched(timeline.peak_change);
  return timeline;
}

}  // namespace

Timeline replay(const Step& step, const plan::Plan& plan, const ReplayOptions& options) {
  check_options(options);
  const bool is_watched =
      std::any_of(plan.units.begin(), plan.units.end(), [](const plan::Unit& unit) { return !unit.saved_ops.empty(); });
  return replay_one(step, plan, options, detail::prepare_all(step, options, is_watched));
}

struct Replayer::Prepared {
  detail::Common common;
};

Replayer::Replayer(const Step& step, const ReplayOptions& options) : step_(&step), options_(options) {
  check_options(options);
  prepared_ = std::make_unique<const Prepared>(Prepared{detail::prepare_all(step, options, true)});
}
Replayer::Replayer(Replayer&&) noexcept = default;
Replayer& Replayer::operator=(Replayer&&) noexcept = default;
Replayer::~Replayer() = default;

Timeline Replayer::run(const plan::Plan& plan) const { return replay_one(*step_, plan, options_, prepared_->common); }

}  // namespace tidemark::memory
