#include <fmt/format.h>

#include <map>

#include "tidemark/step/limits.h"
#include "tidemark/step/validate_impl.h"

namespace tidemark::step::detail {

namespace {

// Walks the events once and keeps, for every row that events speak of, what has happened to it so far.
class EventChecker {
 public:
  explicit EventChecker(const StepTables& tables)
      : t_(tables),
        storages_(tables.storages.size()),
        saves_(tables.saves.size()),
        ops_(tables.ops.size(), Progress::kWaiting),
        calls_(tables.calls.size(), Progress::kWaiting),
        node_open_(tables.nodes.size(), false) {
    find_allocated();
  }

  void run() {
    for (at_ = 0; at_ < t_.events.size(); ++at_) check(t_.events[at_]);
    check_complete();
  }

 private:
  enum class Progress : std::uint8_t { kWaiting, kOpen, kClosed };

  struct StorageState {
    bool allocated_later = false;  // an alloc event is still to come
    bool program_holds = true;
    bool freed = false;
    std::uint32_t holds = 0;  // saves not released, and unpacked tensors not dropped
    OpId allocated_by;
  };

  struct SaveState {
    bool packed = false;
    bool released = false;
    std::uint32_t unpacked = 0;  // tensors given back and not dropped yet
  };

  [[noreturn]] void bad(std::string problem, std::string expected = {}, std::string got = {},
                        std::string remedy = {}) const {
    found(Table::kEvents, at_, std::string(name_of(t_.events[at_].kind)), std::move(problem), std::move(expected),
          std::move(got), std::move(remedy));
  }

  void need(std::uint32_t id, std::size_t count, Table target) const {
    if (id < count) [[likely]]
      return;
    bad("the event names a row that does not exist",
        count == 0 ? fmt::format("an id of {}, which is empty", name_of(target))
                   : fmt::format("an id of {} from 0 to {}", name_of(target), count - 1),
        fmt::format("{}", id));
  }

  // Storages that some alloc event makes are not there at the start.
  void find_allocated() {
    for (const Event& event : t_.events) {
      if (event.kind != EventKind::kAlloc || event.id >= storages_.size()) continue;
      storages_[event.id].allocated_later = true;
      storages_[event.id].program_holds = false;
    }
  }

  bool is_live(StorageId id) const {
    const StorageState& s = storages_[id.index()];
    return s.program_holds || s.holds > 0;
  }

  void need_live(StorageId id, std::string_view user) const {
    if (is_live(id)) [[likely]]
      return;
    bad(fmt::format("{} uses storage {}, which {}", user, id.value(),
                    storages_[id.index()].allocated_later ? "is not allocated yet" : "nothing holds any more"),
        "a storage that is alive");
  }

  void check(const Event& event) {
    switch (event.kind) {
      case EventKind::kPhase:
        return on_phase(event.id);
      case EventKind::kEnter:
        return on_enter(event.id);
      case EventKind::kExit:
        return on_exit(event.id);
      case EventKind::kBegin:
        return on_begin(event.id);
      case EventKind::kEnd:
        return on_end(event.id);
      case EventKind::kAlloc:
        return on_alloc(event.id);
      case EventKind::kFree:
        return on_free(event.id);
      case EventKind::kResize:
        return on_resize(event.id);
      case EventKind::kPack:
        return on_pack(event.id);
      case EventKind::kUnpack:
        return on_unpack(event.id);
      case EventKind::kDrop:
        return on_drop(event.id);
      case EventKind::kRelease:
        return on_release(event.id);
      case EventKind::kNode:
        return on_node(event.id);
      case EventKind::kDone:
        return on_done(event.id);
    }
  }

  void need_between_ops() const {
    if (op_.has_value()) bad(fmt::format("op {} has not ended yet", op_.value()), "its end event first");
  }

  void on_phase(std::uint32_t id) {
    need(id, t_.passes.size(), Table::kPasses);
    need_between_ops();
    pass_ = PassId(id);
  }

  void on_enter(std::uint32_t id) {
    need(id, t_.calls.size(), Table::kCalls);
    need_between_ops();
    if (calls_[id] != Progress::kWaiting) bad(fmt::format("call {} is entered twice", id), "each call once");
    const Call& call = t_.calls[id];
    if (call.pass != pass_)
      bad(fmt::format("call {} is entered in another pass than its own", id), fmt::format("pass {}", call.pass.value()),
          pass_text());
    const CallId around = open_calls_.empty() ? CallId() : open_calls_.back();
    if (call.parent != around)
      bad(fmt::format("call {} is entered inside another call than its parent: calls overlap", id),
          id_text("call", call.parent), id_text("call", around));
    std::uint32_t& count = call_counts_[(std::uint64_t{call.module.value()} << 32) | call.pass.value()];
    if (call.index != count)
      bad(fmt::format("call {} has the wrong index", id),
          fmt::format("{}, the number of earlier calls of module {} in this pass", count, call.module.value()),
          fmt::format("{}", call.index));
    ++count;
    need_allocated(call.inputs, t_.call_input_pool, id, "input");
    calls_[id] = Progress::kOpen;
    open_calls_.push_back(CallId(id));
    nodes_around_.push_back(open_nodes_.size());
  }

  // What a call is given or returns may have been let go of by the program, but it must have been there.
  void need_allocated(Range range, const std::vector<TensorId>& pool, std::uint32_t call, std::string_view what) const {
    for (std::uint32_t k = 0; k < range.count; ++k) {
      const StorageId storage = t_.tensors[pool[range.begin + k].index()].storage;
      if (storages_[storage.index()].allocated_later)
        bad(fmt::format("{} {} of call {} is in storage {}, which is not allocated yet", what, k, call,
                        storage.value()),
            "a storage that was allocated before");
    }
  }

  void on_exit(std::uint32_t id) {
    need(id, t_.calls.size(), Table::kCalls);
    need_between_ops();
    if (open_calls_.empty() || open_calls_.back() != CallId(id))
      bad("the call that ends is not the one entered last: calls overlap",
          open_calls_.empty() ? "no exit, since no call is open" : fmt::format("call {}", open_calls_.back().value()),
          fmt::format("call {}", id));
    if (open_nodes_.size() != nodes_around_.back())
      bad(fmt::format("call {} ends while a node that started inside it is running", id),
          fmt::format("the done event of node {} first", open_nodes_.back().value()));
    need_allocated(t_.calls[id].outputs, t_.call_output_pool, id, "output");
    calls_[id] = Progress::kClosed;
    open_calls_.pop_back();
    nodes_around_.pop_back();
  }

  void on_begin(std::uint32_t id) {
    need(id, t_.ops.size(), Table::kOps);
    need_between_ops();
    if (ops_[id] != Progress::kWaiting) bad(fmt::format("op {} begins twice", id), "each op once");
    const Op& op = t_.ops[id];
    if (op.pass != pass_)
      bad(fmt::format("op {} begins in another pass than its own", id), fmt::format("pass {}", op.pass.value()),
          pass_text());
    const PassKind kind = t_.passes[pass_.index()].kind;
    const bool is_forward = kind == PassKind::kForward || kind == PassKind::kLoss || kind == PassKind::kRecompute;
    const CallId around = open_calls_.empty() ? CallId() : open_calls_.back();
    if (is_forward && op.call != around)
      bad(fmt::format("op {} does not belong to the module call it runs in", id), id_text("call", around),
          id_text("call", op.call));
    check_node(id, op, is_forward);
    for (std::uint32_t k = 0; k < op.inputs.count; ++k) {
      const TensorId input = t_.input_pool[op.inputs.begin + k];
      const StorageId storage = t_.tensors[input.index()].storage;
      if (!is_live(storage)) need_live(storage, fmt::format("op {}, input {},", id, k));
    }
    ops_[id] = Progress::kOpen;
    op_ = OpId(id);
  }

  // A forward op makes its node, in its own pass; in backward, the node is what runs the op.
  void check_node(std::uint32_t id, const Op& op, bool is_forward) const {
    if (op.node.is_none()) return;
    if (is_forward && t_.nodes[op.node.index()].pass != op.pass)
      bad(fmt::format("op {} is said to make node {}, which another pass made", id, op.node.value()),
          fmt::format("a node of pass {}", op.pass.value()),
          fmt::format("one of pass {}", t_.nodes[op.node.index()].pass.value()));
    if (!is_forward && t_.passes[op.pass.index()].kind == PassKind::kBackward && !node_open_[op.node.index()])
      bad(fmt::format("op {} is said to be run by node {}, which is not running", id, op.node.value()),
          "a node between its node and done events, or none");
  }

  void on_end(std::uint32_t id) {
    need(id, t_.ops.size(), Table::kOps);
    if (op_ != OpId(id))
      bad("the op that ends is not the one that began last",
          op_.is_none() ? "no end, since no op is running" : fmt::format("op {}", op_.value()),
          fmt::format("op {}", id));
    const Op& op = t_.ops[id];
    for (std::uint32_t k = 0; k < op.outputs.count; ++k) check_output(op, k);
    ops_[id] = Progress::kClosed;
    op_ = {};
  }

  void check_output(const Op& op, std::uint32_t k) const {
    const Output& out = t_.output_pool[op.outputs.begin + k];
    const StorageId storage = t_.tensors[out.tensor.index()].storage;
    const bool made_here = storages_[storage.index()].allocated_by == op_;
    if (out.alias == AliasKind::kFresh && !made_here)
      bad(fmt::format("output {} of op {} is said to be fresh, but storage {} was not allocated in the op", k,
                      op_.value(), storage.value()),
          "its alloc event between the op's begin and end");
    if (out.alias == AliasKind::kExisting && (made_here || !is_live(storage)))
      bad(fmt::format("output {} of op {} is said to exist before, but storage {} {}", k, op_.value(), storage.value(),
                      made_here ? "was allocated in the op" : "is not alive"),
          "a storage that was alive before the op");
  }

  void on_alloc(std::uint32_t id) {
    need(id, t_.storages.size(), Table::kStorages);
    StorageState& s = storages_[id];
    if (!s.allocated_later) bad(fmt::format("storage {} is allocated twice", id), "each storage once");
    s.allocated_later = false;
    s.program_holds = true;
    s.allocated_by = op_;
  }

  void on_free(std::uint32_t id) {
    need(id, t_.storages.size(), Table::kStorages);
    StorageState& s = storages_[id];
    if (s.allocated_later) bad(fmt::format("storage {} is freed before it is allocated", id), "its alloc event first");
    if (s.freed) bad(fmt::format("storage {} is freed twice", id), "each storage once");
    s.freed = true;
    s.program_holds = false;
  }

  void on_resize(std::uint32_t id) {
    if (id >= t_.resizes.size()) bad("the event names a resize that does not exist", "one made with the event");
    const Resize& resize = t_.resizes[id];
    need(resize.storage.value(), t_.storages.size(), Table::kStorages);
    need_live(resize.storage, "this resize");
    if (resize.bytes < 0 || resize.bytes > kMaxTotalBytes)
      bad("a size is out of range", "from 0 to 2^62 bytes", fmt::format("{}", resize.bytes));
  }

  void on_pack(std::uint32_t id) {
    need(id, t_.saves.size(), Table::kSaves);
    if (saves_[id].packed) bad(fmt::format("save {} is packed twice", id), "each save once");
    const StorageId storage = saved_storage(id);
    need_live(storage, fmt::format("save {}", id));
    saves_[id].packed = true;
    ++storages_[storage.index()].holds;
  }

  void on_unpack(std::uint32_t id) {
    need_held(id, "unpacked");
    ++saves_[id].unpacked;
    ++storages_[saved_storage(id).index()].holds;
  }

  void on_drop(std::uint32_t id) {
    need(id, t_.saves.size(), Table::kSaves);
    if (saves_[id].unpacked == 0)
      bad(fmt::format("save {} is dropped more often than it was unpacked", id), "an unpack event for each drop");
    --saves_[id].unpacked;
    --storages_[saved_storage(id).index()].holds;
  }

  void on_release(std::uint32_t id) {
    need_held(id, "released");
    saves_[id].released = true;
    --storages_[saved_storage(id).index()].holds;
  }

  void need_held(std::uint32_t id, std::string_view what) const {
    need(id, t_.saves.size(), Table::kSaves);
    if (!saves_[id].packed) bad(fmt::format("save {} is {} before it is packed", id, what), "its pack event first");
    if (saves_[id].released) bad(fmt::format("save {} is {} after its release", id, what), "nothing after the release");
  }

  StorageId saved_storage(std::uint32_t save) const { return t_.tensors[t_.saves[save].tensor.index()].storage; }

  void on_node(std::uint32_t id) {
    need(id, t_.nodes.size(), Table::kNodes);
    need_between_ops();
    if (node_open_[id]) bad(fmt::format("node {} starts while it is running", id), "its done event first");
    node_open_[id] = true;
    open_nodes_.push_back(NodeId(id));
    calls_around_.push_back(open_calls_.size());
  }

  void on_done(std::uint32_t id) {
    need(id, t_.nodes.size(), Table::kNodes);
    need_between_ops();
    if (open_nodes_.empty() || open_nodes_.back() != NodeId(id))
      bad("the node that ends is not the one started last",
          open_nodes_.empty() ? "no done, since no node is running"
                              : fmt::format("node {}", open_nodes_.back().value()),
          fmt::format("node {}", id));
    if (open_calls_.size() != calls_around_.back())
      bad(fmt::format("node {} ends while a call that was entered inside it is open", id), "its exit event first");
    node_open_[id] = false;
    open_nodes_.pop_back();
    calls_around_.pop_back();
  }

  // What must have happened by the end. The place is the row that something is missing for.
  void check_complete() const {
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (ops_[i] != Progress::kClosed)
        found(Table::kOps, i, "", ops_[i] == Progress::kOpen ? "the op never ends" : "the op never begins",
              "a begin and an end event");
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (calls_[i] != Progress::kClosed)
        found(Table::kCalls, i, "",
              calls_[i] == Progress::kOpen ? "the call is never left" : "the call is never entered",
              "an enter and an exit event");
    if (!open_nodes_.empty())
      found(Table::kNodes, open_nodes_.back().index(), "", "the node never ends", "a done event");
    for (std::size_t i = 0; i < saves_.size(); ++i)
      if (!saves_[i].packed) found(Table::kSaves, i, "", "the save is never packed", "a pack event");
  }

  std::string pass_text() const {
    return pass_.is_none() ? "no phase event yet" : fmt::format("pass {}", pass_.value());
  }

  template <class Tag>
  static std::string id_text(std::string_view what, Id<Tag> id) {
    return id.is_none() ? fmt::format("no {}", what) : fmt::format("{} {}", what, id.value());
  }

  const StepTables& t_;
  std::size_t at_ = 0;
  PassId pass_;
  OpId op_;
  std::vector<CallId> open_calls_;
  std::vector<NodeId> open_nodes_;
  std::vector<std::size_t> nodes_around_;  // by open call: how many nodes were running when it was entered
  std::vector<std::size_t> calls_around_;  // by open node: how many calls were open when it started
  std::vector<StorageState> storages_;
  std::vector<SaveState> saves_;
  std::vector<Progress> ops_;
  std::vector<Progress> calls_;
  std::vector<bool> node_open_;
  // By module and pass. Not hashed: a file could choose ids that collide.
  std::map<std::uint64_t, std::uint32_t> call_counts_;
};

}  // namespace

void check_events(const StepTables& tables) { EventChecker(tables).run(); }

}  // namespace tidemark::step::detail
