#include "tidemark/memory/replay_setup.h"

#include <algorithm>
#include <utility>

#include "tidemark/plan/legality.h"

namespace tidemark::memory::detail {

namespace {

using namespace step;
using plan::EventIndex;

Category by_role(Role role) {
  switch (role) {
    case Role::kParameter:
      return Category::kParameter;
    case Role::kBuffer:
      return Category::kBuffer;
    case Role::kInput:
      return Category::kInput;
    case Role::kGradient:
      return Category::kGradient;
    case Role::kOptimizerState:
      return Category::kOptimizerState;
    case Role::kPlain:
      break;
  }
  return Category::kOther;
}

class Preparation {
 public:
  Preparation(const Step& step, const plan::Plan& plan, const ReplayOptions& options, const Common& common)
      : step_(step),
        t_(step.tables()),
        plan_(plan),
        options_(options),
        common_(common),
        s_{.index = common.index, .row_of_op = common.row_of_op},
        kept_(common.is_saved) {}

  Setup run() {
    plan::require_replayable(step_, s_.index, plan_);
    add_units();
    find_categories();
    return std::move(s_);
  }

 private:
  void add_units() {
    if (plan_.units.empty()) return;
    s_.unit_of_call.assign(t_.calls.size(), kNoUnit);
    s_.unit_of_save.assign(t_.saves.size(), kNoUnit);
    s_.is_saved_op.assign(t_.ops.size(), 0);
    s_.is_cached.assign(t_.storages.size(), 0);
    s_.is_watched_op.assign(t_.ops.size(), 0);
    seen_in_unit_.assign(t_.storages.size(), kNoUnit);
    for (std::uint32_t i = 0; i < plan_.units.size(); ++i) add_unit(i, plan_.units[i]);
  }

  void add_unit(std::uint32_t number, const plan::Unit& unit) {
    UnitFacts facts{.call = unit.call,
                    .region = s_.index.regions[unit.call.index()],
                    .preserve_rng = unit.preserve_rng && options_.preserve_rng,
                    .early_stop = unit.early_stop && options_.early_stop,
                    .inputs = {},
                    .saved_ops = unit.saved_ops};
    s_.unit_of_call[unit.call.index()] = number;
    std::sort(facts.saved_ops.begin(), facts.saved_ops.end(),
              [&](OpId a, OpId b) { return s_.index.begins[a.index()] < s_.index.begins[b.index()]; });
    for (const OpId op : facts.saved_ops) add_saved_op(op);
    for (const TensorId input : step_.inputs(step_[unit.call])) add_input(number, facts, input);
    for (std::uint32_t at = facts.region.begin; at < facts.region.end; ++at) add_event(number, facts, at);
    s_.units.push_back(std::move(facts));
  }

  void add_saved_op(OpId op) {
    s_.is_saved_op[op.index()] = 1;
    distinct_outputs(step_, op, outputs_);
    for (const StorageId storage : outputs_) {
      kept_[storage.index()] = 1;
      if (s_.index.allocators[storage.index()] == op) s_.is_cached[storage.index()] = 1;
    }
  }

  void add_event(std::uint32_t number, UnitFacts& facts, std::uint32_t at) {
    const Event& event = t_.events[at];
    if (event.kind == EventKind::kBegin) {
      // Only a checkpoint that saves some ops has a dispatch mode.
      const bool is_watched = !facts.saved_ops.empty();
      if (is_watched && step_[OpId(event.id)].flags.has(OpFlag::kUnwatched)) s_.is_watched_op[event.id] = 1;
      if (is_watched && !common_.watched_row_of_op.empty())
        s_.row_of_op[event.id] = common_.watched_row_of_op[event.id];
      for (const TensorId input : step_.inputs(step_[OpId(event.id)])) add_input(number, facts, input);
    } else if (event.kind == EventKind::kPack && t_.saves[event.id].hooked) {
      add_input(number, facts, t_.saves[event.id].tensor);
      s_.unit_of_save[event.id] = number;
      ++facts.save_count;
      facts.last_pack = at;
    }
  }

  // The frame holds what is there when the call starts; every storage once.
  void add_input(std::uint32_t number, UnitFacts& facts, TensorId tensor) {
    const StorageId storage = step_[tensor].storage;
    const std::uint32_t made = s_.index.allocs[storage.index()];
    if (made != EventIndex::kNever && made >= facts.region.begin) return;
    if (seen_in_unit_[storage.index()] == number) return;
    seen_in_unit_[storage.index()] = number;
    kept_[storage.index()] = 1;
    facts.inputs.push_back(storage);
  }

  void find_categories() {
    s_.categories.reserve(t_.storages.size());
    for (const Storage& storage : t_.storages) s_.categories.push_back(by_role(storage.role));
    PassId pass;
    for (const Event& event : t_.events) {
      if (event.kind == EventKind::kPhase) pass = PassId(event.id);
      if (event.kind == EventKind::kAlloc && t_.storages[event.id].role == Role::kPlain)
        s_.categories[event.id] = plain_category(pass, kept_[event.id] != 0);
    }
  }

  Category plain_category(PassId pass, bool is_kept) const {
    if (pass.is_none()) return Category::kTemporary;
    const PassKind kind = step_[pass].kind;
    if (kind == PassKind::kRecompute) return Category::kRecomputed;
    const bool is_forward = kind == PassKind::kForward || kind == PassKind::kLoss;
    return is_forward && is_kept ? Category::kActivation : Category::kTemporary;
  }

  const Step& step_;
  const StepTables& t_;
  const plan::Plan& plan_;
  const ReplayOptions& options_;
  const Common& common_;
  Setup s_;
  std::vector<std::uint8_t> kept_;  // by storage: some save, frame or cache refers to it
  std::vector<std::uint32_t> seen_in_unit_;
  std::vector<StorageId> outputs_;
};

}  // namespace

Common prepare_all(const Step& step, const ReplayOptions& options, bool is_watched) {
  Common common;
  common.index = plan::index_events(step);
  if (options.workspace != nullptr) {
    common.row_of_op = join_workspace(step, *options.workspace);
    if (is_watched) common.watched_row_of_op = join_workspace(step, *options.workspace, true);
  }
  common.is_saved.assign(step.tables().storages.size(), 0);
  for (const Save& save : step.tables().saves) common.is_saved[step[save.tensor].storage.index()] = 1;
  return common;
}

Setup prepare(const Step& step, const plan::Plan& plan, const ReplayOptions& options, const Common& common) {
  return Preparation(step, plan, options, common).run();
}

void distinct_outputs(const Step& step, OpId op, std::vector<StorageId>& storages) {
  storages.clear();
  const auto outputs = step.outputs(step[op]);
  if (outputs.size() == 1) {  // nearly always
    storages.push_back(step[outputs.front().tensor].storage);
    return;
  }
  std::vector<std::pair<StorageId, std::uint32_t>> found;  // with the output's position
  for (std::uint32_t i = 0; i < outputs.size(); ++i) found.emplace_back(step[outputs[i].tensor].storage, i);
  std::sort(found.begin(), found.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const auto& [storage, position] : found) storages.push_back(storage);
}

}  // namespace tidemark::memory::detail
