#include "permute_step.h"

#include <functional>
#include <vector>

#include "random.h"
#include "tidemark/step/step_builder.h"

namespace tidemark::test {

namespace {

using namespace step;

// new_id[old id], and the old ids in their new order.
struct Order {
  std::vector<std::uint32_t> new_id;
  std::vector<std::uint32_t> old_ids;
};

using ParentOf = std::function<std::uint32_t(std::uint32_t)>;  // of an old id; itself when it has none

// A random order in which every row comes after its parent: repeatedly takes a random row whose parent is placed.
Order random_order(std::size_t count, Random& random, const ParentOf& parent_of) {
  std::vector<std::vector<std::uint32_t>> children(count);
  std::vector<std::uint32_t> ready;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t parent = parent_of(i);
    (parent == i ? ready : children[parent]).push_back(i);
  }
  Order order;
  order.new_id.resize(count);
  while (!ready.empty()) {
    std::swap(ready[random.below(ready.size())], ready.back());
    const std::uint32_t old_id = ready.back();
    ready.pop_back();
    order.new_id[old_id] = static_cast<std::uint32_t>(order.old_ids.size());
    order.old_ids.push_back(old_id);
    ready.insert(ready.end(), children[old_id].begin(), children[old_id].end());
  }
  return order;
}

class Permuter {
 public:
  Permuter(const Step& step, std::uint64_t seed) : step_(step), t_(step.tables()), random_(seed) {
    strings_ = any_order(t_.strings.size());
    sources_ = any_order(t_.sources.size());
    layouts_ = any_order(t_.layouts.size());
    storages_ = any_order(t_.storages.size());
    tensors_ = any_order(t_.tensors.size());
    bindings_ = any_order(t_.bindings.size());
    nodes_ = any_order(t_.nodes.size());
    args_ = any_order(t_.args.size());
    passes_ = any_order(t_.passes.size());
    ops_ = any_order(t_.ops.size());
    saves_ = any_order(t_.saves.size());
    modules_ = tree_order(t_.modules);
    calls_ = tree_order(t_.calls);
    regions_ = tree_order(t_.regions);
  }

  Step run() {
    for (const std::uint32_t i : strings_.old_ids) b_.add_string(t_.strings[i]);
    for (const auto& [key, value] : t_.meta) b_.add_meta(key, value);
    for (const std::uint32_t i : modules_.old_ids) {
      const Module& m = t_.modules[i];
      b_.add_module({to(m.parent, modules_), to(m.name, strings_), to(m.type, strings_)});
    }
    for (const std::uint32_t i : passes_.old_ids) b_.add_pass(t_.passes[i]);
    for (const std::uint32_t i : calls_.old_ids) {
      const Call& c = t_.calls[i];
      const std::vector<TensorId> inputs = tensors(step_.inputs(c));
      const CallId call =
          b_.add_call({to(c.module, modules_), to(c.parent, calls_), c.index, to(c.pass, passes_), inputs});
      b_.set_call_outputs(call, tensors(step_.outputs(c)));
    }
    for (const std::uint32_t i : sources_.old_ids) {
      const Source& s = t_.sources[i];
      b_.add_source({to(s.file, strings_), s.line, to(s.function, strings_)});
    }
    for (const std::uint32_t i : layouts_.old_ids)
      b_.add_layout(t_.layouts[i].dtype, step_.sizes(t_.layouts[i]), step_.strides(t_.layouts[i]));
    for (const std::uint32_t i : storages_.old_ids) {
      const Storage& s = t_.storages[i];
      b_.add_storage({s.bytes, to(s.device, strings_), s.role, to(s.of, storages_)});
    }
    for (const std::uint32_t i : tensors_.old_ids) {
      const Tensor& x = t_.tensors[i];
      b_.add_tensor({to(x.storage, storages_), x.version, to(x.layout, layouts_), x.offset, x.is_view});
    }
    for (const std::uint32_t i : bindings_.old_ids) {
      const Binding& b = t_.bindings[i];
      b_.add_binding({to(b.module, modules_), to(b.name, strings_), to(b.tensor, tensors_), b.kind, b.trainable});
    }
    for (const std::uint32_t i : nodes_.old_ids) {
      const Node& n = t_.nodes[i];
      b_.add_node({to(n.name, strings_), n.sequence, to(n.pass, passes_)});
    }
    for (const std::uint32_t i : args_.old_ids) b_.add_args(args(t_.args[i]));
    for (const std::uint32_t i : regions_.old_ids) add_region(t_.regions[i]);
    for (const std::uint32_t i : ops_.old_ids) add_op(t_.ops[i]);
    for (const std::uint32_t i : saves_.old_ids) {
      const Save& s = t_.saves[i];
      b_.add_save({to(s.node, nodes_), s.slot, to(s.tensor, tensors_), s.hooked});
    }
    for (const Note& n : t_.notes) b_.add_note({to(n.kind, strings_), to(n.text, strings_), to(n.op, ops_)});
    for (const Event& e : t_.events) add_event(e);
    for (const ExtraSection& extra : t_.extras) b_.add_extra(extra);
    return std::move(b_).finish();
  }

 private:
  Order any_order(std::size_t count) {
    return random_order(count, random_, [](std::uint32_t i) { return i; });
  }

  template <class Row>
  Order tree_order(const std::vector<Row>& rows) {
    return random_order(rows.size(), random_,
                        [&](std::uint32_t i) { return rows[i].parent.is_none() ? i : rows[i].parent.value(); });
  }

  template <class Tag>
  static Id<Tag> to(Id<Tag> id, const Order& order) {
    return id.is_none() ? id : Id<Tag>(order.new_id[id.index()]);
  }

  ArgList args(const ArgList& list) const {
    ArgList result;
    for (const Arg& arg : list) result.push_back({to(arg.name, strings_), value(arg.value)});
    return result;
  }

  ArgValue value(const ArgValue& v) const {
    if (const auto* s = std::get_if<StringId>(&v.value)) return {to(*s, strings_)};
    const auto* list = std::get_if<ArgValue::List>(&v.value);
    if (list == nullptr) return v;
    ArgValue::List items;
    for (const ArgValue& item : *list) items.push_back(value(item));
    return {std::move(items)};
  }

  std::vector<TensorId> tensors(std::span<const TensorId> ids) const {
    std::vector<TensorId> result;
    for (const TensorId id : ids) result.push_back(to(id, tensors_));
    return result;
  }

  void add_region(const Region& r) {
    const std::vector<TensorId> held = tensors(step_.held(r));
    b_.add_region({r.kind, to(r.parent, regions_), to(r.call, calls_), to(r.args, args_), held});
  }

  void add_op(const Op& op) {
    const std::vector<TensorId> inputs = tensors(step_.inputs(op));
    std::vector<Output> outputs;
    for (const Output& out : step_.outputs(op)) outputs.push_back({to(out.tensor, tensors_), out.alias, out.input});
    const OpSpec spec{.name = {},
                      .pass = to(op.pass, passes_),
                      .call = to(op.call, calls_),
                      .node = to(op.node, nodes_),
                      .region = to(op.region, regions_),
                      .inputs = inputs,
                      .outputs = outputs,
                      .args = to(op.args, args_),
                      .source = to(op.source, sources_),
                      .group = {},
                      .flags = op.flags,
                      .stream = op.stream,
                      .flops = op.flops,
                      .read_bytes = op.read_bytes,
                      .written_bytes = op.written_bytes};
    b_.add_op(spec, to(op.name, strings_), to(op.group, strings_));
  }

  void add_event(const Event& e) {
    switch (e.kind) {
      case EventKind::kPhase:
        return b_.push(e.kind, passes_.new_id[e.id]);
      case EventKind::kEnter:
      case EventKind::kExit:
        return b_.push(e.kind, calls_.new_id[e.id]);
      case EventKind::kBegin:
      case EventKind::kEnd:
        return b_.push(e.kind, ops_.new_id[e.id]);
      case EventKind::kAlloc:
      case EventKind::kFree:
        return b_.push(e.kind, storages_.new_id[e.id]);
      case EventKind::kResize:
        return b_.resize(to(t_.resizes[e.id].storage, storages_), t_.resizes[e.id].bytes);
      case EventKind::kPack:
      case EventKind::kUnpack:
      case EventKind::kDrop:
      case EventKind::kRelease:
        return b_.push(e.kind, saves_.new_id[e.id]);
      case EventKind::kNode:
      case EventKind::kDone:
        return b_.push(e.kind, nodes_.new_id[e.id]);
    }
  }

  const Step& step_;
  const StepTables& t_;
  Random random_;
  StepBuilder b_;
  Order strings_, sources_, layouts_, storages_, tensors_, bindings_, nodes_, args_, passes_, ops_, saves_;
  Order modules_, calls_, regions_;
};

}  // namespace

Step permute_ids(const Step& step, std::uint64_t seed) { return Permuter(step, seed).run(); }

}  // namespace tidemark::test
