#include "tidemark/plan/groups.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "tidemark/base/checked.h"
#include "tidemark/base/error.h"
#include "tidemark/plan/overwrite.h"

namespace tidemark::plan {

namespace {

using namespace step;

// Union-find over the ops of one region, by their position in the order in which they run.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }

  std::size_t find(std::size_t i) {
    while (parent_[i] != i) {
      parent_[i] = parent_[parent_[i]];
      i = parent_[i];
    }
    return i;
  }

  // The earlier one stays the name of both, so that a set is named by its first op.
  void unite(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

class Contraction {
 public:
  Contraction(const Step& step, const EventIndex& index, CallId call)
      : step_(step),
        index_(index),
        region_(index.regions[call.index()]),
        after_{region_.end, recompute_at(step, index, call)} {}

  std::vector<Group> run() {
    find_ops();
    Sets sets(ops_.size());
    unite_by_storage(sets);
    unite_random(sets);
    return collect(sets);
  }

 private:
  void find_ops() {
    const std::vector<Event>& events = step_.tables().events;
    for (std::uint32_t at = region_.begin; at < region_.end; ++at)
      if (events[at].kind == EventKind::kBegin) ops_.push_back(OpId(events[at].id));
  }

  StorageId storage_of(const Output& out) const { return step_[out.tensor].storage; }
  bool is_inside(StorageId storage) const { return region_.contains(index_.allocs[storage.index()]); }

  // Whether who holds it meanwhile would find it changed when the recompute comes.
  bool is_changed_later(StorageId storage) const {
    return after_.end != EventIndex::kNever && is_inside(storage) && first_write(index_, storage, after_) != nullptr;
  }

  void unite_by_storage(Sets& sets) const {
    std::unordered_map<StorageId, std::size_t> first_user;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      for (const Output& out : step_.outputs(step_[ops_[i]])) {
        const StorageId storage = storage_of(out);
        if (!is_inside(storage)) continue;
        const auto [found, is_new] = first_user.emplace(storage, i);
        if (!is_new) sets.unite(found->second, i);
      }
    }
  }

  void unite_random(Sets& sets) const {
    std::size_t first = ops_.size();
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (!step_[ops_[i]].flags.has(OpFlag::kRandom)) continue;
      if (first == ops_.size()) first = i;
      sets.unite(first, i);
    }
  }

  std::vector<Group> collect(Sets& sets) const {
    std::vector<Group> groups;
    std::vector<std::size_t> group_of(ops_.size());
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const std::size_t set = sets.find(i);
      if (set == i) {
        group_of[i] = groups.size();
        groups.emplace_back();
      }
      groups[group_of[set]].ops.push_back(ops_[i]);
    }
    for (Group& group : groups) describe(group);
    return groups;
  }

  void describe(Group& group) const {
    bool any_output = false;
    bool any_change = false;
    bool any_view = false;
    for (const OpId id : group.ops) {
      const Op& op = step_[id];
      group.must_save = group.must_save || must_be_saved(op.flags);
      group.is_random = group.is_random || op.flags.has(OpFlag::kRandom);
      bool allocates = false;
      bool aliases = false;
      for (const Output& out : step_.outputs(op)) {
        const bool inside = is_inside(storage_of(out));
        any_change = any_change || (out.alias == AliasKind::kMutates && inside) || is_changed_later(storage_of(out));
        aliases = aliases || out.alias == AliasKind::kView || out.alias == AliasKind::kExisting;
        allocates = allocates || out.alias == AliasKind::kFresh;
        any_output = true;
      }
      if (!allocates) continue;
      group.savers.push_back(id);
      any_view = any_view || aliases;
    }
    if (!any_output) group.savers = group.ops;
    if (any_change) {
      group.obstacle = SaveObstacle::kChanged;
    } else if (group.savers.empty()) {
      group.obstacle = SaveObstacle::kNothingFresh;
    } else if (any_view) {
      group.obstacle = SaveObstacle::kView;
    }
    group.saved_bytes = saved_bytes(group);
  }

  std::int64_t saved_bytes(const Group& group) const {
    std::vector<StorageId> held;
    for (const OpId id : group.savers)
      for (const Output& out : step_.outputs(step_[id]))
        if (is_inside(storage_of(out))) held.push_back(storage_of(out));
    std::sort(held.begin(), held.end());
    held.erase(std::unique(held.begin(), held.end()), held.end());
    std::int64_t bytes = 0;  // cannot overflow: a step's storages together are below 2^62
    for (const StorageId storage : held) bytes += step_[storage].bytes;
    return bytes;
  }

  const Step& step_;
  const EventIndex& index_;
  EventRange region_;
  EventRange after_;  // from the call's end to its recompute
  std::vector<OpId> ops_;
};

}  // namespace

bool must_be_saved(OpFlags flags) {
  return flags.has(OpFlag::kMustSave) || flags.has(OpFlag::kCollective) || flags.has(OpFlag::kSideEffect) ||
         flags.has(OpFlag::kDataDependent) || flags.has(OpFlag::kHostCopy) || flags.has(OpFlag::kRouting);
}

std::vector<Group> find_groups(const Step& step, const EventIndex& index, CallId call) {
  if (call.index() >= step.tables().calls.size())
    throw Error({.kind = ErrorKind::kInput,
                 .place = "call",
                 .problem = "the step has no such call",
                 .expected = "an id of calls below " + std::to_string(step.tables().calls.size()),
                 .got = call.is_none() ? "none" : std::to_string(call.value()),
                 .remedy = {}});
  return Contraction(step, index, call).run();
}

std::vector<Group> find_groups(const Step& step, CallId call) { return find_groups(step, index_events(step), call); }

}  // namespace tidemark::plan
