#include "tidemark/step/fingerprint.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace tidemark::step {

namespace {

// Each item that is hashed starts with one of these, so that different items never look alike.
enum Mark : std::uint64_t { kNone = 1, kKnown, kNew, kModules, kBindings, kOrphans };

// First appearances: maps an id to 1, 2, 3, ... in the order in which rows take part; 0 is "not yet".
template <class Tag>
class Numbering {
 public:
  explicit Numbering(std::size_t count) : numbers_(count, 0) {}
  std::uint32_t& operator[](Id<Tag> id) { return numbers_[id.index()]; }
  std::uint32_t next() { return ++last_; }

 private:
  std::vector<std::uint32_t> numbers_;
  std::uint32_t last_ = 0;
};

class Fingerprinter {
 public:
  explicit Fingerprinter(const Step& step)
      : step_(step),
        t_(step.tables()),
        passes_(t_.passes.size()),
        calls_(t_.calls.size()),
        storages_(t_.storages.size()),
        nodes_(t_.nodes.size()),
        regions_(t_.regions.size()),
        saves_(t_.saves.size()),
        tensor_used_(t_.tensors.size(), false) {
    hash_contents();
  }

  Hash128 run() {
    for (const Event& event : t_.events) add_event(event);
    add_modules();
    add_bindings();
    add_orphans();
    return hash_.digest();
  }

 private:
  // Strings, layouts, argument lists and module paths stand for their content.
  void hash_contents() {
    for (const std::string& s : t_.strings) strings_.push_back(hash_of([&](Hasher& h) { h.add(s); }));
    for (const Layout& l : t_.layouts)
      layouts_.push_back(hash_of([&](Hasher& h) {
        h.add(std::uint64_t{static_cast<std::uint8_t>(l.dtype)});
        for (const std::int64_t size : step_.sizes(l)) h.add_signed(size);
        for (const std::int64_t stride : step_.strides(l)) h.add_signed(stride);
      }));
    for (const ArgList& list : t_.args) {
      args_.push_back(hash_of([&](Hasher& h) { add_list(h, list, true); }));
      forms_.push_back(hash_of([&](Hasher& h) { add_list(h, list, false); }));
    }
    for (const Module& m : t_.modules)  // parents come first
      modules_.push_back(hash_of([&](Hasher& h) {
        h.add(m.parent.is_none() ? Hash128() : modules_[m.parent.index()]);
        h.add(strings_[m.name.index()]);
        h.add(strings_[m.type.index()]);
      }));
  }

  template <class Fill>
  Hash128 hash_of(const Fill& fill) {
    scratch_.reset();
    fill(scratch_);
    return scratch_.digest();
  }

  void add_list(Hasher& h, const ArgList& list, bool with_fractions) {
    for (const Arg& arg : list) {
      h.add(strings_[arg.name.index()]);
      add_value(h, arg.value, with_fractions);
    }
  }

  void add_value(Hasher& h, const ArgValue& v, bool with_fractions) {
    h.add(std::uint64_t{v.value.index()});
    if (const auto* b = std::get_if<bool>(&v.value)) h.add(std::uint64_t{*b});
    if (const auto* i = std::get_if<std::int64_t>(&v.value)) h.add_signed(*i);
    if (const auto* d = std::get_if<double>(&v.value); d != nullptr && with_fractions)
      h.add(std::bit_cast<std::uint64_t>(*d));
    if (const auto* s = std::get_if<StringId>(&v.value)) h.add(strings_[s->index()]);
    if (const auto* r = std::get_if<InputRange>(&v.value)) {
      h.add(std::uint64_t{r->begin});
      h.add(std::uint64_t{r->end});
    }
    if (const auto* list = std::get_if<ArgValue::List>(&v.value)) {
      h.add(std::uint64_t{list->size()});
      for (const ArgValue& item : *list) add_value(h, item, with_fractions);
    }
  }

  void add(std::uint64_t value) { hash_.add(value); }
  void add_text(StringId id) { hash_.add(id.is_none() ? Hash128() : strings_[id.index()]); }
  void add_args(ArgsId id) { hash_.add(id.is_none() ? Hash128() : args_[id.index()]); }

  // The optimizer's factors change from step to step (bias corrections, a schedule): the step is the same.
  void add_op_args(const Op& op) {
    if (op.args.is_none() || step_[op.pass].kind != PassKind::kOptimizer) return add_args(op.args);
    hash_.add(forms_[op.args.index()]);
  }

  // A reference: the row's number when it took part before, else a new number and the row's content.
  template <class Tag, class AddContent>
  void refer(Id<Tag> id, Numbering<Tag>& numbers, const AddContent& add_content) {
    if (id.is_none()) return add(kNone);
    std::uint32_t& number = numbers[id];
    if (number != 0) {
      add(kKnown);
      return add(number);
    }
    number = numbers.next();
    add(kNew);
    add_content();
  }

  void add_pass(PassId id) {
    refer(id, passes_, [&] {
      const Pass& p = step_[id];
      add(static_cast<std::uint64_t>(p.kind));
      add(p.micro_batch);
      add(p.graph_task);
      add(p.rank);
    });
  }

  void add_call(CallId id) {
    refer(id, calls_, [&] {
      const Call& c = step_[id];
      hash_.add(modules_[c.module.index()]);
      add_call(c.parent);
      add(c.index);
      add_pass(c.pass);
      add(c.inputs.count);
      for (const TensorId input : step_.inputs(c)) add_tensor(input);
      add(c.outputs.count);
      for (const TensorId output : step_.outputs(c)) add_tensor(output);
    });
  }

  void add_storage(StorageId id) {
    refer(id, storages_, [&] {
      const Storage& s = step_[id];
      hash_.add_signed(s.bytes);
      add_text(s.device);
      add(static_cast<std::uint64_t>(s.role));
      add_storage(s.of);
    });
  }

  void add_tensor(TensorId id) {
    tensor_used_[id.index()] = true;
    const Tensor& x = step_[id];
    add_storage(x.storage);
    add(x.version);
    hash_.add(layouts_[x.layout.index()]);
    hash_.add_signed(x.offset);
    add(x.is_view ? 1 : 0);
  }

  void add_node(NodeId id) {
    refer(id, nodes_, [&] {
      add_text(step_[id].name);
      add_pass(step_[id].pass);
    });
  }

  void add_region(RegionId id) {
    refer(id, regions_, [&] {
      const Region& r = step_[id];
      add(static_cast<std::uint64_t>(r.kind));
      add_region(r.parent);
      add_call(r.call);
      add_args(r.args);
      add(r.held.count);
      for (const TensorId held : step_.held(r)) add_tensor(held);
    });
  }

  void add_save(SaveId id) {
    refer(id, saves_, [&] {
      const Save& s = step_[id];
      add_node(s.node);
      add(s.slot);
      add_tensor(s.tensor);
      add(s.hooked ? 1 : 0);
    });
  }

  void add_op(OpId id) {
    const Op& op = step_[id];
    add_text(op.name);
    add_pass(op.pass);
    add_call(op.call);
    add_node(op.node);
    add_region(op.region);
    add_op_args(op);
    add(op.inputs.count);
    for (const TensorId input : step_.inputs(op)) add_tensor(input);
    add(op.outputs.count);
    for (const Output& output : step_.outputs(op)) {
      add_tensor(output.tensor);
      add(static_cast<std::uint64_t>(output.alias));
      add(output.input);
    }
    add(op.flags.bits());
    add_text(op.group);
    add(op.stream);
  }

  void add_event(const Event& event) {
    add(static_cast<std::uint64_t>(event.kind));
    switch (event.kind) {
      case EventKind::kPhase:
        return add_pass(PassId(event.id));
      case EventKind::kEnter:
      case EventKind::kExit:
        return add_call(CallId(event.id));
      case EventKind::kBegin:
        return add_op(OpId(event.id));
      case EventKind::kEnd:
        return;  // the op that began last
      case EventKind::kAlloc:
      case EventKind::kFree:
        return add_storage(StorageId(event.id));
      case EventKind::kResize:
        add_storage(step_[ResizeId(event.id)].storage);
        return hash_.add_signed(step_[ResizeId(event.id)].bytes);
      case EventKind::kPack:
      case EventKind::kUnpack:
      case EventKind::kDrop:
      case EventKind::kRelease:
        return add_save(SaveId(event.id));
      case EventKind::kNode:
      case EventKind::kDone:
        return add_node(NodeId(event.id));
    }
  }

  // Paths are unique, so sorting by their hash gives an order that does not depend on ids.
  void add_modules() {
    add(kModules);
    add_sorted(modules_);
  }

  void add_sorted(std::vector<Hash128> hashes) {
    std::sort(hashes.begin(), hashes.end());
    add(hashes.size());
    for (const Hash128& hash : hashes) hash_.add(hash);
  }

  void add_bindings() {
    struct Entry {
      Hash128 key;  // module path and name: unique
      const Binding* binding;
    };
    std::vector<Entry> entries;
    entries.reserve(t_.bindings.size());
    for (const Binding& b : t_.bindings)
      entries.push_back({hash_of([&](Hasher& h) {
                           h.add(modules_[b.module.index()]);
                           h.add(strings_[b.name.index()]);
                         }),
                         &b});
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
    add(kBindings);
    for (const Entry& entry : entries) {
      hash_.add(entry.key);
      add(static_cast<std::uint64_t>(entry.binding->kind));
      add(entry.binding->trainable ? 1 : 0);
      add_tensor(entry.binding->tensor);
    }
  }

  // Rows that no event and no binding leads to have no order of their own: they count as a bag of contents.
  void add_orphans() {
    std::vector<Hash128> bag;
    const auto put = [&](std::uint64_t table, const auto& fill) {
      bag.push_back(hash_of([&](Hasher& h) {
        h.add(table);
        fill(h);
      }));
    };
    for (std::uint32_t i = 0; i < t_.tensors.size(); ++i)
      if (!tensor_used_[i]) put(0, [&](Hasher& h) { describe_tensor(h, TensorId(i)); });
    for (std::uint32_t i = 0; i < t_.storages.size(); ++i)
      if (storages_[StorageId(i)] == 0) put(1, [&](Hasher& h) { describe_storage(h, StorageId(i)); });
    for (std::uint32_t i = 0; i < t_.nodes.size(); ++i)
      if (nodes_[NodeId(i)] == 0)
        put(2, [&](Hasher& h) {
          h.add(strings_[t_.nodes[i].name.index()]);
          describe_pass(h, t_.nodes[i].pass);
        });
    for (std::uint32_t i = 0; i < t_.passes.size(); ++i)
      if (passes_[PassId(i)] == 0) put(3, [&](Hasher& h) { describe_pass(h, PassId(i)); });
    for (std::uint32_t i = 0; i < t_.regions.size(); ++i)
      if (regions_[RegionId(i)] == 0)
        put(4, [&](Hasher& h) {
          h.add(static_cast<std::uint64_t>(t_.regions[i].kind));
          h.add(t_.regions[i].args.is_none() ? Hash128() : args_[t_.regions[i].args.index()]);
          for (const TensorId held : step_.held(t_.regions[i])) describe_tensor(h, held);
        });
    add(kOrphans);
    add_sorted(std::move(bag));
  }

  void describe_pass(Hasher& h, PassId id) {
    h.add(static_cast<std::uint64_t>(step_[id].kind));
    h.add(std::uint64_t{step_[id].micro_batch});
    h.add(std::uint64_t{step_[id].graph_task});
    h.add(std::uint64_t{step_[id].rank});
  }

  void describe_storage(Hasher& h, StorageId id) {
    const Storage& s = step_[id];
    h.add(std::uint64_t{storages_[id]});  // 0 for one that takes no part
    h.add_signed(s.bytes);
    h.add(strings_[s.device.index()]);
    h.add(static_cast<std::uint64_t>(s.role));
    if (s.of.has_value()) describe_storage(h, s.of);  // an owner is a parameter and has none itself
  }

  void describe_tensor(Hasher& h, TensorId id) {
    const Tensor& x = step_[id];
    describe_storage(h, x.storage);
    h.add(std::uint64_t{x.version});
    h.add(layouts_[x.layout.index()]);
    h.add_signed(x.offset);
    h.add(std::uint64_t{x.is_view});
  }

  const Step& step_;
  const StepTables& t_;
  Hasher hash_;
  Hasher scratch_;
  std::vector<Hash128> strings_, layouts_, args_, modules_;
  std::vector<Hash128> forms_;  // of argument lists, without the values of fractions
  Numbering<PassTag> passes_;
  Numbering<CallTag> calls_;
  Numbering<StorageTag> storages_;
  Numbering<NodeTag> nodes_;
  Numbering<RegionTag> regions_;
  Numbering<SaveTag> saves_;
  std::vector<bool> tensor_used_;
};

}  // namespace

Hash128 fingerprint(const Step& step) { return Fingerprinter(step).run(); }

}  // namespace tidemark::step
